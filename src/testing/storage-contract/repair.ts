/** Sending what waits, and sending again what was delivered: `recover` of the other states. */

import assert from "node:assert/strict";
import { listIds, only, repeat } from "./assertions.js";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "./builders.js";
import { type DeclareTest, readDeliveryLog, type Scenario } from "./fixture.js";

/** Emits events whose first attempt failed and whose retry is due in an hour. */
async function emitWaiting(s: Scenario, count: number): Promise<string[]> {
  const emitted = await repeat(count, () => s.emit());
  for (const claim of await s.claim({ room: { slow: 1_000 } }))
    await s.retry(claim, HOUR_MS, { endpoint: null });
  return emitted.map(({ ids }) => only(ids));
}

const WIDE = { perEndpoint: 1_000 };

/** `recover` of pending events moves the deliveries that wait for a retry. */
export function testRecoveryOfWaiting(it: DeclareTest): void {
  const sendWaiting = (s: Scenario, id: string, options = {}) =>
    s.recoverAll(id, 0, 2, { states: ["pending"], ...options });

  it(
    "recover of pending events makes waiting deliveries due, oldest first and paced, as extra attempts",
    async (s) => {
      const { id } = await s.register();
      const ids = await emitWaiting(s, 4);
      const dueAt = s.now() + SECOND_MS;
      const request = { states: ["pending"], dueAt, everyMs: 100, limit: 1_000 } as const;
      assert.equal((await s.recover(id, request))?.count, 4);
      assert.deepEqual(await s.claim(), []);
      await s.advance(SECOND_MS + 100);
      const claims = await s.claim();
      assert.deepEqual(
        claims.map((claim) => claim.id),
        ids.slice(0, 2),
      );
      for (const claim of claims) assert.deepEqual([claim.step, claim.isExtra], [1, true]);
      await s.advance(200);
      assert.deepEqual(listIds(await s.claim()), ids.slice(2).sort());
      assert.equal((await s.store.stats()).pending, 4);
    },
    WIDE,
  );

  it(
    "a moved delivery that fails again keeps its step and its planned retry, and can be moved again",
    async (s) => {
      const { id } = await s.register();
      const [waiting = ""] = await emitWaiting(s, 1);
      const plannedAt = (await s.readDelivery(waiting)).dueAt;
      assert.equal(await sendWaiting(s, id), 1);
      assert.equal(await sendWaiting(s, id), 0);
      const claim = only(await s.claim());
      assert.equal(claim.dueAt, plannedAt);
      const outcome = {
        state: "pending",
        step: claim.step,
        dueAt: claim.dueAt,
        postponed: 0,
        crashes: 0,
      } as const;
      await s.settle(claim, outcome, { endpoint: null });
      assert.deepEqual(await s.claim(), []);
      const { step, dueAt, state } = await s.readDelivery(waiting);
      assert.deepEqual([step, dueAt, state], [1, plannedAt, "pending"]);
      assert.equal(await sendWaiting(s, id), 1);
      assert.equal(only(await s.claim()).isExtra, true);
    },
    WIDE,
  );

  it(
    "recover of pending events leaves alone what is in flight, was never attempted, is due or completed",
    async (s) => {
      const { id } = await s.register();
      const [waiting] = await emitWaiting(s, 1);
      const completed = await repeat(3, () => s.emit());
      const outcomes = ["delivered", "failed", "withheld"] as const;
      for (const claim of await s.claim()) {
        const state = outcomes[completed.findIndex(({ ids }) => ids.includes(claim.id))];
        if (state === "delivered") await s.deliver(claim);
        else if (state !== undefined) await s.settle(claim, { state, reason: "x" }, { endpoint: null });
      }
      await s.emit();
      const held = only(await s.claim());
      const { ids } = await s.emit();
      assert.equal(await sendWaiting(s, id), 1);
      assert.deepEqual(new Set(listIds(await s.claim())), new Set([waiting, only(ids)]));
      assert.equal(await s.deliver(held), "settled");
    },
    WIDE,
  );

  it(
    "recover of pending events moves none of another webhook, account or type, and none of a test",
    async (s) => {
      const { id } = await s.register({ eventTypes: ["patient.*"] });
      await s.register({ account: "hospital" });
      await s.register({ eventTypes: ["consent.*"] });
      await s.append(s.buildEvent(), { webhookId: id });
      await s.emit({ account: "hospital" });
      await s.emit({ type: "consent.created" });
      await s.emit();
      for (const claim of await s.claim()) await s.retry(claim, HOUR_MS, { endpoint: null });
      assert.equal(await sendWaiting(s, id, { types: ["patient.created"] }), 0);
      assert.equal(await sendWaiting(s, id, { types: ["patient.created", "patient.updated"] }), 1);
      assert.equal(only(await s.claim()).webhook.id, id);
    },
    WIDE,
  );

  it(
    "concurrent recoveries of pending events move each delivery once",
    async (s) => {
      const { id } = await s.register();
      await emitWaiting(s, 4);
      const responses = await s.callConcurrently(4, (by) =>
        s.recover(id, { by, states: ["pending"], limit: 1_000 }),
      );
      assert.equal(
        responses.reduce((sum, response) => sum + (response?.count ?? 0), 0),
        4,
      );
      assert.equal((await s.claim()).length, 4);
    },
    WIDE,
  );

  it(
    "a waiting delivery that falls due before its turn stays as it is",
    async (s) => {
      const { id } = await s.register();
      await emitWaiting(s, 1);
      const late = { dueAt: s.now() + 2 * HOUR_MS };
      assert.equal(await sendWaiting(s, id, late), 0);
      await s.advance(HOUR_MS);
      assert.equal(await sendWaiting(s, id), 0);
      assert.equal(only(await s.claim()).isExtra, false);
    },
    WIDE,
  );
}

/** `recover` of delivered events, within times and of a subject, and as a dry run. */
export function testReplay(it: DeclareTest): void {
  it(
    "recover of delivered events creates a new delivery of each, with a serial number of its own",
    async (s) => {
      const { id } = await s.register();
      const { ids } = await s.emit();
      await s.deliver(only(await s.claim()));
      assert.equal(await s.recoverAll(id), 0);
      for (const serial of [1, 2]) {
        assert.equal(await s.recoverAll(id, 0, 2, { states: ["delivered", "failed"] }), 1);
        // While it is pending, the event is not one that was delivered.
        assert.equal(await s.recoverAll(id, 0, 2, { states: ["delivered", "failed"] }), 0);
        const claim = only(await s.claim());
        assert.deepEqual([claim.id, claim.step], [`${only(ids)}.${serial}`, 0]);
        await s.deliver(claim);
      }
      assert.equal((await readDeliveryLog(s, { webhookId: id, state: "delivered" })).length, 3);
    },
    WIDE,
  );

  it(
    "recover with until leaves out events that were stored at that time or later",
    async (s) => {
      const { id } = await s.register({ status: "DISABLED" });
      const first = await s.emit();
      await s.advance(MINUTE_MS);
      await s.emit();
      const until = s.now();
      for (const early of [0, until - MINUTE_MS])
        assert.equal(await s.recoverAll(id, 0, 2, { until: early }), 0);
      assert.equal(await s.recoverAll(id, 0, 2, { until }), 1);
      assert.equal(only(await s.claim()).event.id, first.event.id);
      assert.equal(await s.recoverAll(id, 0, 2, { until: Date.UTC(9999) }), 1);
    },
    WIDE,
  );

  it(
    "recover with a subject selects the events that have exactly this one",
    async (s) => {
      const { id } = await s.register({ status: "DISABLED" });
      const subjects = ["order/A-1", "order/A-10", "order/%", "order/A_1", undefined];
      await repeat(subjects.length, (index) => {
        const subject = subjects[index];
        return s.emit(subject === undefined ? {} : { subject });
      });
      for (const subject of ["order", "order/", "Order/A-1", ""])
        assert.equal(await s.recoverAll(id, 0, 2, { subject }), 0);
      for (const subject of ["order/%", "order/A_1", "order/A-1"])
        assert.equal(await s.recoverAll(id, 0, 2, { subject }), 1);
      assert.equal(await s.recoverAll(id), 2);
    },
    WIDE,
  );

  it(
    "a dry run counts and changes nothing",
    async (s) => {
      const { id } = await s.register();
      await emitWaiting(s, 2);
      await s.emit();
      await s.deliver(only(await s.claim()));
      const before = [await s.store.stats(), await readDeliveryLog(s, { webhookId: id })];
      assert.equal(await s.recoverAll(id, 0, 2, { states: ["pending"], isDryRun: true }), 2);
      assert.equal(await s.recoverAll(id, 0, 2, { states: ["delivered"], isDryRun: true }), 1);
      assert.deepEqual([await s.store.stats(), await readDeliveryLog(s, { webhookId: id })], before);
      assert.deepEqual(await s.claim(), []);
    },
    WIDE,
  );
}
