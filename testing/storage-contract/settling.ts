/** The storage contract on reports: what a settlement changes, whose counts, and what it says of the endpoint. */

import assert from "node:assert/strict";
import type { Claim } from "../../src/webhooks/store.js";
import { only, times, vandalise } from "./lists.js";
import {
  type DeclareTest,
  HOUR_MS,
  LEASE_MS,
  MINUTE_MS,
  NOTICE_MS,
  reportOn,
  type Scenario,
  SECOND_MS,
} from "./scenario.js";

/** A webhook with one delivery under lease. */
async function underway(s: Scenario) {
  const { id: webhookId } = await s.register();
  await s.emit();
  return { webhookId, claim: only(await s.claim()) };
}

async function healthOf({ webhook }: Scenario, id: string) {
  const { failingSince, warnedAt, noticeAt } = await webhook(id);
  return { failingSince, warnedAt, noticeAt };
}

const WELL = { failingSince: null, warnedAt: null, noticeAt: null };

export function settling(declare: DeclareTest): void {
  for (const outcome of [
    { state: "delivered" },
    { state: "failed", reason: "exhausted" },
    { state: "withheld", reason: "access_denied" },
  ] as const) {
    declare(
      `a delivery that ends as ${outcome.state} is recorded once and not attempted again`,
      async (s) => {
        const { claim } = await underway(s);
        await s.advance(SECOND_MS);
        assert.equal(await s.settle(claim, outcome), "settled");
        const record = await s.delivery(claim.id);
        assert.equal(record.state, outcome.state);
        assert.equal(record.reason, outcome.state === "delivered" ? null : outcome.reason);
        assert.deepEqual([record.endedAt, record.dueAt], [s.now(), null]);
        assert.equal(record.attempts.length, outcome.state === "withheld" ? 0 : 1);
        assert.equal(await s.settle(claim, outcome), "gone");
        assert.deepEqual(await s.delivery(claim.id), record);
        await s.advance(HOUR_MS);
        assert.deepEqual(await s.claim(), []);
        const { pending, leased, ended } = await s.store.stats();
        assert.deepEqual({ pending, leased, ended }, { pending: 0, leased: 0, ended: 1 });
      },
    );
  }

  declare("a delivery that stays pending keeps what its next claim has to know", async (s) => {
    const { claim } = await underway(s);
    const startedAt = s.now();
    await s.advance(SECOND_MS);
    const dueAt = s.now() + MINUTE_MS;
    const outcome = { state: "pending", step: 3, dueAt, postponed: 2, crashes: 4 } as const;
    assert.equal(await s.settle(claim, outcome, { startedAt, endpoint: null }), "settled");
    const record = await s.delivery(claim.id);
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

  declare("a report without a start leaves the schedule as it is", async (s) => {
    const { claim } = await underway(s);
    const startedAt = s.now();
    await s.putOff(claim, 0, { startedAt: null });
    assert.equal((await s.delivery(claim.id)).startedAt, null);
    await s.putOff(only(await s.claim()), 0, { startedAt });
    await s.putOff(only(await s.claim()), 0, { startedAt: null });
    assert.equal((await s.delivery(claim.id)).startedAt, startedAt);
  });

  declare("attempts are kept in their order, with all that they say", async (s) => {
    const { claim } = await underway(s);
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
      await s.putOff(next, 0, { attempt: passedIn });
      vandalise(passedIn);
      next = only(await s.claim());
    }
    vandalise(await s.store.getDelivery(claim.id));
    vandalise(await s.store.listDeliveries({ webhookId: claim.webhook.id, limit: 5 }));
    assert.deepEqual((await s.delivery(claim.id)).attempts, attempts);
  });

  declare("the latest fifty attempts of a delivery are kept", async (s) => {
    const { claim } = await underway(s);
    await s.retry(claim, 0);
    await times(51, async () => {
      await s.advance(1);
      await s.retry(only(await s.claim()), 0);
    });
    const { attempts } = await s.delivery(claim.id);
    assert.deepEqual(
      attempts.map(({ at }) => s.now() - at),
      Array.from({ length: 50 }, (_, ago) => 49 - ago),
    );
  });

  declare("a repeated report of a failed attempt counts once", async (s) => {
    const { claim } = await underway(s);
    assert.equal(await s.retry(claim, MINUTE_MS), "settled");
    const record = await s.delivery(claim.id);
    await s.advance(SECOND_MS);
    assert.equal(await s.retry(claim, MINUTE_MS, { by: s.other }), "stale");
    assert.deepEqual(await s.delivery(claim.id), record);
  });

  declare("a failure that comes after another claim took over is stale and changes nothing", async (s) => {
    const { webhookId, claim } = await underway(s);
    await s.advance(LEASE_MS);
    const taken = only(await s.claim({ by: s.other }));
    assert.equal(await s.retry(claim, HOUR_MS), "stale");
    assert.equal(await s.fail(claim), "stale");
    assert.equal(await s.settle(claim, { state: "withheld", reason: "access_denied" }), "stale");
    const record = await s.delivery(claim.id);
    assert.deepEqual([record.state, record.attempts], ["pending", []]);
    assert.deepEqual(await healthOf(s, webhookId), WELL);
    assert.equal((await s.store.stats()).leased, 1);
    assert.equal(await s.deliver(taken, { by: s.other }), "settled");
  });

  declare("a failure with a made-up token is stale", async (s) => {
    const { claim } = await underway(s);
    assert.equal(await s.fail(claim, { token: "made up" }), "stale");
    assert.equal(await s.retry(claim, 0), "settled");
  });

  declare("a 2xx counts after another claim took over, and that one finds it gone", async (s) => {
    const { webhookId, claim } = await underway(s);
    await s.advance(LEASE_MS);
    const taken = only(await s.claim({ by: s.other }));
    assert.equal(await s.deliver(claim), "settled");
    assert.equal((await s.delivery(claim.id)).state, "delivered");
    assert.equal(await s.retry(taken, 0, { by: s.other }), "gone");
    assert.equal(await s.deliver(taken, { by: s.other }), "gone");
    assert.equal((await s.delivery(claim.id)).attempts.length, 1);
    const { pending, leased } = await s.store.stats();
    assert.deepEqual({ pending, leased }, { pending: 0, leased: 0 });
    await times(5, () => s.emit());
    const claims = await s.claim();
    assert.deepEqual(new Set(claims.map(({ webhook }) => webhook.id)), new Set([webhookId]));
    assert.equal(claims.length, 5);
  });

  declare("a 2xx counts while its delivery waits for a retry", async (s) => {
    const { claim } = await underway(s);
    await s.advance(LEASE_MS);
    await s.retry(only(await s.claim({ by: s.other })), HOUR_MS);
    assert.equal(await s.deliver(claim), "settled");
    await s.advance(HOUR_MS);
    assert.deepEqual(await s.claim(), []);
    assert.equal((await s.store.stats()).pending, 0);
  });

  declare("a 2xx outranks failed, and nothing outranks delivered or withheld", async (s) => {
    const { claim } = await underway(s);
    await s.fail(claim);
    await s.advance(MINUTE_MS);
    assert.equal(await s.deliver(claim), "settled");
    const record = await s.delivery(claim.id);
    assert.deepEqual([record.state, record.reason, record.endedAt], ["delivered", null, s.now()]);
    assert.equal(await s.fail(claim), "gone");
    assert.equal(await s.deliver(claim), "gone");
    assert.deepEqual(await s.delivery(claim.id), record);

    await s.emit();
    const withheld = only(await s.claim());
    await s.settle(withheld, { state: "withheld", reason: "access_denied" });
    assert.equal(await s.deliver(withheld), "gone");
    assert.equal((await s.delivery(withheld.id)).state, "withheld");
    const { events, pending, ended } = await s.store.stats();
    assert.deepEqual({ events, pending, ended }, { events: 2, pending: 0, ended: 2 });
  });

  declare("a report between the end of a lease and the next claim loses nothing", async (s) => {
    const { claim } = await underway(s);
    await s.advance(LEASE_MS);
    const result = await s.retry(claim, MINUTE_MS);
    assert.ok(result === "settled" || result === "stale");
    assert.equal((await s.delivery(claim.id)).attempts.length, result === "settled" ? 1 : 0);
    await s.advance(MINUTE_MS);
    const next = only(await s.claim());
    assert.deepEqual([next.step, next.crashes], result === "settled" ? [1, 0] : [0, 1]);
  });

  declare("two concurrent reports of one claim are recorded once", async (s) => {
    const { claim } = await underway(s);
    const answers = await Promise.all([s.retry(claim, 0), s.retry(claim, 0, { by: s.other })]);
    assert.deepEqual(answers.sort(), ["settled", "stale"]);
    assert.equal((await s.delivery(claim.id)).attempts.length, 1);
  });

  declare(
    "reports of one call are recorded each for itself, with a result for each in their order",
    async (s) => {
      await s.register();
      await s.register();
      await times(3, () => s.emit());
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
        s.settlementOf(delivered, { state: "delivered" }),
        s.settlementOf(retried, pending),
        s.settlementOf(stale, withheld, { token: "made up" }),
        s.settlementOf({ ...left, id: `${left.id}.7` }, { state: "delivered" }),
        s.settlementOf(failed, { state: "failed", reason: "exhausted" }),
        s.settlementOf(alsoDelivered, { state: "delivered" }),
      ]);
      assert.deepEqual(results, ["settled", "settled", "stale", "gone", "settled", "settled"]);
      const states = await Promise.all(claims.map(async ({ id }) => (await s.delivery(id)).state));
      assert.deepEqual(states, ["delivered", "pending", "pending", "failed", "delivered", "pending"]);
      const { leased, ended } = await s.store.stats();
      assert.deepEqual({ leased, ended }, { leased: 2, ended: 3 });
      assert.deepEqual(await s.store.settle([]), []);
    },
  );

  declare("an unknown delivery is gone", async (s) => {
    const { claim } = await underway(s);
    const { webhook, event } = claim;
    assert.equal(await s.deliver({ ...claim, id: `${webhook.id}.${event.id}.7` }), "gone");
    assert.equal(await s.fail({ ...claim, id: "nonsense" }), "gone");
    assert.equal((await s.store.stats()).leased, 1);
  });

  declare("a report that names another account is on nothing", async (s) => {
    const { claim } = await underway(s);
    await s.register({ account: "hospital" });
    for (const account of ["hospital", "nobody"]) {
      assert.equal(await s.deliver(claim, { account }), "gone");
      assert.equal(await s.retry(claim, HOUR_MS, { account }), "gone");
    }
    assert.deepEqual((await s.delivery(claim.id)).attempts, []);
    assert.equal(await s.deliver(claim), "settled");
  });

  declare(
    "the first failure starts the health clock, later ones leave it, a success clears it",
    async (s) => {
      const { webhookId, claim } = await underway(s);
      const { updatedAt } = await s.webhook(webhookId);
      await s.advance(SECOND_MS);
      const since = s.now();
      await s.retry(claim, 0);
      assert.deepEqual(await healthOf(s, webhookId), {
        failingSince: since,
        warnedAt: null,
        noticeAt: since + NOTICE_MS,
      });
      await s.advance(MINUTE_MS);
      await s.retry(only(await s.claim()), 0);
      assert.equal((await s.webhook(webhookId)).failingSince, since);
      assert.equal((await s.webhook(webhookId)).noticeAt, since + NOTICE_MS);
      await s.deliver(only(await s.claim()));
      assert.deepEqual(await healthOf(s, webhookId), WELL);
      assert.ok((await s.webhook(webhookId)).updatedAt >= updatedAt);
    },
  );

  declare("a late 2xx tells of the endpoint too", async (s) => {
    const { webhookId, claim } = await underway(s);
    await s.fail(claim);
    assert.notEqual((await s.webhook(webhookId)).failingSince, null);
    await s.deliver(claim);
    assert.deepEqual(await healthOf(s, webhookId), WELL);
  });

  declare("a report without a word about the endpoint moves no health", async (s) => {
    const { webhookId, claim } = await underway(s);
    await s.putOff(claim, 0);
    assert.deepEqual(await healthOf(s, webhookId), WELL);
  });

  declare("a report on an older url says nothing about the endpoint", async (s) => {
    const { webhookId, claim } = await underway(s);
    await times(6, () => s.emit());
    await s.update(webhookId, { url: "https://subscriber.example/moved" });
    await s.retry(claim, HOUR_MS, { endpoint: reportOn(claim, s.now(), { ok: false, lane: "fast" }) });
    assert.deepEqual(await healthOf(s, webhookId), WELL);
    const claims = await s.claim({ room: { fast: 0 } });
    assert.equal(claims.length, 5);
    const [current, other] = claims;
    assert.ok(current && other);
    await s.retry(current, HOUR_MS);
    const failing = await healthOf(s, webhookId);
    await s.deliver(other, { endpoint: reportOn(claim, s.now()) });
    assert.deepEqual(await healthOf(s, webhookId), failing);
  });

  declare("a webhook that a user disabled does not begin to fail", async (s) => {
    const { webhookId, claim } = await underway(s);
    await s.update(webhookId, { status: "DISABLED" });
    await s.retry(claim, HOUR_MS);
    assert.deepEqual(await healthOf(s, webhookId), WELL);
  });

  declare(
    "a hundred concurrent reports are all recorded",
    async (s) => {
      await s.register();
      await s.register();
      await times(50, () => s.emit());
      const claims = await s.claim();
      const answers = await Promise.all(
        claims.map((claim, index) => s.deliver(claim, { by: index % 2 ? s.other : s.store })),
      );
      assert.deepEqual(new Set(answers), new Set(["settled"]));
      const { pending, leased, ended } = await s.store.stats();
      assert.deepEqual({ pending, leased, ended }, { pending: 0, leased: 0, ended: 100 });
    },
    { perEndpoint: 100 },
  );
}
