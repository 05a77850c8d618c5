/** The order of claims: lanes, the limit per endpoint, slow start, and turns. */

import assert from "node:assert/strict";
import type { Claim } from "../../webhooks/store.js";
import { only, repeat } from "./assertions.js";
import { buildEndpointReport, HOUR_MS, MINUTE_MS, PER_ENDPOINT } from "./builders.js";
import { type DeclareTest, readDeliveryLog } from "./fixture.js";

const listWebhookIds = (claims: readonly Claim[]): string[] => claims.map(({ webhook }) => webhook.id);
const listEventIds = (claims: readonly Claim[]): string[] => claims.map(({ event }) => event.id);

/** An endpoint is in the fast or the slow lane, and a claim has room for each. */
export function testLanes(it: DeclareTest): void {
  it("a claim leases no more deliveries of a lane than it has room for", async (s) => {
    await repeat(3, () => s.register());
    await s.emit();
    assert.deepEqual(await s.claim({ room: { slow: 0 } }), []);
    const slow = await s.claim({ room: { fast: 0, slow: 2 } });
    assert.deepEqual(
      slow.map(({ lane }) => lane),
      ["slow", "slow"],
    );
    const [quick] = slow;
    assert.ok(quick);
    await s.deliver(quick, { endpoint: buildEndpointReport(quick, s.now(), { lane: "fast" }) });
    await s.emit();
    const fast = only(await s.claim({ room: { slow: 0 } }));
    assert.deepEqual([fast.lane, fast.webhook.id], ["fast", quick.webhook.id]);
    await s.deliver(fast, { endpoint: buildEndpointReport(fast, s.now(), { lane: "slow" }) });
    await s.emit();
    assert.deepEqual(await s.claim({ room: { slow: 0 } }), []);
    assert.ok(listWebhookIds(await s.claim({ room: { fast: 0 } })).includes(quick.webhook.id));
  });

  it("a new url and enabling put an endpoint into the slow lane", async (s) => {
    const { id } = await s.register();
    for (const change of [
      { url: "https://subscriber.example/moved" },
      { status: "DISABLED" },
      { status: "ENABLED" },
    ] as const) {
      if (change.status !== "ENABLED") {
        await s.emit();
        const claim = only(await s.claim());
        await s.deliver(claim, { endpoint: buildEndpointReport(claim, s.now(), { lane: "fast" }) });
        await s.emit();
        await s.postpone(only(await s.claim({ room: { slow: 0 } })), 0);
      }
      await s.update(id, change);
      if (change.status === "DISABLED") continue;
      const claim = only(await s.claim({ room: { fast: 0 } }));
      await s.deliver(claim);
    }
  });
}

/** Over all processes, an endpoint has at most `perEndpoint` deliveries in flight. */
export function testEndpointLimit(it: DeclareTest): void {
  for (const perEndpoint of [1, 3, PER_ENDPOINT]) {
    it(
      `no endpoint has more than ${perEndpoint} deliveries in flight, over all processes`,
      async (s) => {
        const webhooks = await repeat(2, () => s.register());
        await repeat(8, () => s.emit());
        const claims = [...(await s.claim()), ...(await s.claim({ by: s.peer }))];
        for (const { id } of webhooks) {
          assert.equal(listWebhookIds(claims).filter((webhookId) => webhookId === id).length, perEndpoint);
        }
        const [first] = claims;
        assert.ok(first);
        await s.deliver(first);
        const next = only(await s.claim({ by: s.peer }));
        assert.equal(next.webhook.id, first.webhook.id);
      },
      { perEndpoint },
    );
  }

  it("after a failure an endpoint gets 1, 2, 3 … deliveries at once, one more per success", async (s) => {
    await s.register();
    await repeat(30, () => s.emit());
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

  it("a leased delivery is in flight until it is settled, and takes one of the slots", async (s) => {
    const { id } = await s.register();
    await repeat(3, () => s.emit());
    const room = async () => {
      const stats = await s.peer.deliveryStats(id, s.now());
      const log = await readDeliveryLog(s, { webhookId: id }, 10);
      const listed = log.filter(({ isInFlight }) => isInFlight).length;
      assert.equal(listed, stats?.inFlight);
      return [stats?.inFlight, stats?.slots, stats?.openAt === s.now()];
    };
    assert.deepEqual(await room(), [0, PER_ENDPOINT, true]);
    const [a, b] = await s.claim({ room: { slow: 2 } });
    assert.ok(a && b);
    const isInFlight = async (deliveryId: string) => (await s.readDelivery(deliveryId)).isInFlight;
    assert.deepEqual([await isInFlight(a.id), await isInFlight(b.id)], [true, true]);
    assert.deepEqual(await room(), [2, PER_ENDPOINT, true]);
    await s.deliver(a);
    assert.deepEqual([await isInFlight(a.id), await isInFlight(b.id)], [false, true]);
    await s.retry(b, HOUR_MS);
    assert.equal(await isInFlight(b.id), false);
    assert.deepEqual(await room(), [0, 1, true]);
    await s.resend(b.id);
    assert.equal(await isInFlight(b.id), false);
  });

  it("another failure restarts the slow start at 1 once nothing is in flight", async (s) => {
    await s.register();
    await repeat(20, () => s.emit());
    const [first, ...others] = await s.claim();
    assert.ok(first);
    await s.retry(first, 8 * HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    for (const claim of others.slice(1)) await s.postpone(claim, 8 * HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    await s.postpone(only(others.slice(0, 1)), 8 * HOUR_MS);
    assert.equal((await s.claim()).length, 1);
  });

  it("a new url ends the slow start", async (s) => {
    const { id } = await s.register();
    await repeat(20, () => s.emit());
    for (const claim of await s.claim()) await s.retry(claim, 8 * HOUR_MS);
    await s.update(id, { url: "https://subscriber.example/moved" });
    assert.equal((await s.claim()).length, PER_ENDPOINT);
  });
}

/** Endpoints take turns; within an endpoint, due times decide. */
export function testTurns(it: DeclareTest): void {
  it("endpoints take turns, however long the queue of one is", async (s) => {
    const busy = await s.register({ eventTypes: ["patient.*"] });
    await repeat(PER_ENDPOINT, () => s.emit());
    await s.advance(1);
    const calm = await s.register({ eventTypes: ["consent.*"] });
    await repeat(PER_ENDPOINT, () => s.emit({ type: "consent.created" }));
    const both = [busy.id, calm.id].sort();
    assert.deepEqual(listWebhookIds(await s.claim({ room: { slow: 2 } })).sort(), both);
    for (let turn = 0; turn < 3; turn++) {
      await s.advance(1);
      const pair = [
        ...(await s.claim({ room: { slow: 1 } })),
        ...(await s.claim({ room: { slow: 1 }, by: s.peer })),
      ];
      assert.deepEqual(listWebhookIds(pair).sort(), both);
    }
  });

  it("every one of many endpoints gets a claim within one round", async (s) => {
    const webhooks = await repeat(12, () => s.register());
    await repeat(2, () => s.emit());
    const served = new Set<string>();
    for (let round = 0; round < 12; round++) {
      for (const id of listWebhookIds(await s.claim({ room: { slow: 1 } }))) served.add(id);
    }
    assert.equal(served.size, webhooks.length);
  });

  it("retries of an endpoint are claimed in the order of their due times", async (s) => {
    await s.register();
    const late = await s.emitPostponed(3 * MINUTE_MS);
    const early = await s.emitPostponed(MINUTE_MS);
    const middle = await s.emitPostponed(2 * MINUTE_MS);
    await s.advance(HOUR_MS);
    assert.deepEqual(listEventIds(await s.claim()), [early, middle, late]);
  });

  it("a first attempt precedes retries that are overdue by less than an hour, and follows older ones", async (s) => {
    await s.register();
    const old = await s.emitPostponed(MINUTE_MS);
    const recent = await s.emitPostponed(40 * MINUTE_MS);
    await s.advance(HOUR_MS + 2 * MINUTE_MS);
    const { event: first } = await s.emit();
    const { event: second } = await s.emit();
    const order = listEventIds(await s.claim());
    assert.equal(order[0], old);
    assert.deepEqual(new Set(order.slice(1, 3)), new Set([first.id, second.id]));
    assert.deepEqual(order.slice(3), [recent]);
  });
}
