/** Responses to a supervisor, and their times. */

import { describe, expect, it } from "vitest";
import { createContent } from "../../src/content/index.js";
import type { ContentStore } from "../../src/content/store.js";
import { createHealth, type Health } from "../../src/index.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { evaluateHealthStatus } from "../../src/webhooks/health-status.js";
import { readConfig } from "../../src/webhooks/options.js";
import { memoryStorage } from "../../storage/memory/index.js";
import {
  eventLoopTurn,
  forever,
  HOUR,
  MINUTE,
  openHarness,
  SECOND,
  START,
  startHarness,
} from "../support/webhook-harness.js";

/** Asks, letting the sample of the event loop pass. */
async function ask(
  options: Parameters<typeof createHealth>[0] & { readonly clock: ReturnType<typeof manualClock> },
  {
    path = "/healthz",
    lateMs = 0,
    freeze,
  }: { path?: string; lateMs?: number; freeze?: (ms: number) => void } = {},
): Promise<{ readonly status: number; readonly health: Health }> {
  const service = createHealth(options);
  const asked = service.handle({ method: "GET", path, query: "", headers: {}, body: null, baseUrl: "" });
  await eventLoopTurn();
  freeze?.(lateMs);
  await options.clock.advance(20);
  const answer = await asked;
  return { status: answer?.status ?? 0, health: JSON.parse(answer?.body as string) as Health };
}

/** A clock whose `freeze` advances the time without firing timers, as for a stopped process. */
function frozen() {
  const manual = manualClock(START);
  let ms = 0;
  const clock: ManualClock = { ...manual, monotonic: () => manual.monotonic() + ms };
  return {
    clock,
    freeze: (forMs: number): void => {
      ms = forMs;
    },
  };
}

const REACHED = { hasFailed: false, unreachedMs: 0, outageMs: 0, cause: undefined };

const away = (): Promise<never> => Promise.reject(new Error("away"));

describe("the health of webhooks", () => {
  it("is green before the start, while it runs and after the stop", async () => {
    const { webhooks, clock, stop } = openHarness();
    const fine = { status: "ok", eventLoop: { status: "ok", delayMs: 0 } };
    const part = (started: boolean) => ({ status: "ok", started, problems: [] });
    expect(await ask({ webhooks, clock })).toEqual({
      status: 200,
      health: { ...fine, webhooks: part(false) },
    });
    await webhooks.start();
    expect((await ask({ webhooks, clock })).health).toEqual({ ...fine, webhooks: part(true) });
    await stop(0);
    expect((await ask({ webhooks, clock })).health).toEqual({ ...fine, webhooks: part(false) });
  });

  it("stays green where the process that should deliver is not started, and says so", async () => {
    const { webhooks, clock, register, emit, run } = openHarness();
    await register();
    await emit();
    await run(MINUTE);
    const { status, health } = await ask({ webhooks, clock });
    const reason = "Deliveries are due and no process attempts them: call start() in one.";
    const problems = [{ code: "not_started", forMs: MINUTE, reason }];
    expect([status, health.webhooks]).toEqual([200, { status: "ok", started: false, problems }]);
  });

  it("stays green through hours in which nothing is due", async () => {
    const { webhooks, clock, run, stop } = await startHarness();
    for (let hour = 0; hour < 3; hour++) {
      await run(0.7 * HOUR);
      expect((await ask({ webhooks, clock })).health.webhooks?.problems).toEqual([]);
    }
    await stop(0);
  });

  it("is red once the storage has been away for 30 s, and green with its return", async () => {
    let isAway = true;
    const { webhooks, clock, run, stop } = await startHarness({
      change: (store) => ({ claim: (request) => (isAway ? away() : store.claim(request)) }),
    });
    await run(29 * SECOND);
    const early = await ask({ webhooks, clock });
    expect(early).toMatchObject({ status: 200, health: { webhooks: { status: "ok" } } });
    expect(early.health.webhooks?.problems).toMatchObject([{ code: "storage_away" }]);
    await run(2 * SECOND);
    const late = await ask({ webhooks, clock });
    expect(late).toMatchObject({
      status: 503,
      health: { status: "failing", webhooks: { status: "failing" } },
    });
    expect(await ask({ webhooks, clock }, { path: "/livez" })).toMatchObject({ status: 200 });
    isAway = false;
    await run(6 * SECOND);
    expect(await ask({ webhooks, clock })).toMatchObject({ status: 200, health: { status: "ok" } });
    await stop(0);
  });

  it("is red while a turn that was due does not come, and green when it has come", async () => {
    const { clock, freeze } = frozen();
    const harness = await startHarness({ answer: () => 500, clock });
    const { webhooks } = harness;
    await harness.register();
    await harness.emit();
    await harness.quiet();
    freeze(MINUTE / 2);
    expect((await ask({ webhooks, clock })).health.webhooks?.problems).toEqual([]);
    // The retry was due long ago.
    freeze(HOUR);
    const red = await ask({ webhooks, clock });
    expect(red).toMatchObject({ status: 503, health: { webhooks: { status: "failing" } } });
    expect(red.health.webhooks?.problems).toMatchObject([{ code: "loop_stalled" }]);
    expect(await ask({ webhooks, clock }, { path: "/livez" })).toMatchObject({ status: 503 });
    await harness.run(HOUR);
    expect(await ask({ webhooks, clock })).toMatchObject({ status: 200 });
    await harness.stop(0);
  });

  it("lives on while outcomes wait for a storage that is away, however many: ended now, they would be sent again", async () => {
    let isAway = false;
    const { webhooks, clock, register, emit, quiet, run, stop, sent } = await startHarness({
      options: { delivery: { concurrency: 1, slowConcurrency: 1 } },
      change: (store) => ({ settle: (settlements) => (isAway ? away() : store.settle(settlements)) }),
    });
    await register();
    isAway = true;
    for (let count = 0; count < 10; count++) await emit();
    await quiet();
    // Twice as many as there are slots: nothing more is claimed until they are stored.
    expect(sent).toHaveLength(4);
    await run(40 * SECOND);
    const red = await ask({ webhooks, clock });
    expect(red).toMatchObject({
      status: 503,
      health: { webhooks: { problems: [{ code: "storage_away" }] } },
    });
    expect(await ask({ webhooks, clock }, { path: "/livez" })).toMatchObject({ status: 200 });
    isAway = false;
    await run(6 * SECOND);
    expect((await ask({ webhooks, clock })).health.webhooks?.problems).toEqual([]);
    expect(sent).toHaveLength(10);
    await stop(0);
  });

  it("bears a turn that is late because all slots are taken, for as long as attempts may take", () => {
    const settings = readConfig({
      storage: memoryStorage(),
      access: { authenticate: () => null, canRead: () => true },
    });
    const codes = (overdueMs: number, isFull: boolean) =>
      evaluateHealthStatus({ isRunning: true, overdueMs, isFull, storageDownMs: 0 }, settings, {
        waitingMs: 0,
        storage: REACHED,
      }).problems.map(({ code }) => code);
    expect([codes(10_000, false), codes(10_001, false)]).toEqual([[], ["loop_stalled"]]);
    expect([codes(30_000, true), codes(30_001, true)]).toEqual([[], ["loop_stalled"]]);
  });
});

describe("the health of content", () => {
  function site(
    change: (store: ContentStore) => Partial<ContentStore>,
    consistency: "strong" | "eventual",
    clock = manualClock(Date.UTC(2026, 0, 1)),
  ) {
    const storage = memoryStorage();
    const content = createContent({
      storage: {
        content: (context) => {
          const store = storage.content(context);
          return { ...store, ...change(store) };
        },
        close: () => storage.close(),
      },
      site: { url: "https://www.example.org", name: "Example" },
      authenticate: () => null,
      users: [],
      consistency,
      clock,
    });
    return { clock, content };
  }

  it.each(["strong", "eventual"] as const)(
    "is red once the storage has been away for 30 s though nobody asks for content, and green with its return: %s",
    async (consistency) => {
      let isAway = false;
      const { clock, content } = site(
        (store) => ({ changes: (since) => (isAway ? away() : store.changes(since)) }),
        consistency,
      );
      expect((await ask({ content, clock })).health.content).toEqual({
        status: "ok",
        started: false,
        problems: [],
      });
      await content.start();
      expect((await ask({ content, clock })).health.content).toEqual({
        status: "ok",
        started: true,
        problems: [],
      });
      isAway = true;
      expect((await ask({ content, clock })).status).toBe(200);
      await clock.advance(31 * SECOND);
      const red = await ask({ content, clock });
      expect(red.status).toBe(503);
      expect(red.health.content?.problems.map(({ code }) => code)).toContain("storage_away");
      isAway = false;
      await clock.advance(SECOND);
      expect(await ask({ content, clock })).toMatchObject({ status: 200, health: { status: "ok" } });
      await content.stop();
    },
  );

  it("is red where the changes of others are not looked for any more, though the storage answers", async () => {
    const manual = manualClock(Date.UTC(2026, 0, 1));
    let isBroken = false;
    const clock: ManualClock = {
      ...manual,
      // A timer that never fires.
      setTimeout: (callback, ms) => manual.setTimeout(isBroken && ms === 500 ? () => {} : callback, ms),
    };
    const { content } = site(() => ({}), "eventual", clock);
    const pass = async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 100) {
        await clock.advance(100);
        await eventLoopTurn();
      }
    };
    await content.start();
    await pass(20 * SECOND);
    expect((await ask({ content, clock })).status).toBe(200);
    isBroken = true;
    await pass(20 * SECOND);
    const red = await ask({ content, clock });
    expect(red.status).toBe(503);
    expect(red.health.content?.problems.map(({ code }) => code)).toEqual(["not_following"]);
    await content.stop();
  });
});

describe("the health of the event loop", () => {
  it("is red where timers come more than a second late", async () => {
    const late = async (lateMs: number, options = {}, path = "/healthz") => {
      const { clock, freeze } = frozen();
      return ask({ clock, ...options }, { path, lateMs, freeze });
    };
    expect(await late(1_000)).toMatchObject({ status: 200 });
    expect(await late(1_001)).toMatchObject({
      status: 503,
      health: { status: "failing", eventLoop: { status: "failing", delayMs: 1_001 } },
    });
    expect(await late(1_001, {}, "/livez")).toMatchObject({ status: 503 });
    expect(await late(1_001, { eventLoopDelayMs: 2_000 })).toMatchObject({ status: 200 });
  });
});

describe("the service for it", () => {
  it("answers its own paths and methods only, and does not wait for the storage to say it lives", async () => {
    const clock = manualClock(0);
    const content = { status: () => forever<never>() };
    expect(await ask({ clock, content }, { path: "/livez" })).toMatchObject({ status: 200 });
    const service = createHealth({ clock });
    const request = { query: "", headers: {}, body: null, baseUrl: "" };
    expect(await service.handle({ ...request, method: "GET", path: "/other" })).toBeUndefined();
    expect(await service.handle({ ...request, method: "POST", path: "/healthz" })).toMatchObject({
      status: 405,
    });
  });

  it("refuses what is no service, and options that it does not know", () => {
    expect(() => createHealth({ webhooks: {} } as never)).toThrow(/webhooks must be a service/);
    expect(() => createHealth({ storageAway: 1 } as never)).toThrow(/Did you mean/);
  });
});
