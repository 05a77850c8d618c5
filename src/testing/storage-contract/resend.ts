/** Resending deliveries on request. */

import assert from "node:assert/strict";
import { only } from "./assertions.js";
import { HOUR_MS, LEASE_MS, MINUTE_MS, SECOND_MS } from "./builders.js";
import { type DeclareTest, readDeliveryLog } from "./fixture.js";

/** A pending delivery gets an extra attempt, a completed one gets a successor. */
export function testResend(it: DeclareTest): void {
  it("resending a scheduled delivery makes it due now, as an extra attempt that uses no step", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.postpone(only(await s.claim()), 8 * HOUR_MS);
    const before = await s.readDelivery(only(ids));
    assert.equal(await s.resend(before.id), before.id);
    assert.equal(await s.resend(before.id), before.id);
    assert.deepEqual(await s.readDelivery(before.id), before);
    const extra = only(await s.claim());
    assert.deepEqual([extra.id, extra.isExtra, extra.step, extra.dueAt], [before.id, true, 1, before.dueAt]);
    const outcome = {
      state: "pending",
      step: extra.step,
      dueAt: extra.dueAt,
      postponed: 0,
      crashes: 0,
    } as const;
    await s.settle(extra, outcome, { endpoint: null });
    assert.deepEqual(await s.claim(), []);
    await s.advance(8 * HOUR_MS);
    const regular = only(await s.claim());
    assert.deepEqual([regular.isExtra, regular.step], [false, 1]);
  });

  it("a postponed extra attempt is claimed as an extra attempt, and its step stays scheduled", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.postpone(only(await s.claim()), 8 * HOUR_MS);
    const dueAt = s.now() + 8 * HOUR_MS;
    await s.resend(only(ids));
    const extra = only(await s.claim());
    const outcome = { state: "pending", step: 1, dueAt, postponed: 1, crashes: 0 } as const;
    const extraAt = s.now() + MINUTE_MS;
    await s.settle(extra, { ...outcome, extraAt }, { attempt: null, endpoint: null });
    assert.equal((await s.readDelivery(extra.id)).dueAt, dueAt);
    await s.advance(MINUTE_MS - 1);
    assert.deepEqual(await s.claim(), []);
    await s.advance(1);
    const again = only(await s.claim());
    assert.deepEqual([again.isExtra, again.dueAt, again.postponed], [true, dueAt, 1]);
  });

  it("an extra attempt is repeated as an extra attempt if its process crashes", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.postpone(only(await s.claim()), 8 * HOUR_MS);
    await s.resend(only(ids));
    await s.claim();
    await s.advance(LEASE_MS);
    const taken = only(await s.claim({ by: s.peer }));
    assert.deepEqual([taken.isExtra, taken.isRecovered, taken.step], [true, true, 1]);
  });

  it("resending a completed delivery creates a new delivery of the same event", async (s) => {
    const { id: webhookId } = await s.register();
    const { event, ids } = await s.emit();
    const first = only(ids);
    await s.deliver(only(await s.claim()));
    const ended = await s.readDelivery(first);
    await s.advance(SECOND_MS);
    const second = await s.resend(first);
    assert.equal(second, `${first}.1`);
    assert.equal(await s.resend(first), second);
    const claim = only(await s.claim());
    assert.deepEqual([claim.id, claim.isExtra, claim.step, claim.startedAt], [second, false, 0, null]);
    assert.deepEqual(claim.event, event);
    assert.equal(await s.resend(first), second);
    await s.fail(claim);
    assert.equal(await s.resend(claim.id), `${first}.2`);
    assert.deepEqual(await s.readDelivery(first), ended);
    assert.deepEqual(
      (await readDeliveryLog(s, { webhookId })).map(({ id }) => id),
      [`${first}.2`, `${first}.1`, first],
    );
    const { events, pending, ended: endedCount } = await s.store.stats();
    assert.deepEqual({ events, pending, endedCount }, { events: 1, pending: 1, endedCount: 2 });
  });

  it("resending a completed delivery makes its pending successor due now", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    const first = only(ids);
    await s.deliver(only(await s.claim()));
    await s.resend(first);
    await s.postpone(only(await s.claim()), HOUR_MS);
    assert.equal(await s.resend(first), `${first}.1`);
    assert.equal(only(await s.claim()).isExtra, true);
  });

  it("concurrent resends of a completed delivery create one successor", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.deliver(only(await s.claim()));
    const responses = await s.callConcurrently(10, (by) => s.resend(only(ids), { by }));
    assert.deepEqual(new Set(responses), new Set([`${only(ids)}.1`]));
    assert.equal((await s.store.stats()).pending, 1);
  });
}

/** A delivery in flight is not sent again, unless that is forced. */
export function testResendInFlight(it: DeclareTest): void {
  it("resending a delivery that is due or in flight changes nothing, and tells which", async (s) => {
    const { account } = await s.register();
    const { ids } = await s.emit();
    const id = only(ids);
    const resend = () => s.store.resend({ id, account, now: s.now() });
    assert.deepEqual(await resend(), { id, isInFlight: false });
    const claim = only(await s.claim());
    assert.equal(claim.isExtra, false);
    assert.deepEqual(await resend(), { id, isInFlight: true });
    assert.deepEqual(await s.claim({ by: s.peer }), []);
    assert.equal(await s.retry(claim, HOUR_MS), "settled");
    assert.deepEqual(await s.claim(), []);
  });

  it("a forced resend of a delivery in flight creates a new one, which the next one makes due", async (s) => {
    const { account } = await s.register();
    const { ids } = await s.emit();
    const id = only(ids);
    const force = () => s.store.resend({ id, account, force: true, now: s.now() });
    const inFlight = only(await s.claim());
    assert.deepEqual(await force(), { id: `${id}.1`, isInFlight: false });
    assert.deepEqual(await force(), { id: `${id}.1`, isInFlight: false });
    assert.equal(only(await s.claim()).id, `${id}.1`);
    assert.deepEqual(await s.store.resend({ id, account, now: s.now() }), {
      id: `${id}.1`,
      isInFlight: true,
    });
    await s.deliver(inFlight);
    assert.equal((await s.readDelivery(id)).state, "delivered");
    assert.equal((await s.readDelivery(`${id}.1`)).state, "pending");
  });

  it("resending an event with one delivery in flight and one scheduled changes nothing", async (s) => {
    const { account } = await s.register();
    const { ids } = await s.emit();
    const id = only(ids);
    const resend = (force: boolean) => s.store.resend({ id, account, force, now: s.now() });
    const first = only(await s.claim());
    await resend(true);
    assert.equal(only(await s.claim({ by: s.peer })).id, `${id}.1`);
    await s.postpone(first, HOUR_MS);
    assert.deepEqual(await resend(false), { id: `${id}.1`, isInFlight: true });
    assert.deepEqual(await s.claim(), []);
    assert.deepEqual(await resend(true), { id, isInFlight: false });
    assert.equal(only(await s.claim()).id, id);
  });
}
