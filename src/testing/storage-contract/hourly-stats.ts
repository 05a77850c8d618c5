/** The attempts of 72 hours, with the quantiles of their durations. */

import assert from "node:assert/strict";
import type { Claim, HourStats, Settlement, WebhookStore } from "../../webhooks/store.js";
import { only, repeat } from "./assertions.js";
import { HOUR_MS, MINUTE_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

/** How many deliveries are settled in one call. */
const BATCH = 25;

interface TimedOptions {
  isOk?: boolean;
  by?: WebhookStore;
}

/** Builds the settlement of an attempt that took so long. */
function buildTimed(s: Scenario, claim: Claim, durationMs: number, isOk = true): Settlement {
  const outcome = isOk
    ? ({ state: "delivered" } as const)
    : ({ state: "failed", reason: "exhausted" } as const);
  const { attempt, ...settlement } = s.buildSettlement(claim, outcome);
  return { ...settlement, attempt: attempt && { ...attempt, durationMs } };
}

/** Emits an event for each duration, and settles its deliveries, which took that long. */
async function attempt(s: Scenario, durations: number[], { isOk, by }: TimedOptions = {}) {
  await repeat(durations.length, () => s.emit());
  const claims = await s.claim({ by });
  assert.equal(claims.length, durations.length);
  for (let from = 0; from < claims.length; from += BATCH) {
    const settlements = claims
      .slice(from, from + BATCH)
      .map((claim, index) => buildTimed(s, claim, durations[from + index] ?? 0, isOk));
    const results = await (by ?? s.store).settle(settlements);
    assert.ok(results.every((result) => result === "settled"));
  }
}

async function readHours(s: Scenario, webhookId: string): Promise<HourStats[]> {
  const stats = await s.peer.deliveryStats(webhookId, s.now());
  assert.ok(stats);
  return [...stats.hours];
}

/** The hours with their counts, as hours before the current one. */
const listCounts = (hours: HourStats[], now: number): number[][] =>
  hours.map(({ at, delivered, failed }) => [(at - now) / HOUR_MS, delivered, failed]);

/** The duration that so many percent did not exceed. */
const findExact = (durations: number[], percent: number): number =>
  durations.toSorted((one, other) => one - other)[Math.ceil((durations.length * percent) / 100) - 1] ?? 0;

/** 5 %, and half a millisecond. */
function assertNear(quantile: number | null | undefined, exact: number): void {
  const error = Math.abs((quantile ?? Number.NaN) - exact);
  assert.ok(error <= 0.05 * exact + 0.5, `${quantile} is not ${exact}`);
}

const COUNT = 200;
/** Numbers between 0 and 1, evenly spread and in no order. */
const spread = (index: number): number => ((index * 89) % COUNT) / COUNT;

const DISTRIBUTIONS: Record<string, (part: number) => number> = {
  constant: () => 18,
  "a few milliseconds": (part) => part * 12,
  even: (part) => 100 + part * 900,
  "with a long tail": (part) => 20 - 40 * Math.log(1 - part),
  "of two kinds": (part) => (part < 0.9 ? 30 + part * 10 : 4_000 + part * 100),
  "from a millisecond to a minute": (part) => 60_000 ** part,
};

/** Declares the tests of the counts and the quantiles of each hour. */
export function testHourlyStats(it: DeclareTest): void {
  it("attempts are counted by the hour, also those that failed and are repeated", async (s) => {
    const { id } = await s.register();
    const { id: other } = await s.register({ eventTypes: ["consent.*"] });
    assert.deepEqual(await readHours(s, id), []);
    const startedAt = s.now();
    await attempt(s, [5, 7, 9]);
    await s.advance(HOUR_MS - 1);
    await attempt(s, [300], { isOk: false });
    await s.advance(1);
    await s.emit();
    await s.retry(only(await s.claim()), MINUTE_MS);
    await s.advance(MINUTE_MS);
    await s.deliver(only(await s.claim()));
    await s.advance(3 * HOUR_MS);
    await attempt(s, [1_000]);
    const expected = [
      { at: startedAt, delivered: 3, failed: 1, p50: 7, p95: 300 },
      { at: startedAt + HOUR_MS, delivered: 1, failed: 1, p50: 12, p95: 12 },
      { at: startedAt + 4 * HOUR_MS, delivered: 1, failed: 0, p50: 1_000, p95: 1_000 },
    ];
    const read = await readHours(s, id);
    const counts = ({ at, delivered, failed }: HourStats) => ({ at, delivered, failed });
    assert.deepEqual(read.map(counts), expected.map(counts));
    for (const [index, { p50, p95 }] of expected.entries()) {
      assertNear(read[index]?.p50, p50);
      assertNear(read[index]?.p95, p95);
    }
    assert.deepEqual(await readHours(s, other), []);
  });

  it("hours do not count tests and what was not attempted", async (s) => {
    const { id } = await s.register();
    await s.emit();
    await s.settle(only(await s.claim()), { state: "withheld", reason: "access_denied" });
    await s.emit();
    await s.postpone(only(await s.claim()), HOUR_MS);
    await s.append(s.buildEvent({ type: "webhook.test" }), { webhookId: id });
    await s.fail(only(await s.claim()), { endpoint: null });
    await s.emit();
    const expired = only(await s.claim());
    await s.settle(expired, { state: "failed", reason: "expired" }, { attempt: null, endpoint: null });
    assert.deepEqual(await readHours(s, id), []);
    await s.deliver(expired);
    assert.deepEqual(listCounts(await readHours(s, id), s.now()), [[0, 1, 0]]);
  });

  it("hours are 72 at most", async (s) => {
    const { id } = await s.register();
    for (let hour = 0; hour < 80; hour++) {
      await attempt(s, [hour + 1], { isOk: hour % 2 === 0, by: s.alternate(hour) });
      await s.advance(HOUR_MS);
    }
    const read = await readHours(s, id);
    assert.equal(read.length, 71);
    await attempt(s, [1]);
    const counts = Array.from({ length: 72 }, (_, index) => [index - 71, index % 2, (index + 1) % 2]);
    assert.deepEqual(listCounts(await readHours(s, id), s.now()), [...counts.slice(0, -1), [0, 1, 0]]);
    await s.advance(70 * HOUR_MS);
    assert.deepEqual(listCounts(await readHours(s, id), s.now()), [
      [-71, 0, 1],
      [-70, 1, 0],
    ]);
    await s.advance(2 * HOUR_MS);
    assert.deepEqual(await readHours(s, id), []);
    await attempt(s, [1]);
    assert.deepEqual(listCounts(await readHours(s, id), s.now()), [[0, 1, 0]]);
  });

  it("batches of several endpoints, and of two processes, are counted in full", async (s) => {
    const webhooks = await repeat(3, () => s.register());
    // Failures come last, because an endpoint that fails gets fewer deliveries at once.
    for (let round = 0; round < 3; round++) {
      await repeat(4, () => s.emit());
      const room = { fast: 6, slow: 6 };
      const claims = [await s.claim({ room }), await s.claim({ room, by: s.peer })];
      assert.equal(claims.flat().length, 12);
      const results = await s.callConcurrently(2, (by) =>
        by.settle(
          (by === s.store ? claims[0] : claims[1])?.map((claim, index) =>
            buildTimed(s, claim, 10 * (index + 1), round < 2 || index % 4 > 0),
          ) ?? [],
        ),
      );
      assert.ok(results.flat().every((result) => result === "settled"));
      await s.advance(HOUR_MS);
    }
    const all = await Promise.all(webhooks.map(({ id }) => readHours(s, id)));
    for (const hours of all) assert.equal(hours.length, 3);
    const counts = all.flat().map(({ delivered, failed }) => delivered + failed);
    assert.deepEqual(
      counts,
      counts.map(() => 4),
    );
  });

  it("a clock that jumps neither loses attempts nor shows later hours", async (s) => {
    const { id } = await s.register();
    const settleAt = async (now: number) => {
      await s.emit();
      const claim = only(await s.claim());
      assert.equal((await s.store.settle([{ ...buildTimed(s, claim, 40), now }]))[0], "settled");
    };
    await settleAt(s.now());
    await s.advance(2 * HOUR_MS);
    await settleAt(s.now());
    await settleAt(s.now() - 2 * HOUR_MS);
    const before = [
      [-2, 1, 0],
      [0, 2, 0],
    ];
    assert.deepEqual(listCounts(await readHours(s, id), s.now()), before);
    await settleAt(s.now() + 100 * HOUR_MS);
    await settleAt(s.now());
    assert.deepEqual(listCounts(await readHours(s, id), s.now()), [
      [-2, 1, 0],
      [0, 4, 0],
    ]);
    await s.advance(101 * HOUR_MS);
    await settleAt(s.now());
    assert.deepEqual(listCounts(await readHours(s, id), s.now()), [
      [-1, 2, 0],
      [0, 1, 0],
    ]);
  });

  it("a webhook that is registered again has no hours", async (s) => {
    const { id, url } = await s.register();
    await attempt(s, [10]);
    await s.advance(HOUR_MS);
    await attempt(s, [20]);
    await s.remove(id);
    await s.tidy();
    assert.equal(await s.store.deliveryStats(id, s.now()), undefined);
    const { id: again } = await s.register({ url });
    assert.deepEqual(await readHours(s, again), []);
    await s.advance(HOUR_MS);
    await attempt(s, [30]);
    assert.deepEqual(listCounts(await readHours(s, again), s.now()), [[0, 1, 0]]);
  });

  for (const [name, at] of Object.entries(DISTRIBUTIONS)) {
    it(
      `quantiles of durations are right within 5 %: ${name}`,
      async (s) => {
        const { id } = await s.register();
        const durations = Array.from({ length: COUNT }, (_, index) => Math.round(at(spread(index))));
        await attempt(s, durations);
        const now = only(await readHours(s, id));
        assertNear(now.p50, findExact(durations, 50));
        assertNear(now.p95, findExact(durations, 95));
        await s.advance(HOUR_MS);
        await attempt(s, durations, { isOk: false });
        const [past, current] = await readHours(s, id);
        assert.deepEqual(past, now);
        assert.deepEqual([current?.p50, current?.p95], [now.p50, now.p95]);
      },
      { perEndpoint: 2 * COUNT },
    );
  }
}
