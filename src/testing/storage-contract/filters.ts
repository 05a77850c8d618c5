/** Filters: an event goes to the webhooks whose conditions its data meets. */

import assert from "node:assert/strict";
import type { EventFilter } from "../../webhooks/event-types/event-filter.js";
import type { CreateFilterTest, EventRecord } from "../../webhooks/store.js";
import { only, repeat } from "./assertions.js";
import { HOUR_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

/** Builds a plain event with this data. */
const buildPlain = (s: Scenario, data: unknown, fields: Partial<EventRecord> = {}): EventRecord =>
  s.buildEvent({ type: "order.paid", payload: `{"v":2}\n${JSON.stringify(data)}`, ...fields });

const emitPlain = (s: Scenario, data: unknown, fields?: Parameters<Scenario["append"]>[1]) =>
  s.emit(buildPlain(s, data), fields);

const KIND_A: EventFilter = { "data.kind": { eq: "a" } };
const KIND_B: EventFilter = { "data.kind": { in: ["b", "c"] } };

const countFiltered = async (s: Scenario, id: string): Promise<number | undefined> =>
  (await s.peer.deliveryStats(id, s.now()))?.filtered;

const listWebhooks = (emitted: { ids: string[] }): string[] =>
  emitted.ids.map((id) => id.slice(0, 36)).sort();

/** `append` creates deliveries for the filters that an event passes. */
export function testFilters(it: DeclareTest): void {
  it("an event goes to the webhooks whose filter it passes, and the others count it", async (s) => {
    const all = await s.register();
    const a = await s.register({ filter: KIND_A });
    const large = await s.register({
      filter: { "data.amount": { gte: 100, lt: 200 }, "data.kind": { exists: true } },
    });
    await s.register({ filter: KIND_A, status: "DISABLED" });
    await s.register({ filter: KIND_A, eventTypes: ["invoice.*"] });
    const receivers = async (data: unknown) => listWebhooks(await emitPlain(s, data));
    assert.deepEqual(await receivers({ kind: "a", amount: 100 }), [all.id, a.id, large.id].sort());
    assert.deepEqual(await receivers({ kind: "a", amount: 200 }), [all.id, a.id].sort());
    assert.deepEqual(await receivers({ kind: "b", amount: 150 }), [all.id, large.id].sort());
    assert.deepEqual(await receivers([]), [all.id]);
    assert.deepEqual(await receivers(null), [all.id]);
    assert.equal(await countFiltered(s, all.id), 0);
    assert.equal(await countFiltered(s, a.id), 3);
    assert.equal(await countFiltered(s, large.id), 3);
    const claims = await s.claim();
    assert.equal(claims.length, 9);
    assert.equal((await s.store.stats()).pending, 9);
    for (const claim of claims) await s.deliver(claim);
    assert.equal(await countFiltered(s, a.id), 3);
  });

  it("a filter test of the caller decides in place of the payload, in append and in recover", async (s) => {
    const { id } = await s.register({ filter: KIND_A });
    const since = s.now();
    const payload = "encrypted";
    const events = [s.buildEvent({ payload }), s.buildEvent({ payload })];
    const [passing, refused] = events;
    assert.ok(passing && refused);
    const tested = new Set<string>();
    const createFilterTest: CreateFilterTest = (event) => {
      assert.equal(event.payload, payload);
      tested.add(event.id);
      return () => event.id === passing.id;
    };
    const request = { events, rememberMs: HOUR_MS, now: s.now(), createFilterTest };
    const { results } = await s.store.append(request);
    assert.deepEqual(
      results.map((result) => "deliveries" in result && result.deliveries.length),
      [1, 0],
    );
    await s.fail(only(await s.claim()));
    tested.clear();
    const selection = { webhookId: id, account: "clinic", since, dueAt: s.now(), everyMs: 1, limit: 100 };
    const recovered = await s.peer.recover({ ...selection, now: s.now(), createFilterTest });
    assert.equal(recovered?.count, 1);
    assert.deepEqual(tested, new Set([passing.id, refused.id]));
  });

  it("an event that is known is not filtered again, and not counted again", async (s) => {
    const { id } = await s.register({ filter: KIND_A });
    const passing = buildPlain(s, { kind: "a" });
    const refused = buildPlain(s, { kind: "b" });
    await s.appendAll([passing, refused]);
    await s.update(id, { filter: KIND_B });
    const { results } = await s.appendAll([passing, refused], { by: s.peer });
    const deliveries = results.map((result) => "deliveries" in result && result.deliveries.length);
    assert.deepEqual(deliveries, [1, 0]);
    assert.ok(results.every(({ result }) => result === "duplicate"));
    assert.equal(await countFiltered(s, id), 1);
  });

  it("a filter that another process sets, changes or removes holds for the next event", async (s) => {
    const { id } = await s.register();
    const isDelivered = async (kind: string, turn: number) =>
      (await emitPlain(s, { kind }, { by: s.alternate(turn) })).ids.length === 1;
    for (const [turn, filter] of [null, KIND_A, KIND_B, null, KIND_B, KIND_A].entries()) {
      await s.update(id, { filter }, { by: s.alternate(turn + 1) });
      assert.equal(await isDelivered("a", turn), filter !== KIND_B);
      assert.equal(await isDelivered("b", turn), filter !== KIND_A);
    }
    assert.equal(await countFiltered(s, id), 4);
  });

  it("a list of events is stored in order up to a conflict, each with its own receivers", async (s) => {
    const { id } = await s.register({ filter: KIND_A });
    await s.register({ account: "hospital", filter: KIND_B });
    const first = buildPlain(s, { kind: "a" });
    await s.append(first, { by: s.peer });
    const kinds = ["a", "b", "a"].map((kind) => buildPlain(s, { kind }));
    const other = buildPlain(s, { kind: "a" }, { account: "hospital" });
    const conflict = { ...first, digest: "another" };
    const { results } = await s.appendAll([...kinds, other, conflict, buildPlain(s, { kind: "a" })]);
    assert.deepEqual(
      results.map((result) => ("deliveries" in result ? result.deliveries.length : result.result)),
      [1, 0, 1, 0, "conflict"],
    );
    assert.equal(await countFiltered(s, id), 1);
    assert.equal((await s.store.stats()).events, 5);
  });

  it("a test, and an event without plain data, pass every filter", async (s) => {
    const { id } = await s.register({ filter: KIND_A });
    assert.equal((await emitPlain(s, { kind: "b" }, { webhookId: id })).ids.length, 1);
    assert.equal((await s.emit()).ids.length, 1);
    assert.equal((await s.emit({ payload: '{"v":1}\n{"kind":"b"}' })).ids.length, 1);
    assert.equal(await countFiltered(s, id), 0);
  });

  it(
    "without retention, an event that no filter lets pass is counted and not stored",
    async (s) => {
      const { id } = await s.register({ filter: KIND_A });
      const claim = s.buildClaimRequest();
      const refused = buildPlain(s, { kind: "b" });
      assert.deepEqual((await s.append(refused, { claim })).claimed?.claims ?? [], []);
      await s.append(refused, { by: s.peer });
      assert.equal(await countFiltered(s, id), 1);
      assert.equal((await s.store.stats()).events, 0);
      assert.equal((await emitPlain(s, { kind: "a" })).ids.length, 1);
    },
    { retention: { keepMs: 0, events: 0 } },
  );

  it("every event passes the filter before or after a change that is made meanwhile", async (s) => {
    const { id } = await s.register({ filter: KIND_A });
    let delivered = 0;
    for (let round = 0; round < 5; round++) {
      const filter = round % 2 ? KIND_A : KIND_B;
      const [emitted] = await Promise.all([
        s.callConcurrently(6, async (by) => emitPlain(s, { kind: "a" }, { by })),
        s.update(id, { filter }, { by: s.alternate(round) }),
      ]);
      delivered += emitted.reduce((sum, { ids }) => sum + ids.length, 0);
      const { ids } = await emitPlain(s, { kind: "a" });
      assert.equal(ids.length, filter === KIND_A ? 1 : 0);
      delivered += ids.length;
    }
    assert.equal((await s.store.stats()).pending, delivered);
    assert.equal(await countFiltered(s, id), 35 - delivered);
  });
}

/** `recover` creates no delivery that a filter refuses. */
export function testRecoveryFilters(it: DeclareTest): void {
  it("recover leaves out the events that the filter refuses, page by page", async (s) => {
    const { id } = await s.register({ filter: KIND_A, status: "DISABLED" });
    const kinds = ["a", "b", "b", "a", "b", "a", "b"];
    for (const kind of kinds) await emitPlain(s, { kind });
    await s.update(id, { status: "ENABLED" });
    await emitPlain(s, { kind: "b" });
    await s.emit();
    assert.equal(await countFiltered(s, id), 1);
    const claimed = await s.claim();
    assert.equal(claimed.length, 1);
    assert.equal(await s.recoverAll(id), 3);
    assert.equal(await s.recoverAll(id), 0);
    const { next: end } = (await s.recover(id, { limit: 500 })) ?? {};
    assert.equal(end, null);
    await s.update(id, { filter: KIND_B }, { by: s.peer });
    assert.equal(await s.recoverAll(id, 0, 3, { by: s.peer }), 5);
    await s.update(id, { filter: null });
    assert.equal(await s.recoverAll(id), 0);
    assert.equal((await s.store.stats()).pending, 9);
  });

  it("recover finds the events that pass among many that do not", async (s) => {
    const { id } = await s.register({ filter: KIND_A, status: "DISABLED" });
    const many = await repeat(130, async () => buildPlain(s, { kind: "b" }));
    const [middle, last] = [buildPlain(s, { kind: "a" }), buildPlain(s, { kind: "a" })];
    await s.appendAll([...many.slice(0, 65), middle, ...many.slice(65), last]);
    await s.update(id, { status: "ENABLED" });
    assert.equal(await s.recoverAll(id, 0, 500), 2);
    const claims = await s.claim();
    assert.deepEqual(claims.map(({ event }) => event.id).sort(), [middle.id, last.id].sort());
  });

  it("recover applies the filter to failed events too", async (s) => {
    const { id } = await s.register();
    await emitPlain(s, { kind: "b" });
    await s.fail(only(await s.claim()));
    await s.update(id, { filter: KIND_A });
    await s.advance(HOUR_MS);
    assert.equal(await s.recoverAll(id), 0);
    await s.update(id, { filter: null });
    assert.equal(await s.recoverAll(id), 1);
  });
}
