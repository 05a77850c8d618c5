/** Settling deliveries: states, attempts, and many settlements at once. */

import assert from "node:assert/strict";
import type { Claim } from "../../webhooks/store.js";
import { only, overwriteDeep, repeat } from "./assertions.js";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "./builders.js";
import type { DeclareTest } from "./fixture.js";

/** A settlement stores the new state of its delivery. */
export function testOutcomes(it: DeclareTest): void {
  for (const outcome of [
    { state: "delivered" },
    { state: "failed", reason: "exhausted" },
    { state: "withheld", reason: "access_denied" },
  ] as const) {
    it(`a delivery that is settled as ${outcome.state} is final and never claimed again`, async (s) => {
      const { claim } = await s.leaseDelivery();
      await s.advance(SECOND_MS);
      assert.equal(await s.settle(claim, outcome), "settled");
      const record = await s.readDelivery(claim.id);
      assert.equal(record.state, outcome.state);
      assert.equal(record.reason, outcome.state === "delivered" ? null : outcome.reason);
      assert.deepEqual([record.endedAt, record.dueAt], [s.now(), null]);
      assert.equal(record.attempts.length, outcome.state === "withheld" ? 0 : 1);
      assert.equal(await s.settle(claim, outcome), "gone");
      assert.deepEqual(await s.readDelivery(claim.id), record);
      await s.advance(HOUR_MS);
      assert.deepEqual(await s.claim(), []);
      const { pending, leased, ended } = await s.store.stats();
      assert.deepEqual({ pending, leased, ended }, { pending: 0, leased: 0, ended: 1 });
    });
  }

  it("a delivery that stays pending keeps the fields that its next claim needs", async (s) => {
    const { claim } = await s.leaseDelivery();
    const startedAt = s.now();
    await s.advance(SECOND_MS);
    const dueAt = s.now() + MINUTE_MS;
    const outcome = { state: "pending", step: 3, dueAt, postponed: 2, crashes: 4 } as const;
    assert.equal(await s.settle(claim, outcome, { startedAt, endpoint: null }), "settled");
    const record = await s.readDelivery(claim.id);
    assert.deepEqual(
      [record.state, record.step, record.dueAt, record.startedAt, record.endedAt],
      ["pending", 3, dueAt, startedAt, null],
    );
    await s.advance(MINUTE_MS);
    const next = only(await s.claim());
    assert.deepEqual(
      [next.step, next.dueAt, next.startedAt, next.postponed, next.crashes, next.isRecovered, next.isExtra],
      [3, dueAt, startedAt, 2, 4, false, false],
    );
  });

  it("a settlement without startedAt keeps the stored one", async (s) => {
    const { claim } = await s.leaseDelivery();
    const startedAt = s.now();
    await s.postpone(claim, 0, { startedAt: null });
    assert.equal((await s.readDelivery(claim.id)).startedAt, null);
    await s.postpone(only(await s.claim()), 0, { startedAt });
    await s.postpone(only(await s.claim()), 0, { startedAt: null });
    assert.equal((await s.readDelivery(claim.id)).startedAt, startedAt);
  });

  it("settling an unknown delivery returns gone", async (s) => {
    const { claim } = await s.leaseDelivery();
    const { webhook, event } = claim;
    assert.equal(await s.deliver({ ...claim, id: `${webhook.id}.${event.id}.7` }), "gone");
    assert.equal(await s.fail({ ...claim, id: "nonsense" }), "gone");
    assert.equal((await s.store.stats()).leased, 1);
  });

  it("settling a delivery of another account returns gone and changes nothing", async (s) => {
    const { claim } = await s.leaseDelivery();
    await s.register({ account: "hospital" });
    for (const account of ["hospital", "nobody"]) {
      assert.equal(await s.deliver(claim, { account }), "gone");
      assert.equal(await s.retry(claim, HOUR_MS, { account }), "gone");
    }
    assert.deepEqual((await s.readDelivery(claim.id)).attempts, []);
    assert.equal(await s.deliver(claim), "settled");
  });
}

/** A delivery keeps its latest attempts. */
export function testAttempts(it: DeclareTest): void {
  it("attempts are stored in order and with all their fields", async (s) => {
    const { claim } = await s.leaseDelivery();
    const attempts = Array.from({ length: 14 }, (_, step) => ({
      at: s.now() + step,
      durationMs: 15_000 + step,
      step,
      isExtra: step % 2 === 1,
      kind: step % 2 ? ("timeout" as const) : ("http" as const),
      status: step % 2 ? null : 500 + step,
      code: step % 2 ? "DEADLINE" : `HTTP_${500 + step}`,
      excerpt: step % 2 ? null : '<p>\u2028 Grüße \u{1F514} "quoted"',
    }));
    let next = claim;
    for (const attempt of attempts) {
      const passedIn = { ...attempt };
      await s.postpone(next, 0, { attempt: passedIn });
      overwriteDeep(passedIn);
      next = only(await s.claim());
    }
    overwriteDeep(await s.store.getDelivery(claim.id));
    overwriteDeep(await s.store.listDeliveries({ webhookId: claim.webhook.id, limit: 5 }));
    assert.deepEqual((await s.readDelivery(claim.id)).attempts, attempts);
  });

  it("a delivery keeps its latest fifty attempts", async (s) => {
    const { claim } = await s.leaseDelivery();
    await s.retry(claim, 0);
    await repeat(51, async () => {
      await s.advance(1);
      await s.retry(only(await s.claim()), 0);
    });
    const { attempts } = await s.readDelivery(claim.id);
    assert.deepEqual(
      attempts.map(({ at }) => s.now() - at),
      Array.from({ length: 50 }, (_, ago) => 49 - ago),
    );
  });
}

/** Settlements of one call, or of concurrent calls, do not affect each other. */
export function testBatches(it: DeclareTest): void {
  it("each settlement of one call is stored by itself and has a result, in order", async (s) => {
    await s.register();
    await s.register();
    await repeat(3, () => s.emit());
    const claims = await s.claim();
    assert.equal(claims.length, 6);
    const [delivered, retried, stale, failed, alsoDelivered, left] = claims as [
      Claim,
      Claim,
      Claim,
      Claim,
      Claim,
      Claim,
    ];
    const pending = {
      state: "pending",
      step: 1,
      dueAt: s.now() + MINUTE_MS,
      postponed: 0,
      crashes: 0,
    } as const;
    const withheld = { state: "withheld", reason: "access_denied" } as const;
    const results = await s.store.settle([
      s.buildSettlement(delivered, { state: "delivered" }),
      s.buildSettlement(retried, pending),
      s.buildSettlement(stale, withheld, { token: "made up" }),
      s.buildSettlement({ ...left, id: `${left.id}.7` }, { state: "delivered" }),
      s.buildSettlement(failed, { state: "failed", reason: "exhausted" }),
      s.buildSettlement(alsoDelivered, { state: "delivered" }),
    ]);
    assert.deepEqual(results, ["settled", "settled", "stale", "gone", "settled", "settled"]);
    const states = await Promise.all(claims.map(async ({ id }) => (await s.readDelivery(id)).state));
    assert.deepEqual(states, ["delivered", "pending", "pending", "failed", "delivered", "pending"]);
    const { leased, ended } = await s.store.stats();
    assert.deepEqual({ leased, ended }, { leased: 2, ended: 3 });
    assert.deepEqual(await s.store.settle([]), []);
  });

  it("two concurrent settlements of one claim are stored once", async (s) => {
    const { claim } = await s.leaseDelivery();
    const responses = await Promise.all([s.retry(claim, 0), s.retry(claim, 0, { by: s.peer })]);
    assert.deepEqual(responses.sort(), ["settled", "stale"]);
    assert.equal((await s.readDelivery(claim.id)).attempts.length, 1);
  });

  it(
    "a hundred concurrent settlements are all stored",
    async (s) => {
      await s.register();
      await s.register();
      await repeat(50, () => s.emit());
      const claims = await s.claim();
      const responses = await Promise.all(
        claims.map((claim, index) => s.deliver(claim, { by: s.alternate(index) })),
      );
      assert.deepEqual(new Set(responses), new Set(["settled"]));
      const { pending, leased, ended } = await s.store.stats();
      assert.deepEqual({ pending, leased, ended }, { pending: 0, leased: 0, ended: 100 });
    },
    { perEndpoint: 100 },
  );
}
