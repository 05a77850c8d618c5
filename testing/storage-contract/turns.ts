/** The storage contract on the order of claims: lanes, caps, slow start, and whose turn it is. */

import assert from "node:assert/strict";
import type { Claim } from "../../src/webhooks/store.js";
import { only, times } from "./lists.js";
import { type DeclareTest, HOUR_MS, MINUTE_MS, PER_ENDPOINT, reportOn, type Scenario } from "./scenario.js";

const webhooksOf = (claims: readonly Claim[]): string[] => claims.map(({ webhook }) => webhook.id);
const eventsOf = (claims: readonly Claim[]): string[] => claims.map(({ event }) => event.id);

/** Emits an event and makes it wait for a retry in `delayMs`, without a word about the endpoint. */
async function waiting(s: Scenario, delayMs: number): Promise<string> {
  const { event } = await s.emit();
  await s.putOff(only(await s.claim()), delayMs);
  return event.id;
}

export function turns(declare: DeclareTest): void {
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

  for (const perEndpoint of [1, 3, PER_ENDPOINT]) {
    declare(
      `no endpoint has more than its cap of ${perEndpoint} under way, over all processes`,
      async (s) => {
        const webhooks = await times(2, () => s.register());
        await times(8, () => s.emit());
        const claims = [...(await s.claim()), ...(await s.claim({ by: s.other }))];
        for (const { id } of webhooks) {
          assert.equal(webhooksOf(claims).filter((own) => own === id).length, perEndpoint);
        }
        const [first] = claims;
        assert.ok(first);
        await s.deliver(first);
        const next = only(await s.claim({ by: s.other }));
        assert.equal(next.webhook.id, first.webhook.id);
      },
      { perEndpoint },
    );
  }

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
    const webhooks = await times(12, () => s.register());
    await times(2, () => s.emit());
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
}
