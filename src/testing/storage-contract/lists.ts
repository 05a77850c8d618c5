/** Appending several events in one call: in order, up to the first that is not stored. */

import assert from "node:assert/strict";
import type { EventRecord } from "../../webhooks/store.js";
import type { DeclareTest, Scenario } from "./fixture.js";

/** More than any storage stores in one step. */
const MANY = 450;

const buildEvents = (s: Scenario, count: number, account = "clinic"): EventRecord[] =>
  Array.from({ length: count }, () => s.buildEvent({ account }));

const isKept = async (s: Scenario, { account, id }: EventRecord): Promise<boolean> =>
  (await s.store.getEvent({ account, id })) !== undefined;

const listResults = ({ results }: Awaited<ReturnType<Scenario["appendAll"]>>): string[] =>
  results.map(({ result }) => result);

/** Stores an event with the id of `event` and another digest. */
const takeId = (s: Scenario, event: EventRecord) => s.append({ ...event, digest: "taken" });

export function testLists(it: DeclareTest): void {
  it("a list of events has a result for each, whatever their accounts", async (s) => {
    const webhook = await s.register();
    const other = await s.register({ account: "hospital" });
    const events = [0, 1, 2, 3, 4, 5].map((index) =>
      s.buildEvent({ account: index % 2 === 0 ? "clinic" : "hospital" }),
    );
    const { results } = await s.appendAll(events);
    assert.deepEqual(
      results.map((result) => "deliveries" in result && result.deliveries.map(({ id }) => id)),
      events.map(({ account, id }) => [`${account === "clinic" ? webhook.id : other.id}.${id}`]),
    );
    const claimed = (await s.claim()).map(({ event }) => event.id).sort();
    assert.deepEqual(claimed, events.map(({ id }) => id).sort());
  });

  it("a list without events stores nothing", async (s) => {
    assert.deepEqual(listResults(await s.appendAll([])), []);
  });

  it("an id that comes twice in a list is a duplicate, or a conflict if the content differs", async (s) => {
    await s.register();
    const [first, second, third] = buildEvents(s, 3) as [EventRecord, EventRecord, EventRecord];
    assert.deepEqual(listResults(await s.appendAll([first, second, first])), [
      "stored",
      "stored",
      "duplicate",
    ]);
    const changed = { ...first, digest: "other" };
    assert.deepEqual(listResults(await s.appendAll([second, changed, third])), ["duplicate", "conflict"]);
    assert.equal(await isKept(s, third), false);
  });

  it("nothing is stored after an event that is not", async (s) => {
    await s.register();
    const events = buildEvents(s, 5);
    await takeId(s, events[2] as EventRecord);
    const response = await s.appendAll(events, { by: s.peer });
    assert.deepEqual(listResults(response), ["stored", "stored", "conflict"]);
    const stored = await Promise.all(events.map((event) => isKept(s, event)));
    assert.deepEqual(stored, [true, true, true, false, false]);
    assert.equal((await s.claim()).length, 3);
  });

  it("a list of any length is stored, or stops at the right event", async (s) => {
    await s.register();
    const events = buildEvents(s, MANY);
    const response = await s.appendAll(events);
    assert.deepEqual(listResults(response), Array(MANY).fill("stored"));
    const others = buildEvents(s, MANY);
    const stop = MANY - 20;
    await takeId(s, others[stop] as EventRecord);
    const stopped = listResults(await s.appendAll(others));
    assert.deepEqual(stopped, [...Array(stop).fill("stored"), "conflict"]);
    const { pending } = await s.store.stats();
    assert.equal(pending, MANY + stop + 1);
  });

  it("lists that are appended at the same time do not stop one another", async (s) => {
    await s.register();
    const lists = Array.from({ length: 6 }, () => buildEvents(s, 8));
    const broken = lists[3]?.[4];
    assert.ok(broken);
    await takeId(s, broken);
    const responses = await Promise.all(
      lists.map((events, index) => s.appendAll(events, { by: index % 2 === 0 ? s.store : s.peer })),
    );
    assert.deepEqual(
      responses.map((response) => listResults(response).length),
      [8, 8, 8, 5, 8, 8],
    );
    const { pending } = await s.store.stats();
    assert.equal(pending, 5 * 8 + 4 + 1);
  });

  it("the same list from several processes at once is stored once", async (s) => {
    await s.register();
    const events = buildEvents(s, 40);
    const responses = await s.callConcurrently(4, (by) => s.appendAll(events, { by }));
    const results = responses.flatMap(listResults);
    assert.equal(results.filter((result) => result === "stored").length, 40);
    assert.equal(results.filter((result) => result === "duplicate").length, 3 * 40);
    const { pending } = await s.store.stats();
    assert.equal(pending, 40);
  });
}
