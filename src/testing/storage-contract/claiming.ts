/** The storage contract on claims: what is due, for whom there is room, in which order, and leases that run out. */

import assert from "node:assert/strict";
import type { Claim } from "../../webhooks/store.js";
import {
  type Declare,
  HOUR_MS,
  idsOf,
  LEASE_MS,
  MINUTE_MS,
  none,
  only,
  PER_ENDPOINT,
  reportOn,
  type Scenario,
  times,
} from "./scenario.js";

const webhooksOf = (claims: readonly Claim[]): string[] => claims.map(({ webhook }) => webhook.id);
const eventsOf = (claims: readonly Claim[]): string[] => claims.map(({ event }) => event.id);

/** Emits an event for `type` and makes it wait for a retry in `delayMs`, without a word about the endpoint. */
async function waiting(s: Scenario, delayMs: number): Promise<string> {
  const { event } = await s.emit();
  await s.putOff(only(await s.claim()), delayMs);
  return event.id;
}

export function claiming(declare: Declare): void {
  declare("a claim carries the delivery, its event and the webhook as it is now", async (s) => {
    const { id } = await s.register();
    const { event, ids } = await s.emit();
    const secrets = { secret: "new", previousSecret: "old", rotateAt: s.now() + HOUR_MS };
    await s.update(id, { url: "https://subscriber.example/moved", secrets });
    const { claims } = await s.store.claim({
      now: s.now(),
      token: "mine",
      leaseUntil: s.now() + LEASE_MS,
      room: { fast: 1, slow: 1 },
      perEndpoint: 1,
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
    const tooSmall = await s.claimAll({ room: none });
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
    await times(3, () => s.emit());
    const { claims, nextAt } = await s.claimAll({ perEndpoint: 1 });
    assert.equal(claims.length, 1);
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

  declare("room is given per lane", async (s) => {
    await times(3, () => s.register());
    await s.emit();
    assert.deepEqual(await s.claim({ room: { slow: 0 } }), []);
    const slow = await s.claim({ room: { fast: 0, slow: 2 } });
    assert.deepEqual(
      slow.map(({ lane }) => lane),
      ["slow", "slow"],
    );
    const [quick] = slow;
    assert.ok(quick);
    await s.deliver(quick, { endpoint: reportOn(quick, s.now(), { lane: "fast" }) });
    await s.emit();
    const fast = only(await s.claim({ room: { slow: 0 } }));
    assert.deepEqual([fast.lane, fast.webhook.id], ["fast", quick.webhook.id]);
    await s.deliver(fast, { endpoint: reportOn(fast, s.now(), { lane: "slow" }) });
    await s.emit();
    assert.deepEqual(await s.claim({ room: { slow: 0 } }), []);
    assert.ok(webhooksOf(await s.claim({ room: { fast: 0 } })).includes(quick.webhook.id));
  });

  declare("a new url and enabling start in the slow lane again", async (s) => {
    const { id } = await s.register();
    for (const change of [
      { url: "https://subscriber.example/moved" },
      { status: "DISABLED" },
      { status: "ENABLED" },
    ] as const) {
      if (change.status !== "ENABLED") {
        await s.emit();
        const claim = only(await s.claim());
        await s.deliver(claim, { endpoint: reportOn(claim, s.now(), { lane: "fast" }) });
        await s.emit();
        await s.putOff(only(await s.claim({ room: { slow: 0 } })), 0);
      }
      await s.update(id, change);
      if (change.status === "DISABLED") continue;
      const claim = only(await s.claim({ room: { fast: 0 } }));
      await s.deliver(claim);
    }
  });

  declare("no endpoint has more under way than its cap, over all processes", async (s) => {
    const webhooks = await times(2, () => s.register());
    await times(8, () => s.emit());
    const claims = [
      ...(await s.claim({ perEndpoint: 3 })),
      ...(await s.claim({ perEndpoint: 3, by: s.other })),
    ];
    for (const { id } of webhooks) assert.equal(webhooksOf(claims).filter((own) => own === id).length, 3);
    const [first] = claims;
    assert.ok(first);
    await s.deliver(first, { perEndpoint: 3 });
    const next = only(await s.claim({ perEndpoint: 3, by: s.other }));
    assert.equal(next.webhook.id, first.webhook.id);
  });

  declare("after a failure an endpoint gets 1, 2, 3 … at once, one more with each success", async (s) => {
    await s.register();
    await times(30, () => s.emit());
    const take = () => s.claim();
    for (const claim of await take()) await s.retry(claim, 8 * HOUR_MS);
    const first = only(await take());
    await s.deliver(first);
    const two = await take();
    assert.equal(two.length, 2);
    const [a, b] = two;
    assert.ok(a && b);
    await s.deliver(a);
    const three = [b, ...(await take())];
    assert.equal(three.length, 3);
    for (const claim of three) await s.deliver(claim);
    assert.equal((await take()).length, PER_ENDPOINT);
    assert.deepEqual(await take(), []);
  });

  declare("another failure starts slowly from 1 again, once what was under way has ended", async (s) => {
    await s.register();
    await times(20, () => s.emit());
    const [first, ...others] = await s.claim();
    assert.ok(first);
    await s.retry(first, 8 * HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    for (const claim of others.slice(1)) await s.putOff(claim, 8 * HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    await s.putOff(only(others.slice(0, 1)), 8 * HOUR_MS);
    assert.equal((await s.claim()).length, 1);
  });

  declare("a new url ends the slow start", async (s) => {
    const { id } = await s.register();
    await times(20, () => s.emit());
    for (const claim of await s.claim()) await s.retry(claim, 8 * HOUR_MS);
    await s.update(id, { url: "https://subscriber.example/moved" });
    assert.equal((await s.claim()).length, PER_ENDPOINT);
  });

  declare("endpoints take turns, whoever has the longer queue", async (s) => {
    const busy = await s.register({ eventTypes: ["patient.*"] });
    await times(PER_ENDPOINT, () => s.emit());
    await s.advance(1);
    const calm = await s.register({ eventTypes: ["consent.*"] });
    await times(PER_ENDPOINT, () => s.emit({ type: "consent.created" }));
    const both = [busy.id, calm.id].sort();
    assert.deepEqual(webhooksOf(await s.claim({ room: { slow: 2 } })).sort(), both);
    for (let turn = 0; turn < 3; turn++) {
      await s.advance(1);
      const pair = [
        ...(await s.claim({ room: { slow: 1 } })),
        ...(await s.claim({ room: { slow: 1 }, by: s.other })),
      ];
      assert.deepEqual(webhooksOf(pair).sort(), both);
    }
  });

  declare("many endpoints are all served within one round", async (s) => {
    const webhooks = await times(12, (index) => s.register({ account: `account ${index % 3}` }));
    for (const account of ["account 0", "account 1", "account 2"]) await times(2, () => s.emit({ account }));
    const served = new Set<string>();
    for (let round = 0; round < 12; round++) {
      for (const id of webhooksOf(await s.claim({ room: { slow: 1 } }))) served.add(id);
    }
    assert.equal(served.size, webhooks.length);
  });

  declare("retries of an endpoint come earliest due first", async (s) => {
    await s.register();
    const late = await waiting(s, 3 * MINUTE_MS);
    const early = await waiting(s, MINUTE_MS);
    const middle = await waiting(s, 2 * MINUTE_MS);
    await s.advance(HOUR_MS);
    assert.deepEqual(eventsOf(await s.claim()), [early, middle, late]);
  });

  declare(
    "a first attempt goes before retries due for less than an hour, and after older ones",
    async (s) => {
      await s.register();
      const old = await waiting(s, MINUTE_MS);
      const recent = await waiting(s, 40 * MINUTE_MS);
      await s.advance(HOUR_MS + 2 * MINUTE_MS);
      const { event: first } = await s.emit();
      const { event: second } = await s.emit();
      const order = eventsOf(await s.claim());
      assert.equal(order[0], old);
      assert.deepEqual(new Set(order.slice(1, 3)), new Set([first.id, second.id]));
      assert.deepEqual(order.slice(3), [recent]);
    },
  );

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

  declare("every lease that ran out is taken over, also when many end at once", async (s) => {
    await times(3, () => s.register());
    const emitted = await times(60, () => s.emit());
    const held = await s.claim({ perEndpoint: 1_000 });
    assert.equal(held.length, 180);
    await s.advance(LEASE_MS);
    const taken = await times(12, (index) =>
      s.claim({ perEndpoint: 1_000, room: { slow: 20 }, by: index % 2 ? s.other : s.store }),
    );
    assert.deepEqual(idsOf(taken.flat()), emitted.flatMap(({ ids }) => ids).sort());
    const { pending, leased } = await s.store.stats();
    assert.deepEqual({ pending, leased }, { pending: 180, leased: 180 });
  });

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
