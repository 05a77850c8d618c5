/** Settlements that come late or twice: a failure may be stale, a success always counts. */

import assert from "node:assert/strict";
import { only, repeat } from "./assertions.js";
import { HEALTHY, HOUR_MS, LEASE_MS, MINUTE_MS, PER_ENDPOINT, SECOND_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** A settlement other than delivered counts only with the token of the latest claim. */
export function testStaleSettlements(it: DeclareTest): void {
  it("a failed attempt that is settled twice counts once", async (s) => {
    const { claim } = await s.leaseDelivery();
    assert.equal(await s.retry(claim, MINUTE_MS), "settled");
    const record = await s.readDelivery(claim.id);
    await s.advance(SECOND_MS);
    assert.equal(await s.retry(claim, MINUTE_MS, { by: s.peer }), "stale");
    assert.deepEqual(await s.readDelivery(claim.id), record);
  });

  it("a failure that is settled after another claim is stale and changes nothing", async (s) => {
    const { webhookId, claim } = await s.leaseDelivery();
    await s.advance(LEASE_MS);
    const taken = only(await s.claim({ by: s.peer }));
    assert.equal(await s.retry(claim, HOUR_MS), "stale");
    assert.equal(await s.fail(claim), "stale");
    assert.equal(await s.settle(claim, { state: "withheld", reason: "access_denied" }), "stale");
    const record = await s.readDelivery(claim.id);
    assert.deepEqual([record.state, record.attempts], ["pending", []]);
    assert.deepEqual(await s.readHealth(webhookId), HEALTHY);
    assert.equal((await s.store.stats()).leased, 1);
    assert.equal(await s.deliver(taken, { by: s.peer }), "settled");
  });

  it("a claim that is given back frees its slot for another process, and is no crash", async (s) => {
    await s.register();
    await repeat(PER_ENDPOINT + 1, () => s.emit());
    const abandoned = await s.claim();
    assert.equal(abandoned.length, PER_ENDPOINT);
    assert.deepEqual(await s.claim({ by: s.peer }), []);
    for (const claim of abandoned) {
      const outcome = { state: "pending", step: 0, dueAt: s.now(), postponed: 0, crashes: 0 } as const;
      const fields = { startedAt: null, attempt: null, endpoint: null };
      assert.equal(await s.settle(claim, outcome, fields), "settled");
    }
    assert.equal((await s.store.stats()).leased, 0);
    const taken = await s.claim({ by: s.peer });
    assert.equal(taken.length, PER_ENDPOINT);
    for (const { step, crashes, isRecovered } of taken)
      assert.deepEqual({ step, crashes, isRecovered }, { step: 0, crashes: 0, isRecovered: false });
    const [first] = abandoned.filter(({ id }) => taken.some((claim) => claim.id === id));
    assert.ok(first);
    assert.equal(await s.fail(first), "stale");
    assert.equal(await s.deliver(first), "settled");
  });

  it("a failure with an unknown token is stale", async (s) => {
    const { claim } = await s.leaseDelivery();
    assert.equal(await s.fail(claim, { token: "made up" }), "stale");
    assert.equal(await s.retry(claim, 0), "settled");
  });

  it("a settlement between the end of its lease and the next claim is either stored or stale", async (s) => {
    const { claim } = await s.leaseDelivery();
    await s.advance(LEASE_MS);
    const result = await s.retry(claim, MINUTE_MS);
    assert.ok(result === "settled" || result === "stale");
    assert.equal((await s.readDelivery(claim.id)).attempts.length, result === "settled" ? 1 : 0);
    await s.advance(MINUTE_MS);
    const next = only(await s.claim());
    assert.deepEqual([next.step, next.crashes], result === "settled" ? [1, 0] : [0, 1]);
  });
}

/** The endpoint has the event: delivered counts at any time, except over delivered or withheld. */
export function testLateSuccesses(it: DeclareTest): void {
  it("delivered counts after another claim took over, and that claim finds the delivery gone", async (s) => {
    const { webhookId, claim } = await s.leaseDelivery();
    await s.advance(LEASE_MS);
    const taken = only(await s.claim({ by: s.peer }));
    assert.equal(await s.deliver(claim), "settled");
    assert.equal((await s.readDelivery(claim.id)).state, "delivered");
    assert.equal(await s.retry(taken, 0, { by: s.peer }), "gone");
    assert.equal(await s.deliver(taken, { by: s.peer }), "gone");
    assert.equal((await s.readDelivery(claim.id)).attempts.length, 1);
    const { pending, leased } = await s.store.stats();
    assert.deepEqual({ pending, leased }, { pending: 0, leased: 0 });
    await repeat(5, () => s.emit());
    const claims = await s.claim();
    assert.deepEqual(new Set(claims.map(({ webhook }) => webhook.id)), new Set([webhookId]));
    assert.equal(claims.length, 5);
  });

  it("delivered counts for one of several deliveries that were taken over, and the others stay leased", async (s) => {
    await s.register();
    await repeat(4, () => s.emit());
    const [late] = await s.claim();
    assert.ok(late);
    await s.advance(LEASE_MS);
    const taken = await s.claim({ by: s.peer });
    assert.equal(taken.length, 4);
    assert.equal(await s.deliver(late), "settled");
    assert.deepEqual(await s.claim(), []);
    assert.equal((await s.store.stats()).leased, 3);
    const [first, ...others] = taken.filter(({ id }) => id !== late.id);
    assert.ok(first);
    assert.equal(await s.postpone(first, HOUR_MS, { by: s.peer }), "settled");
    await s.advance(LEASE_MS);
    const again = await s.claim();
    assert.deepEqual(new Set(again.map(({ id }) => id)), new Set(others.map(({ id }) => id)));
    const { pending, leased, ended } = await s.store.stats();
    assert.deepEqual({ pending, leased, ended }, { pending: 3, leased: 2, ended: 1 });
  });

  it("delivered counts while the delivery waits for a retry", async (s) => {
    const { claim } = await s.leaseDelivery();
    await s.advance(LEASE_MS);
    await s.retry(only(await s.claim({ by: s.peer })), HOUR_MS);
    assert.equal(await s.deliver(claim), "settled");
    await s.advance(HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    assert.equal((await s.store.stats()).pending, 0);
  });

  it("delivered replaces failed, and nothing replaces delivered or withheld", async (s) => {
    const { claim } = await s.leaseDelivery();
    await s.fail(claim);
    await s.advance(MINUTE_MS);
    assert.equal(await s.deliver(claim), "settled");
    const record = await s.readDelivery(claim.id);
    assert.deepEqual([record.state, record.reason, record.endedAt], ["delivered", null, s.now()]);
    assert.equal(await s.fail(claim), "gone");
    assert.equal(await s.deliver(claim), "gone");
    assert.deepEqual(await s.readDelivery(claim.id), record);

    await s.emit();
    const withheld = only(await s.claim());
    await s.settle(withheld, { state: "withheld", reason: "access_denied" });
    assert.equal(await s.deliver(withheld), "gone");
    assert.equal((await s.readDelivery(withheld.id)).state, "withheld");
    const { events, pending, ended } = await s.store.stats();
    assert.deepEqual({ events, pending, ended }, { events: 2, pending: 0, ended: 2 });
  });
}
