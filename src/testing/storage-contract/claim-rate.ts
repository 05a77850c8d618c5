/** The rate of an endpoint: how many of its deliveries are claimed in one second. */

import assert from "node:assert/strict";
import type { Claim } from "../../webhooks/store.js";
import { only, repeat } from "./assertions.js";
import { buildPendingOutcome, SECOND_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

const MANY = 1_000;

const listEventIds = (claims: Claim[]): string[] => claims.map(({ event }) => event.id);

/** Emits events, each a millisecond after the one before. Returns their ids. */
const emitInTurn = (s: Scenario, count: number): Promise<string[]> =>
  repeat(count, async () => {
    await s.advance(1);
    return (await s.emit()).event.id;
  });

/** Claims a few at a time, by both processes in turn, until nothing more is leased. */
async function claimAll(s: Scenario): Promise<Claim[]> {
  const all: Claim[] = [];
  for (let call = 0; call < MANY; call++) {
    const claims = await s.claim({ by: s.alternate(call), room: { fast: 4, slow: 4 } });
    if (claims.length === 0) return all;
    all.push(...claims);
  }
  return assert.fail("there is always more to claim");
}

/** Moves time on to the beginning of the next second, and returns that time. */
async function advanceToNextSecond(s: Scenario): Promise<number> {
  await s.advance(SECOND_MS - (s.now() % SECOND_MS));
  return s.now();
}

/** Checks that nothing is due or leased before the next second begins. */
async function assertWaits(s: Scenario): Promise<void> {
  assert.equal((await s.store.stats()).due, 0);
  const { claims, nextAt } = await s.claimWithNextAt({ by: s.peer });
  assert.deepEqual(claims, []);
  assert.ok(nextAt !== null && nextAt > s.now());
  assert.ok(nextAt <= s.now() - (s.now() % SECOND_MS) + SECOND_MS);
}

/** At most `perSecond` deliveries of an endpoint are claimed in a second of the clock. */
export function testClaimRate(it: DeclareTest): void {
  it(
    "in one second two processes claim no more than the rate, and the rest in the next ones, in order",
    async (s) => {
      const { id } = await s.register();
      const openAt = async () => (await s.peer.deliveryStats(id, s.now()))?.openAt;
      const emitted = await emitInTurn(s, 25);
      assert.equal(await openAt(), s.now());
      assert.deepEqual(listEventIds(await claimAll(s)), emitted.slice(0, 10));
      emitted.push(...(await emitInTurn(s, 2)));
      await assertWaits(s);
      await s.advance(SECOND_MS - (s.now() % SECOND_MS) - 1);
      await assertWaits(s);
      await s.advance(1);
      assert.equal(await openAt(), s.now());
      assert.deepEqual(listEventIds(await claimAll(s)), emitted.slice(10, 20));
      assert.equal(await openAt(), s.now() - (s.now() % SECOND_MS) + SECOND_MS);
      await assertWaits(s);
      await advanceToNextSecond(s);
      assert.deepEqual(listEventIds(await claimAll(s)), emitted.slice(20));
    },
    { perEndpoint: MANY, perSecond: 10 },
  );

  it(
    "an endpoint that waits for the next second holds up no other endpoint, and takes none of its room",
    async (s) => {
      const [busy, calm] = [await s.register(), await s.register({ eventTypes: ["consent.*"] })];
      await emitInTurn(s, 6);
      assert.equal((await claimAll(s)).length, 2);
      const { event } = await s.emit({ type: "consent.created" });
      const claim = only(await s.claim({ room: { fast: 1, slow: 1 } }));
      assert.deepEqual([claim.webhook.id, claim.event.id], [calm.id, event.id]);
      await advanceToNextSecond(s);
      const next = await claimAll(s);
      assert.deepEqual(
        next.map(({ webhook }) => webhook.id),
        [busy.id, busy.id],
      );
    },
    { perEndpoint: MANY, perSecond: 2 },
  );

  it(
    "of the rate, perEndpoint and the slow start, the smallest holds",
    async (s) => {
      await s.register();
      await emitInTurn(s, 20);
      const first = await claimAll(s);
      assert.equal(first.length, 3);
      for (const claim of first) await s.deliver(claim);
      const [last, ...none] = await claimAll(s);
      assert.ok(last);
      assert.deepEqual(none, []);
      await s.deliver(last);
      await assertWaits(s);
      await advanceToNextSecond(s);
      for (const claim of await claimAll(s)) await s.fail(claim);
      await advanceToNextSecond(s);
      await s.deliver(only(await claimAll(s)));
      const two = await claimAll(s);
      assert.equal(two.length, 2);
      for (const claim of two) await s.deliver(claim);
      assert.equal((await claimAll(s)).length, 1);
      await assertWaits(s);
    },
    { perEndpoint: 3, perSecond: 4 },
  );
}

/** Every claim counts, whatever it is for and whatever becomes of it. */
export function testCountedClaims(it: DeclareTest): void {
  it(
    "a delivery counts again when its lease has expired",
    async (s) => {
      await s.register();
      const emitted = await emitInTurn(s, 3);
      assert.equal((await s.claim({ leaseMs: 100 })).length, 2);
      await s.advance(100);
      await assertWaits(s);
      await advanceToNextSecond(s);
      const claims = await claimAll(s);
      assert.deepEqual(listEventIds(claims), emitted.slice(0, 2));
      assert.ok(claims.every(({ isRecovered }) => isRecovered));
      await advanceToNextSecond(s);
      assert.deepEqual(listEventIds(await claimAll(s)), emitted.slice(2));
    },
    { perEndpoint: MANY, perSecond: 2 },
  );

  it(
    "a claim that is settled or postponed in the same second makes no room for another",
    async (s) => {
      await s.register();
      await emitInTurn(s, 5);
      const [one, other, ...none] = await s.claim({ room: { fast: 2, slow: 2 } });
      assert.ok(one && other);
      assert.deepEqual(none, []);
      await assertWaits(s);
      await s.deliver(one);
      await assertWaits(s);
      await s.postpone(other, 0);
      await assertWaits(s);
      await advanceToNextSecond(s);
      assert.equal((await claimAll(s)).length, 2);
    },
    { perEndpoint: MANY, perSecond: 2 },
  );

  it(
    "a delivery that is resent again and again is claimed no more often than the rate",
    async (s) => {
      await s.register();
      const { ids } = await s.emit();
      const counts: number[] = [];
      for (let second = 0; second < 3; second++) {
        let count = 0;
        for (let call = 0; call < 8; call++) {
          await s.resend(only(ids), { by: s.alternate(call) });
          for (const claim of await s.claim({ by: s.alternate(call + 1) })) {
            count += 1;
            await s.deliver(claim);
          }
          await s.advance(1);
        }
        counts.push(count);
        await advanceToNextSecond(s);
      }
      assert.deepEqual(counts, [3, 3, 3]);
    },
    { perEndpoint: MANY, perSecond: 3 },
  );

  it(
    "retries, recovered deliveries and tests count",
    async (s) => {
      const { id } = await s.register();
      await emitInTurn(s, 2);
      for (const claim of await claimAll(s)) await s.fail(claim);
      await advanceToNextSecond(s);
      assert.equal(await s.recoverAll(id), 2);
      await repeat(2, () => s.emit({}, { webhookId: id }));
      // After a failure the slow start lets one through at a time, then two.
      await s.deliver(only(await claimAll(s)));
      await s.retry(only(await claimAll(s)), 0);
      await assertWaits(s);
      await advanceToNextSecond(s);
      await s.deliver(only(await claimAll(s)));
      await s.deliver(only(await claimAll(s)));
      await assertWaits(s);
      await advanceToNextSecond(s);
      await s.deliver(only(await claimAll(s)));
      assert.equal((await s.store.stats()).pending, 0);
    },
    { perEndpoint: MANY, perSecond: 2 },
  );

  it(
    "claims that are sent with events count",
    async (s) => {
      await s.register();
      const claims: Claim[] = [];
      for (let call = 0; call < 5; call++) {
        const by = s.alternate(call);
        const { claimed } = await s.append(s.buildEvent(), { by, claim: s.buildClaimRequest() });
        claims.push(...(claimed?.claims ?? []));
      }
      claims.push(...(await claimAll(s)));
      assert.equal(claims.length, 2);
      await assertWaits(s);
      await advanceToNextSecond(s);
      assert.equal((await claimAll(s)).length, 2);
    },
    { perEndpoint: MANY, perSecond: 2 },
  );

  it(
    "a process whose clock is a little behind counts in the second of the others",
    async (s) => {
      await s.register();
      await emitInTurn(s, 6);
      const now = await advanceToNextSecond(s);
      const [first, second] = await s.claim({ by: s.peer });
      assert.ok(first && second);
      const late = { now: now - 1 };
      await s.store.append({ events: [s.buildEvent()], rememberMs: SECOND_MS, ...late });
      assert.equal((await s.store.stats()).due, 0);
      for (const claim of [first, second]) {
        const outcome = buildPendingOutcome(claim.step, now - 1);
        const settlement = s.buildSettlement(claim, outcome, { attempt: null, endpoint: null });
        await s.store.settle([{ ...settlement, ...late }]);
      }
      assert.equal((await s.store.stats()).due, 0);
      const behind = await s.store.claim({ ...s.buildClaimRequest(), now: now - 1 });
      assert.deepEqual(behind.claims, []);
      assert.ok(behind.nextAt !== null && behind.nextAt > now);
      await assertWaits(s);
      await advanceToNextSecond(s);
      assert.equal((await claimAll(s)).length, 2);
    },
    { perEndpoint: MANY, perSecond: 2 },
  );

  it(
    "stats() counts no delivery as due that waits for the next second",
    async (s) => {
      const { id } = await s.register();
      await emitInTurn(s, 5);
      const countDue = async (): Promise<number> => (await s.peer.stats()).due;
      assert.equal(await countDue(), 5);
      await claimAll(s);
      assert.equal(await countDue(), 0);
      await advanceToNextSecond(s);
      assert.equal(await countDue(), 3);
      await claimAll(s);
      await s.remove(id);
      await s.tidy();
      assert.equal(await countDue(), 0);
      await s.register();
      await s.emit();
      assert.equal((await claimAll(s)).length, 1);
    },
    { perEndpoint: MANY, perSecond: 2 },
  );
}

/** A webhook may have a rate that differs from the option. */
export function testEndpointRate(it: DeclareTest): void {
  const countBy = (claims: Claim[], id: string): number =>
    claims.filter(({ webhook }) => webhook.id === id).length;

  it(
    "the rate of a webhook holds in place of that of all, whether it is lower or higher",
    async (s) => {
      const [low, high, other] = [
        await s.register({ perSecond: 1 }),
        await s.register({ perSecond: 5 }),
        await s.register(),
      ];
      await emitInTurn(s, 8);
      for (const [lowest, highest, usual] of [
        [1, 5, 3],
        [1, 3, 3],
        [1, 0, 2],
      ]) {
        const claims = await claimAll(s);
        assert.deepEqual(
          [countBy(claims, low.id), countBy(claims, high.id), countBy(claims, other.id)],
          [lowest, highest, usual],
        );
        await assertWaits(s);
        // Successes end the slow start and offer the endpoints again.
        for (const claim of claims) await s.deliver(claim);
        await assertWaits(s);
        await advanceToNextSecond(s);
      }
    },
    { perEndpoint: MANY, perSecond: 3 },
  );

  it(
    "a rate that is set, raised, lowered or removed holds from the next claim on",
    async (s) => {
      const { id } = await s.register();
      await emitInTurn(s, 20);
      const claimNext = async () => {
        await advanceToNextSecond(s);
        return (await claimAll(s)).length;
      };
      await s.update(id, { perSecond: 2 }, { by: s.peer });
      assert.equal(await claimNext(), 2);
      assert.equal((await s.store.stats()).due, 0);
      await s.update(id, { perSecond: 5 });
      assert.equal((await claimAll(s)).length, 3);
      assert.equal(await claimNext(), 5);
      await s.update(id, { perSecond: 1 });
      assert.equal(await claimNext(), 1);
      await s.update(id, { description: "as before" });
      assert.equal(await claimNext(), 1);
      await s.update(id, { perSecond: null });
      assert.equal((await claimAll(s)).length, 8);
    },
    { perEndpoint: MANY },
  );
}
