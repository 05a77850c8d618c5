/** Finding events by their subject and their tags. */

import assert from "node:assert/strict";
import type { EventKey, FoundEvent } from "../../webhooks/store.js";
import { listIds, only, readAllPages, repeat } from "./assertions.js";
import { DAY_MS, HOUR_MS, NO_ROOM, RETENTION } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";
import { emitMany, LOG_LENGTH } from "./long-logs.js";

type FindOptions = { account?: string; webhookId?: string; limit?: number };

/** Finds events page by page, newest first. */
const find = (
  { peer }: Scenario,
  key: EventKey,
  { account = "clinic", webhookId, limit = 2 }: FindOptions = {},
): Promise<FoundEvent[]> =>
  readAllPages(async (cursor) => {
    const { events, next } = await peer.findEvents({ account, key, webhookId, cursor, limit });
    assert.ok(events.length <= limit);
    return { rows: events, next };
  });

const findIds = async (s: Scenario, key: EventKey, options?: FindOptions): Promise<string[]> =>
  (await find(s, key, options)).map(({ id }) => id);

/** Declares the tests of finding events by subject and tag. */
export function testEventKeys(it: DeclareTest): void {
  it("events are found by exactly their subject or one of their tags, newest first", async (s) => {
    await s.register();
    const fields = [
      { subject: "order/A-1", tags: ["invoice", "eu"] },
      { subject: "order/A-1" },
      { subject: "order/A-10", tags: ["invoice"] },
      { tags: ["order/A-1"] },
      {},
      { subject: "invoice" },
    ];
    const ids: string[] = [];
    for (const field of fields) ids.push((await s.emit(field)).event.id);
    const [first, second, third, fourth, , sixth] = ids;
    assert.deepEqual(await findIds(s, { subject: "order/A-1" }), [second, first]);
    assert.deepEqual(await findIds(s, { tag: "invoice" }), [third, first]);
    assert.deepEqual(await findIds(s, { tag: "eu" }), [first]);
    assert.deepEqual(await findIds(s, { tag: "order/A-1" }), [fourth]);
    assert.deepEqual(await findIds(s, { subject: "invoice" }), [sixth]);
    for (const text of ["order", "order/A-", "order/A-1 ", "ORDER/A-1", "", "%", "_", "*", "__proto__"]) {
      assert.deepEqual(await findIds(s, { subject: text }), []);
      assert.deepEqual(await findIds(s, { tag: text }), []);
    }
  });

  it("subjects and tags with special characters are told apart, and belong to their account", async (s) => {
    const texts = [
      "a/b",
      "a",
      "a/",
      "b",
      "s.a",
      "a,b",
      "a%",
      "a_",
      "a\n",
      "a b",
      "a|b",
      "{a}",
      "é",
      "\u{1F514}",
      "a0",
    ];
    await s.register();
    await s.register({ account: "clinic2" });
    const ids = new Map<string, string>();
    for (const text of texts)
      ids.set(text, (await s.emit({ subject: text, tags: [text, `${text}x`] })).event.id);
    await s.emit({ account: "clinic2", subject: "a", tags: ["a"] });
    for (const text of texts) {
      assert.deepEqual(await findIds(s, { subject: text }), [ids.get(text)]);
      assert.deepEqual(await findIds(s, { tag: text }), [ids.get(text)]);
      assert.deepEqual(await findIds(s, { tag: `${text}x` }), [ids.get(text)]);
    }
    assert.equal((await findIds(s, { subject: "a" }, { account: "clinic2" })).length, 1);
    assert.deepEqual(await findIds(s, { subject: "a/b" }, { account: "clinic2" }), []);
    assert.deepEqual(await findIds(s, { subject: "a" }, { account: "clini" }), []);
  });

  it("a found event has its deliveries to all webhooks or to one, newest first, as they are read", async (s) => {
    const { id: one } = await s.register();
    const { id: two } = await s.register();
    await s.register({ eventTypes: ["consent.*"] });
    const { event, ids } = await s.emit({ subject: "order/A-1", tags: ["x"] });
    for (const claim of await s.claim()) await s.fail(claim, { endpoint: null });
    const first = `${one}.${event.id}`;
    await s.advance(1);
    await s.resend(first);
    const found = only(await find(s, { subject: "order/A-1" }));
    assert.equal(found.deliveries[0]?.id, `${first}.1`);
    assert.deepEqual(listIds(found.deliveries), listIds([...ids, `${first}.1`].map((id) => ({ id }))));
    for (const delivery of found.deliveries) {
      assert.deepEqual(delivery, await s.readDelivery(delivery.id));
      assert.deepEqual([delivery.subject, delivery.tags], ["order/A-1", ["x"]]);
    }
    const ofOne = only(await find(s, { tag: "x" }, { webhookId: one }));
    assert.deepEqual(
      ofOne.deliveries.map(({ id }) => id),
      [`${first}.1`, first],
    );
    assert.equal(only(await find(s, { tag: "x" }, { webhookId: two })).deliveries.length, 1);
    const stranger = s.store.newWebhookId("clinic");
    assert.deepEqual(only(await find(s, { tag: "x" }, { webhookId: stranger })).deliveries, []);
  });

  it("events without a delivery are found, and an event is read with its subject and tags", async (s) => {
    await s.register({ status: "DISABLED" });
    const { event } = await s.emit({ subject: "order/A-1", tags: ["a", "b"] });
    assert.deepEqual(await find(s, { tag: "b" }), [{ id: event.id, deliveries: [] }]);
    assert.deepEqual(await s.peer.getEvent(event), { ...event, storedAt: s.now() });
    await s.register();
    const { event: other } = await s.emit({ tags: ["b"] });
    assert.deepEqual(only(await s.claim()).event, other);
    assert.deepEqual(await s.peer.getEvent(other), { ...other, storedAt: s.now() });
  });

  it("an event that is emitted twice is found once", async (s) => {
    await s.register();
    const event = s.buildEvent({ subject: "order/A-1", tags: ["a"] });
    await s.append(event);
    await s.append(event, { by: s.peer });
    assert.deepEqual(await findIds(s, { subject: "order/A-1" }), [event.id]);
    assert.deepEqual(await findIds(s, { tag: "a" }), [event.id]);
  });
}

/** Declares the tests of what is no longer found, and of the work of a search. */
export function testEventKeyRemoval(it: DeclareTest): void {
  const keyed = { subject: "order/A-1", tags: ["a", "b"] };
  const findAny = async (s: Scenario): Promise<number> =>
    [
      ...(await findIds(s, { subject: "order/A-1" })),
      ...(await findIds(s, { tag: "a" })),
      ...(await findIds(s, { tag: "b" })),
    ].length;

  it("events are found as long as they are kept", async (s) => {
    await s.register();
    await s.emit(keyed);
    await s.deliver(only(await s.claim()));
    await s.advance(HOUR_MS);
    const { event } = await s.emit(keyed);
    assert.equal(await findAny(s), 6);
    await s.advance(RETENTION.keepMs - HOUR_MS);
    await s.tidy();
    assert.deepEqual(await findIds(s, { subject: "order/A-1" }), [event.id]);
    assert.equal(await findAny(s), 3);
    for (const claim of await s.claim()) await s.deliver(claim);
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    assert.equal(await findAny(s), 0);
  });

  it(
    "events beyond those that an account may keep are not found",
    async (s) => {
      await s.register();
      for (let index = 0; index < 30; index++) {
        await s.emit({ subject: `order/${index}`, tags: ["all"] });
        await s.deliver(only(await s.claim()));
        await s.advance(1);
      }
      await s.tidy();
      const found = await findIds(s, { tag: "all" });
      assert.ok(found.length >= 5 && found.length < 30);
      assert.deepEqual(await findIds(s, { subject: "order/0" }), []);
      assert.equal((await findIds(s, { subject: "order/29" })).length, 1);
    },
    { retention: { keepMs: DAY_MS, events: 5 } },
  );

  it("a page of found events ends once it has a thousand deliveries, and no event is left out", async (s) => {
    await repeat(12, () => s.register());
    const emitted = await repeat(100, async () => (await s.emit({ tags: ["all"] })).event.id);
    const found = await readAllPages(async (cursor) => {
      const request = { account: "clinic", key: { tag: "all" }, cursor, limit: 100 } as const;
      const { events, next } = await s.store.findEvents(request);
      const count = events.reduce((sum, { deliveries }) => sum + deliveries.length, 0);
      assert.ok(count < 1_012, `${count} deliveries in a page`);
      for (const { deliveries } of events) assert.equal(deliveries.length, 12);
      return { rows: events.map(({ id }) => id), next };
    });
    assert.equal(found.length, 100);
    assert.deepEqual(new Set(found), new Set(emitted));
  });

  it("a page of ids alone has no deliveries, and as many events as its limit", async (s) => {
    await repeat(12, () => s.register());
    const emitted = await repeat(100, async () => (await s.emit({ subject: "order/A-1" })).event.id);
    const request = { account: "clinic", key: { subject: "order/A-1" }, idsOnly: true } as const;
    const { events, next } = await s.store.findEvents({ ...request, limit: 99 });
    const newest = emitted.toReversed();
    assert.deepEqual(
      events,
      newest.slice(0, 99).map((id) => ({ id, deliveries: [] })),
    );
    const rest = await s.store.findEvents({ ...request, cursor: next ?? "", limit: 99 });
    assert.deepEqual(rest, { events: [{ id: newest[99], deliveries: [] }], next: null });
  });

  it("erased events and accounts are not found", async (s) => {
    await s.register();
    const { event } = await s.emit(keyed);
    await s.emit(keyed);
    await s.store.eraseEvents({ account: "clinic", ids: [event.id], now: s.now() });
    assert.equal(await findAny(s), 3);
    await repeat(10, () => s.store.eraseAccount({ account: "clinic", now: s.now() }));
    assert.equal(await findAny(s), 0);
    await s.register();
    assert.equal(await findAny(s), 0);
    await s.emit(keyed);
    assert.equal(await findAny(s), 3);
  });

  it("the work of a search does not grow with the events that have other subjects and tags", async (s) => {
    const { work } = s;
    if (!work) return;
    const costs: number[] = [];
    for (const [account, length] of [
      ["clinic", LOG_LENGTH],
      ["hospital", 2 * LOG_LENGTH],
    ] as const) {
      await s.register({ account });
      await s.emit({ account, ...keyed });
      await emitMany(s, account, length, { subject: "order/A-10", tags: ["c"] });
      await s.emit({ account, ...keyed });
      const search = async () => {
        for (const key of [{ subject: "order/A-1" }, { tag: "a" }]) {
          const { events } = await s.store.findEvents({ account, key, limit: 50 });
          assert.equal(events.length, 2);
        }
      };
      // The first call of a kind may prepare what later calls reuse.
      await search();
      const before = await work();
      await search();
      costs.push((await work()) - before);
    }
    const [once = 0, twice = 0] = costs;
    assert.ok(twice <= 1.2 * once + 50, `${once}, with twice the log ${twice}`);
    await s.claimWithNextAt({ room: NO_ROOM });
  });
}
