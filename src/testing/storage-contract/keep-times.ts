/** Events with a `keepMs` of their own: how long they are kept in place of the retention of all. */

import assert from "node:assert/strict";
import { only, repeat } from "./assertions.js";
import { DAY_MS, HOUR_MS, NO_ROOM, RETENTION, SECOND_MS } from "./builders.js";
import { type DeclareTest, readDeliveryLog, type Scenario } from "./fixture.js";

const YEAR_MS = 365 * DAY_MS;

/** Returns the ids of these events that are still kept. */
async function listKept(s: Scenario, ids: readonly string[]): Promise<string[]> {
  const found = await Promise.all(ids.map((id) => s.store.getEvent({ account: "clinic", id })));
  return found.flatMap((event) => (event === undefined ? [] : [event.id]));
}

const deliverAll = async (s: Scenario): Promise<void> => {
  for (const claim of await s.claim()) await s.deliver(claim);
};

/** An event is kept for its `keepMs` after its last delivery completed. */
export function testKeepTimes(it: DeclareTest): void {
  it("an event with a keepMs below the retention is freed that long after its last delivery", async (s) => {
    const { id: webhookId } = await s.register();
    await s.register();
    const empty = await s.store.stats();
    const { event, ids } = await s.emit({ keepMs: HOUR_MS, tags: ["code"], subject: "order/1" });
    const [first, second] = await s.claim();
    assert.ok(first && second);
    await s.deliver(first);
    await s.postpone(second, DAY_MS);
    await s.advance(DAY_MS);
    await s.fail(only(await s.claim()));
    await s.advance(HOUR_MS - 1);
    await s.tidy();
    assert.deepEqual(await listKept(s, [event.id]), [event.id]);
    await s.advance(1);
    await s.tidy();
    assert.deepEqual(await listKept(s, [event.id]), []);
    for (const id of ids) assert.equal(await s.store.getDelivery(id), undefined);
    assert.deepEqual(await readDeliveryLog(s, { webhookId }), []);
    const search = { account: "clinic", key: { tag: "code" }, limit: 5 } as const;
    assert.deepEqual((await s.store.findEvents(search)).events, []);
    assert.equal(await s.recoverAll(webhookId, 0, 2, { states: ["delivered", "failed", "missed"] }), 0);
    const endpoints = { ok: 1, failing: 1, warned: 0, disabled: 0 };
    assert.deepEqual(await s.store.stats(), { ...empty, endpoints });
  });

  it("an event with a keepMs above the retention is kept, and can be recovered, until then", async (s) => {
    const { id: webhookId } = await s.register();
    const { event: other } = await s.emit();
    const { event } = await s.emit({ keepMs: YEAR_MS });
    const storedAt = s.now();
    for (const claim of await s.claim()) await s.fail(claim);
    await s.advance(YEAR_MS - 1);
    await s.tidy();
    assert.deepEqual(await listKept(s, [other.id, event.id]), [event.id]);
    const { accounts } = await s.store.listAccounts({ limit: 5, now: s.now() });
    assert.equal(only(accounts).lastEventAt, storedAt);
    assert.equal(await s.recoverAll(webhookId, 0, 2, { isDryRun: true }), 1);
    await s.advance(1);
    await s.tidy();
    assert.deepEqual(await listKept(s, [event.id]), []);
    assert.equal((await s.store.stats()).events, 0);
  });

  it("events of one list are each kept for their own time, and those without one for the retention", async (s) => {
    await s.register();
    const times = [HOUR_MS, undefined, 2 * HOUR_MS, RETENTION.keepMs + SECOND_MS, SECOND_MS];
    const events = times.map((keepMs) => s.buildEvent({ keepMs }));
    await s.appendAll(events);
    await deliverAll(s);
    const ids = events.map(({ id }) => id);
    const [hour, plain, twoHours, longest] = ids;
    await s.tidy();
    assert.deepEqual(await listKept(s, ids), ids);
    const left: [advanceMs: number, kept: (string | undefined)[]][] = [
      [SECOND_MS, [hour, plain, twoHours, longest]],
      [HOUR_MS - SECOND_MS, [plain, twoHours, longest]],
      [HOUR_MS, [plain, longest]],
      [RETENTION.keepMs - 2 * HOUR_MS, [longest]],
      [SECOND_MS, []],
    ];
    for (const [advanceMs, kept] of left) {
      await s.advance(advanceMs);
      await s.tidy();
      assert.deepEqual(await listKept(s, ids), kept);
    }
  });

  it("an event with a keepMs that no webhook received is kept for that time", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    const { event } = await s.emit({ keepMs: HOUR_MS });
    await s.advance(HOUR_MS - 1);
    await s.tidy();
    assert.deepEqual(await listKept(s, [event.id]), [event.id]);
    await s.advance(1);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 0);
    assert.equal(await s.recoverAll(id), 0);
  });

  it("hundreds of events with a keepMs are all freed, and those of others stay", async (s) => {
    await s.register();
    const ended = await repeat(250, async () => s.buildEvent({ keepMs: HOUR_MS }));
    const others = await repeat(5, async () => s.buildEvent());
    for (const events of [ended.slice(0, 125), others, ended.slice(125)]) await s.appendAll(events);
    for (let claims = await s.claim(); claims.length > 0; claims = await s.claim())
      await s.store.settle(claims.map((claim) => s.buildSettlement(claim, { state: "delivered" })));
    await s.advance(HOUR_MS);
    await s.tidy();
    const { events, ended: deliveries } = await s.store.stats();
    assert.deepEqual({ events, deliveries }, { events: 5, deliveries: 5 });
  });
}

/** Events whose time begins again, and events that are gone. */
export function testRestartedKeepTimes(it: DeclareTest): void {
  it("a resend and a late success begin the keepMs of an event again", async (s) => {
    await s.register();
    const { event, ids } = await s.emit({ keepMs: HOUR_MS });
    const first = only(await s.claim());
    await s.fail(first);
    await s.advance(HOUR_MS - 1);
    await s.deliver(first);
    await s.advance(HOUR_MS - 1);
    await s.tidy();
    assert.equal((await s.readDelivery(only(ids))).state, "delivered");
    await s.resend(only(ids));
    await s.advance(DAY_MS);
    await s.tidy();
    const again = only(await s.claim());
    await s.deliver(again);
    await s.advance(HOUR_MS - 1);
    await s.tidy();
    assert.equal((await s.readDelivery(again.id)).state, "delivered");
    await s.advance(1);
    await s.tidy();
    assert.deepEqual(await listKept(s, [event.id]), []);
  });

  it("the id of an event that was freed after its keepMs is still remembered", async (s) => {
    await s.register();
    const { event } = await s.emit({ keepMs: 1 });
    await deliverAll(s);
    await s.advance(HOUR_MS);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 0);
    assert.equal((await s.append(event)).result, "duplicate");
    assert.equal((await s.append({ ...event, digest: "other" })).result, "conflict");
    assert.deepEqual(await s.claim(), []);
    await s.advance(DAY_MS);
    assert.equal((await s.append(event)).result, "stored");
  });

  it("a repetition with another keepMs is a duplicate, and the first keepMs stays", async (s) => {
    await s.register();
    const { event } = await s.emit({ keepMs: HOUR_MS });
    assert.equal((await s.append({ ...event, keepMs: YEAR_MS })).result, "duplicate");
    await deliverAll(s);
    await s.advance(HOUR_MS);
    await s.tidy();
    assert.deepEqual(await listKept(s, [event.id]), []);
  });

  it("an event with a keepMs whose last webhook was removed is freed after that time", async (s) => {
    const { id } = await s.register();
    await s.register({ status: "DISABLED" });
    const { event } = await s.emit({ keepMs: HOUR_MS });
    await s.remove(id);
    await s.tidy();
    await s.advance(HOUR_MS - 1);
    await s.tidy();
    assert.deepEqual(await listKept(s, [event.id]), [event.id]);
    await s.advance(1);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 0);
  });
}

/** `retention.events` bounds these events too, and a retention of 0 keeps only them. */
export function testBoundedKeepTimes(it: DeclareTest): void {
  it("an event with a keepMs is kept as long under a later process with another retention", async (s) => {
    await s.register();
    const { event: short } = await s.emit({ keepMs: HOUR_MS });
    const { event: long } = await s.emit({ keepMs: YEAR_MS });
    await deliverAll(s);
    const ids = [short.id, long.id];
    for (const keepMs of [SECOND_MS, 0, YEAR_MS]) {
      const by = s.bindWithRetention({ keepMs, events: 10 });
      await s.advance(HOUR_MS / 4);
      await repeat(20, () => s.claimWithNextAt({ by, room: NO_ROOM }));
      assert.deepEqual(await listKept(s, ids), ids);
    }
    await s.advance(HOUR_MS / 4);
    const by = s.bindWithRetention({ keepMs: 2 * YEAR_MS, events: 10 });
    await repeat(20, () => s.claimWithNextAt({ by, room: NO_ROOM }));
    assert.deepEqual(await listKept(s, ids), [long.id]);
  });

  it(
    "beyond retention.events, events with a keepMs are freed last, the one that ends first in front",
    async (s) => {
      await s.register();
      const ids: string[] = [];
      for (const keepMs of [2 * HOUR_MS, undefined, HOUR_MS, undefined, YEAR_MS]) {
        const { event } = await s.emit({ keepMs });
        await s.advance(1);
        await deliverAll(s);
        ids.push(event.id);
        await s.tidy();
      }
      assert.deepEqual(await listKept(s, ids), [ids[0], ids[4]]);
    },
    { retention: { keepMs: RETENTION.keepMs, events: 2 } },
  );

  it(
    "a retention of 0 keeps only events with a keepMs, with and without a receiver",
    async (s) => {
      const { id } = await s.register();
      const { event: plain } = await s.emit();
      const { event: delivered } = await s.emit({ keepMs: HOUR_MS });
      await deliverAll(s);
      await s.update(id, { status: "DISABLED" });
      const { event: missed } = await s.emit({ keepMs: HOUR_MS });
      await s.emit();
      await s.tidy();
      const ids = [plain.id, delivered.id, missed.id];
      assert.deepEqual(await listKept(s, ids), [delivered.id, missed.id]);
      await s.advance(HOUR_MS);
      await s.tidy();
      assert.deepEqual(await listKept(s, ids), []);
      assert.equal((await s.store.stats()).events, 0);
    },
    { retention: { keepMs: 0, events: 10 } },
  );
}
