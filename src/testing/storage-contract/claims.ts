/** Claims: which deliveries are due, what a claim contains, and how leases expire. */

import assert from "node:assert/strict";
import { listIds, only, repeat } from "./assertions.js";
import { HOUR_MS, LEASE_MS, MINUTE_MS, NO_ROOM, PER_ENDPOINT } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** A claim returns deliveries that are due and that no other process holds. */
export function testClaims(it: DeclareTest): void {
  it("a claim contains the delivery, its event and the webhook as it is now", async (s) => {
    const { id } = await s.register();
    const { event, ids } = await s.emit();
    const rotation = { secret: "new", rotateAt: s.now() + HOUR_MS };
    await s.update(id, { url: "https://subscriber.example/moved", rotation });
    const { claims } = await s.store.claim({
      now: s.now(),
      token: "mine",
      leaseUntil: s.now() + LEASE_MS,
      room: { fast: 1, slow: 1 },
    });
    const { lane, ...claim } = only(claims);
    assert.ok(lane === "fast" || lane === "slow");
    assert.deepEqual(claim, {
      id: ids[0],
      token: "mine",
      webhook: await s.readWebhook(id),
      event,
      startedAt: null,
      step: 0,
      isExtra: false,
      dueAt: s.now(),
      postponed: 0,
      crashes: 0,
      isRecovered: false,
    });
  });

  it("a delivery is claimed when it is due and not before", async (s) => {
    await s.register();
    const event = await s.emitPostponed(15 * MINUTE_MS);
    const dueAt = s.now() + 15 * MINUTE_MS;
    const early = await s.claimWithNextAt();
    assert.deepEqual(early.claims, []);
    assert.ok(early.nextAt !== null && early.nextAt > s.now() && early.nextAt <= dueAt);
    await s.advance(15 * MINUTE_MS - 1);
    assert.deepEqual(await s.claim(), []);
    await s.advance(1);
    const claim = only(await s.claim());
    assert.deepEqual([claim.event.id, claim.step, claim.dueAt], [event, 1, dueAt]);
  });

  it("a delivery that was postponed before its first attempt is not claimed early either", async (s) => {
    await s.register();
    await s.emit();
    await s.postpone(only(await s.claim()), MINUTE_MS, { startedAt: null });
    await s.advance(MINUTE_MS - 1);
    assert.deepEqual(await s.claim(), []);
    await s.advance(1);
    assert.equal(only(await s.claim()).startedAt, null);
  });

  it("nextAt is the time of the next claim that can return something", async (s) => {
    assert.equal((await s.claimWithNextAt()).nextAt, null);
    const { id } = await s.register();
    await s.emit();
    await s.emit();
    const tooSmall = await s.claimWithNextAt({ room: NO_ROOM });
    assert.ok(tooSmall.nextAt !== null && tooSmall.nextAt <= s.now());
    const { claims, nextAt } = await s.claimWithNextAt();
    assert.equal(claims.length, 2);
    assert.ok(nextAt !== null && nextAt > s.now() && nextAt <= s.now() + LEASE_MS);
    const [first, second] = claims;
    assert.ok(first && second);
    await s.deliver(first);
    await s.retry(second, HOUR_MS);
    const later = await s.claimWithNextAt({ by: s.peer });
    assert.ok(later.nextAt !== null && later.nextAt > s.now() && later.nextAt <= s.now() + HOUR_MS);
    await s.remove(id);
    assert.equal((await s.claimWithNextAt()).nextAt, null);
  });

  it("nextAt covers deliveries that wait for a place at their endpoint", async (s) => {
    await s.register();
    await repeat(PER_ENDPOINT + 2, () => s.emit());
    const { claims, nextAt } = await s.claimWithNextAt();
    assert.equal(claims.length, PER_ENDPOINT);
    assert.ok(nextAt !== null && nextAt <= s.now() + LEASE_MS);
  });

  it("two processes never hold the same delivery", async (s) => {
    await repeat(4, () => s.register());
    const emitted = await repeat(5, () => s.emit());
    const claims = await s.callConcurrently(10, (by) => s.claim({ by, room: { slow: 4 } }));
    const ids = claims.flat().map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    const rest = await s.claim();
    assert.deepEqual([...ids, ...rest.map(({ id }) => id)].sort(), emitted.flatMap((one) => one.ids).sort());
    assert.equal((await s.store.stats()).leased, 20);
  });

  it("deliveries of DISABLED webhooks are claimed, so that the service can skip their step", async (s) => {
    const { id } = await s.register();
    await s.emit();
    await s.update(id, { status: "DISABLED" });
    assert.equal(only(await s.claim()).webhook.status, "DISABLED");
  });
}

/** A lease that expires makes its delivery claimable again. */
export function testLeases(it: DeclareTest): void {
  it("a lease excludes other processes until it expires, and the next claim counts the crash", async (s) => {
    await s.register();
    await s.emit();
    const [first] = await s.claim();
    await s.advance(LEASE_MS - 1);
    assert.deepEqual(await s.claim({ by: s.peer }), []);
    await s.advance(1);
    const second = only(await s.claim({ by: s.peer }));
    assert.deepEqual(second, {
      ...first,
      token: second.token,
      crashes: 1,
      isRecovered: true,
    });
    await s.advance(LEASE_MS);
    const third = only(await s.claim());
    assert.deepEqual([third.crashes, third.isRecovered, third.step], [2, true, 0]);
    await s.postpone(third, 0);
    const fourth = only(await s.claim());
    assert.deepEqual([fourth.crashes, fourth.isRecovered], [0, false]);
  });

  it(
    "every expired lease is taken over, also when many expire at once",
    async (s) => {
      await repeat(3, () => s.register());
      const emitted = await repeat(60, () => s.emit());
      const held = await s.claim();
      assert.equal(held.length, 180);
      await s.advance(LEASE_MS);
      const taken = await repeat(12, (index) => s.claim({ room: { slow: 20 }, by: s.alternate(index) }));
      assert.deepEqual(listIds(taken.flat()), emitted.flatMap(({ ids }) => ids).sort());
      const { pending, leased } = await s.store.stats();
      assert.deepEqual({ pending, leased }, { pending: 180, leased: 180 });
    },
    { perEndpoint: 1_000 },
  );

  it("an expired lease frees its place at the endpoint", async (s) => {
    await s.register();
    await repeat(10, () => s.emit());
    for (let crash = 0; crash < 3; crash++) {
      assert.equal((await s.claim()).length, PER_ENDPOINT);
      assert.deepEqual(await s.claim({ by: s.peer }), []);
      await s.advance(LEASE_MS);
    }
  });
}
