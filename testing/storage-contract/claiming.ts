/** The storage contract on claims: what is due, what a claim says, and leases that run out. */

import assert from "node:assert/strict";
import { listIds, only, times } from "./lists.js";
import {
  type DeclareTest,
  HOUR_MS,
  LEASE_MS,
  MINUTE_MS,
  NO_DELIVERIES,
  PER_ENDPOINT,
  type Scenario,
} from "./scenario.js";

/** Emits an event and makes it wait for a retry in `delayMs`, without a word about the endpoint. */
async function waiting(s: Scenario, delayMs: number): Promise<string> {
  const { event } = await s.emit();
  await s.putOff(only(await s.claim()), delayMs);
  return event.id;
}

export function claiming(declare: DeclareTest): void {
  declare("a claim carries the delivery, its event and the webhook as it is now", async (s) => {
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
      webhook: await s.webhook(id),
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

  declare("a delivery is handed out when it is due, not before", async (s) => {
    await s.register();
    const event = await waiting(s, 15 * MINUTE_MS);
    const dueAt = s.now() + 15 * MINUTE_MS;
    const early = await s.claimAll();
    assert.deepEqual(early.claims, []);
    assert.ok(early.nextAt !== null && early.nextAt > s.now() && early.nextAt <= dueAt);
    await s.advance(15 * MINUTE_MS - 1);
    assert.deepEqual(await s.claim(), []);
    await s.advance(1);
    const claim = only(await s.claim());
    assert.deepEqual([claim.event.id, claim.step, claim.dueAt], [event, 1, dueAt]);
  });

  declare("a delivery that was never attempted does not come early either", async (s) => {
    await s.register();
    await s.emit();
    await s.putOff(only(await s.claim()), MINUTE_MS, { startedAt: null });
    await s.advance(MINUTE_MS - 1);
    assert.deepEqual(await s.claim(), []);
    await s.advance(1);
    assert.equal(only(await s.claim()).startedAt, null);
  });

  declare("nextAt says when to ask again", async (s) => {
    assert.equal((await s.claimAll()).nextAt, null);
    const { id } = await s.register();
    await s.emit();
    await s.emit();
    const tooSmall = await s.claimAll({ room: NO_DELIVERIES });
    assert.ok(tooSmall.nextAt !== null && tooSmall.nextAt <= s.now());
    const { claims, nextAt } = await s.claimAll();
    assert.equal(claims.length, 2);
    assert.ok(nextAt !== null && nextAt > s.now() && nextAt <= s.now() + LEASE_MS);
    const [first, second] = claims;
    assert.ok(first && second);
    await s.deliver(first);
    await s.retry(second, HOUR_MS);
    const later = await s.claimAll({ by: s.other });
    assert.ok(later.nextAt !== null && later.nextAt > s.now() && later.nextAt <= s.now() + HOUR_MS);
    await s.remove(id);
    assert.equal((await s.claimAll()).nextAt, null);
  });

  declare("nextAt covers what waits behind the cap of its endpoint", async (s) => {
    await s.register();
    await times(PER_ENDPOINT + 2, () => s.emit());
    const { claims, nextAt } = await s.claimAll();
    assert.equal(claims.length, PER_ENDPOINT);
    assert.ok(nextAt !== null && nextAt <= s.now() + LEASE_MS);
  });

  declare("two processes never hold the same delivery", async (s) => {
    await times(4, () => s.register());
    const emitted = await times(5, () => s.emit());
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        s.claim({ by: index % 2 ? s.other : s.store, room: { slow: 4 } }),
      ),
    );
    const ids = claims.flat().map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    const rest = await s.claim();
    assert.deepEqual([...ids, ...rest.map(({ id }) => id)].sort(), emitted.flatMap((one) => one.ids).sort());
    assert.equal((await s.store.stats()).leased, 20);
  });

  declare("deliveries of DISABLED webhooks are handed out, so that their step is skipped", async (s) => {
    const { id } = await s.register();
    await s.emit();
    await s.update(id, { status: "DISABLED" });
    assert.equal(only(await s.claim()).webhook.status, "DISABLED");
  });

  declare("a lease keeps others out until it ends, and then the claim says what happened", async (s) => {
    await s.register();
    await s.emit();
    const [first] = await s.claim();
    await s.advance(LEASE_MS - 1);
    assert.deepEqual(await s.claim({ by: s.other }), []);
    await s.advance(1);
    const second = only(await s.claim({ by: s.other }));
    assert.deepEqual(second, {
      ...first,
      token: second.token,
      crashes: 1,
      isRecovered: true,
    });
    await s.advance(LEASE_MS);
    const third = only(await s.claim());
    assert.deepEqual([third.crashes, third.isRecovered, third.step], [2, true, 0]);
    await s.putOff(third, 0);
    const fourth = only(await s.claim());
    assert.deepEqual([fourth.crashes, fourth.isRecovered], [0, false]);
  });

  declare(
    "every lease that ran out is taken over, also when many end at once",
    async (s) => {
      await times(3, () => s.register());
      const emitted = await times(60, () => s.emit());
      const held = await s.claim();
      assert.equal(held.length, 180);
      await s.advance(LEASE_MS);
      const taken = await times(12, (index) =>
        s.claim({ room: { slow: 20 }, by: index % 2 ? s.other : s.store }),
      );
      assert.deepEqual(listIds(taken.flat()), emitted.flatMap(({ ids }) => ids).sort());
      const { pending, leased } = await s.store.stats();
      assert.deepEqual({ pending, leased }, { pending: 180, leased: 180 });
    },
    { perEndpoint: 1_000 },
  );

  declare("leases that ran out give their places at the endpoint back", async (s) => {
    await s.register();
    await times(10, () => s.emit());
    for (let crash = 0; crash < 3; crash++) {
      assert.equal((await s.claim()).length, PER_ENDPOINT);
      assert.deepEqual(await s.claim({ by: s.other }), []);
      await s.advance(LEASE_MS);
    }
  });
}
