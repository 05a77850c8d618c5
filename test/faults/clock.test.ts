/** Clocks that are wrong, and clocks that jump: of a worker (F48) and of Redis (F49). */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../src/core/clock.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { type Command, type Fate, startCommandProxy } from "./support/redis-command-proxy.js";
import {
  printFigures,
  type Receiver,
  startReceiver,
  startService,
  WHOLE_BOOKS,
} from "./support/redis-service.js";
import { type OpenStore, openStore } from "./support/redis-store.js";
import { eventually, newEvent } from "./support/store-driver.js";

const HOUR_MS = 3_600_000;
const RETRY_MS = 300;
const YEAR_MS = 365 * 24 * HOUR_MS;
/** The storage samples the time of Redis again after so long. */
const SAMPLE_MS = 10_000;

let redis: RedisServer;
let receiver: Receiver;
beforeAll(async () => {
  [redis, receiver] = await Promise.all([startRedis(), startReceiver()]);
  // The first attempt of each event fails.
  const failed = new Set<string>();
  receiver.answer((eventId) => {
    if (failed.has(eventId)) return 200;
    failed.add(eventId);
    return 500;
  });
});
afterAll(async () => {
  await Promise.all([redis.stop(), receiver.close()]);
});

describe("a worker whose wall clock is wrong (F48)", () => {
  test.concurrent.each([
    ["an hour ahead", HOUR_MS],
    ["an hour behind", -HOUR_MS],
    ["ten years ahead", 10 * YEAR_MS],
    ["ten years behind", -10 * YEAR_MS],
  ])(
    "%s: only the signature's time shifts; deliveries, retries and leases keep the time of Redis",
    async (_, shift) => {
      // It is set while the service runs, as an operator would.
      let shiftMs = 0;
      const clock = { ...systemClock, now: () => Date.now() + shiftMs };
      const service = await startService({
        redis: { url: redis.url },
        receiver,
        options: {
          clock,
          retention: { keepMs: 60_000, events: 1_000 },
          retry: { intervalsMs: [RETRY_MS], everyMs: 1_000, windowMs: 60_000, jitter: 0 },
        },
      });
      await service.register(1);
      await service.emit();
      shiftMs = shift;
      const begin = Date.now();
      const { id, deliveries } = await service.emit();
      await service.drained(10_000);
      const arrivals = receiver.arrivals.filter(({ eventId }) => eventId === id);
      expect(arrivals.map(({ status }) => status)).toEqual([500, 200]);
      expect(Math.abs((arrivals[0]?.timestamp ?? 0) * 1_000 - (begin + shift))).toBeLessThan(10_000);
      const delivery = await service.webhooks.deliveries.get(deliveries[0]?.id ?? "");
      const times = (delivery?.attempts ?? []).map(({ at }) => new Date(at).getTime());
      for (const at of times) expect(Math.abs(at - begin)).toBeLessThan(10_000);
      const gapMs = (times[1] ?? 0) - (times[0] ?? 0);
      expect(gapMs).toBeGreaterThanOrEqual(RETRY_MS);
      expect(gapMs).toBeLessThan(RETRY_MS + 3_000);
      const figures = await service.figures();
      printFigures(`F48 a clock shifted by ${shift / HOUR_MS} h`, figures);
      expect(figures).toEqual({ deliveries: 2, lost: 0, duplicates: 0, books: WHOLE_BOOKS });
      await service.stop();
    },
  );
});

/** Redis tells the time through its script `time`; this adds to what it tells. */
const shiftedBy =
  (shiftMs: number) =>
  ({ script }: Command): Fate =>
    script === "time"
      ? {
          instead: [
            "EVAL",
            "local t = redis.call('TIME') return { tostring(t[1] + ARGV[1] / 1000), t[2] }",
            "0",
            String(shiftMs),
          ],
        }
      : "pass";

describe("the clock of Redis jumps (F49)", () => {
  interface Jumping {
    readonly clock: ManualClock;
    readonly opened: OpenStore;
    /**
     * Lets the storage notice; nothing in here waits, so the manual clock is the time that passes.
     */
    readonly jump: (shiftMs: number) => Promise<void>;
    readonly close: () => Promise<void>;
  }

  async function jumping(): Promise<Jumping> {
    const proxy = await startCommandProxy(redis);
    const clock = manualClock(Date.now());
    const opened = openStore({ url: proxy.url }, { clock });
    await opened.register();
    return {
      clock,
      opened,
      async jump(shiftMs: number) {
        const before = opened.store.now();
        proxy.decide(shiftedBy(shiftMs));
        await clock.advance(SAMPLE_MS);
        await opened.store.stats();
        const hasFollowed = (): boolean => Math.abs(opened.store.now() - before - shiftMs) < 2 * SAMPLE_MS;
        await eventually(hasFollowed, { ms: 2_000, what: "the jump is followed" });
      },
      async close() {
        await opened.storage.close();
        await proxy.stop();
      },
    };
  }

  test("forward: what waits comes early once, and a lease is given again once", async () => {
    const { opened, jump, close } = await jumping();
    const [leased, waiting] = [newEvent("clinic"), newEvent("clinic")];
    await opened.append(waiting);
    const [retried] = await opened.claim();
    if (!retried) throw new Error("one is due");
    const dueAt = opened.store.now() + HOUR_MS / 2;
    await opened.settle(retried, { state: "pending", step: 1, dueAt, postponed: 0, crashes: 0 });
    await opened.append(leased);
    const [underWay] = await opened.claim();
    if (!underWay) throw new Error("one is due");
    await jump(HOUR_MS);
    const claims = [...(await opened.claim()), ...(await opened.claim()), ...(await opened.claim())];
    expect(claims.map(({ event }) => event.id).sort()).toEqual([leased.id, waiting.id].sort());
    expect(claims.find(({ event }) => event.id === leased.id)).toMatchObject({
      isRecovered: true,
      crashes: 1,
    });
    // The first holder did deliver: its 2xx counts, and the second one's settles nothing more.
    expect(await opened.settle(underWay)).toBe("settled");
    for (const claim of claims) expect(await opened.settle(claim)).toMatch(/settled|gone/);
    expect(await opened.store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 2 });
    expect((await opened.storage.check()).repaired).toBe(0);
    await close();
  });

  test("backward: nothing is lost, and nothing waits for longer than the jump", async () => {
    const { opened, clock, jump, close } = await jumping();
    const [before, leased] = [newEvent("clinic"), newEvent("clinic")];
    await opened.append(leased);
    expect(await opened.claim({ leaseMs: 60_000 })).toHaveLength(1);
    await opened.append(before);
    await jump(-HOUR_MS / 2);
    const after = newEvent("clinic");
    await opened.append(after);
    const early = await opened.claim();
    expect(early.map(({ event }) => event.id)).toContain(after.id);
    for (let passed = 0; passed <= HOUR_MS / 2 + 60_000; passed += SAMPLE_MS) {
      await clock.advance(SAMPLE_MS);
      await sleep(0);
    }
    const late = await opened.claim();
    const ids = [...early, ...late].map(({ event }) => event.id);
    expect(new Set(ids)).toEqual(new Set([before.id, leased.id, after.id]));
    await close();
  });
});
