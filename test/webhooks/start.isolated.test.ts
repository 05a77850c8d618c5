/** `start()` tells if the storage is there, and a service that is never started says so. */

import { AsyncLocalStorage } from "node:async_hooks";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createContent } from "../../src/content/index.js";
import { systemClock, type Timer } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { silentLogger } from "../../src/core/logger.js";
import { createWebhooks } from "../../src/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import type { WebhooksOptions } from "../../src/webhooks/config/webhooks-options.js";
import { createStartReminder } from "../../src/webhooks/start-reminder.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { recordingLogger } from "../support/registration-api.js";
import {
  forever,
  held,
  holdingEndpoint,
  MINUTE,
  openHarness,
  response,
  SECOND,
  startHarness,
  unreachable,
} from "../support/webhook-harness.js";

const access = { authenticate: () => null, canRead: () => true };
const away = new PostbellError("storage_unavailable", "no answer");
/** Nothing listens there. */
const NO_REDIS = "redis://127.0.0.1:1";
const SITE = {
  site: { name: "Clinic", url: "https://www.example.org" },
  authenticate: () => null,
  users: [],
};

/** Moves the clock until the promise settles, and returns how. */
async function settleOn(clock: ReturnType<typeof manualClock>, promise: Promise<void>): Promise<unknown> {
  let outcome: { readonly value: unknown } | undefined;
  promise.then(
    () => {
      outcome = { value: "settled" };
    },
    (error: unknown) => {
      outcome = { value: error };
    },
  );
  while (outcome === undefined) {
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(10);
  }
  return outcome.value;
}

describe("start()", () => {
  it("rejects while the storage is away, starts nothing, and can be called again", async () => {
    let isAway = true;
    const harness = openHarness({
      change: (store) => ({ stats: () => (isAway ? Promise.reject(away) : store.stats()) }),
    });
    await harness.register();
    await expect(harness.webhooks.start()).rejects.toMatchObject({ code: "storage_unavailable" });
    await harness.emit();
    await harness.run(SECOND);
    expect(harness.sent).toEqual([]);
    isAway = false;
    await harness.webhooks.start();
    await harness.quiet();
    expect(harness.sent).toHaveLength(1);
  });

  it("resolves without starting if stop() is called while it waits for the storage", async () => {
    const asked = held<never>();
    const { webhooks } = openHarness({ change: () => ({ stats: () => asked.promise }) });
    const started = webhooks.start();
    await webhooks.stop();
    asked.resolve(Promise.reject(away) as never);
    await expect(started).resolves.toBeUndefined();
    expect((await webhooks.status()).isStarted).toBe(false);
  });

  it("waits for a stop() that began meanwhile, although start() was called again", async () => {
    const asked = held<void>();
    const closed = held<void>();
    const harness = openHarness({
      options: { notify: { close: () => closed.promise } },
      change: (store) => ({ stats: () => asked.promise.then(() => store.stats()) }),
    });
    await harness.register();
    await harness.emit();
    const first = harness.webhooks.start();
    const stopped = harness.webhooks.stop();
    const second = harness.webhooks.start();
    asked.resolve();
    await harness.quiet();
    expect([harness.sent.length, (await harness.webhooks.status()).isStarted]).toEqual([0, false]);
    closed.resolve();
    await Promise.all([first, stopped, second]);
    await harness.quiet();
    expect([harness.sent.length, (await harness.webhooks.status()).isStarted]).toEqual([1, true]);
  });

  it("resolves with awaitStorage false, and delivers once the storage is there", async () => {
    let isAway = true;
    const harness = openHarness({
      options: { awaitStorage: false },
      change: (store) => ({
        stats: () => (isAway ? Promise.reject(away) : store.stats()),
        claim: (request) => (isAway ? Promise.reject(away) : store.claim(request)),
      }),
    });
    await harness.register();
    await harness.emit();
    await harness.webhooks.start();
    await harness.run(SECOND);
    expect(harness.sent).toEqual([]);
    isAway = false;
    await harness.run(MINUTE);
    expect(harness.sent).toHaveLength(1);
  });

  it.each(["webhooks", "content"] as const)(
    "of %s rejects within four seconds where no Redis listens, and resolves with awaitStorage false",
    async (kind) => {
      const clock = manualClock(Date.UTC(2026, 0, 1));
      const begun = clock.now();
      const create = (awaitStorage: boolean) => {
        const storage = redisStorage({ url: NO_REDIS, time: "clock" });
        const shared = { storage, clock, logger: false, awaitStorage } as const;
        return kind === "webhooks"
          ? createWebhooks({ ...shared, access })
          : createContent({ ...shared, ...SITE });
      };
      const rejected = await settleOn(clock, create(true).start());
      expect(rejected).toMatchObject({
        code: "storage_unavailable",
        message: expect.stringMatching(/^Redis is not available|did not respond within 4 seconds/),
      });
      expect(clock.now() - begun).toBeLessThanOrEqual(4_000);
      const patient = create(false);
      expect(await settleOn(clock, patient.start())).toBe("settled");
      expect(await settleOn(clock, patient.stop())).toBe("settled");
    },
  );
});

describe("start() without ioredis", () => {
  afterEach(() => {
    vi.doUnmock("ioredis");
    vi.resetModules();
  });

  it("rejects with the command that installs it", async () => {
    vi.doMock("ioredis", () => {
      throw new Error("Cannot find package 'ioredis'");
    });
    const storage = redisStorage({ url: NO_REDIS, time: "clock" });
    // On a busy machine the import takes longer than a storage call may.
    const clock = manualClock(0);
    await expect(createWebhooks({ storage, access, clock, logger: false }).start()).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("npm install ioredis"),
    });
  });
});

describe("a service that is never started", () => {
  it("warns after a minute, once, and says so in its health until it is started", async () => {
    const { webhooks, register, emit, run, log } = openHarness();
    await register();
    await emit();
    await run(MINUTE - 1);
    expect([log, (await webhooks.status()).problems]).toEqual([[], []]);
    await run(1);
    await run(5 * MINUTE);
    expect(log).toEqual(["warn deliveries are due and no process attempts them: call start() in one"]);
    expect(await webhooks.status()).toEqual({
      isStarted: false,
      problems: [{ code: "not_started", forMs: 6 * MINUTE, reason: expect.stringContaining("start()") }],
    });
    await webhooks.start();
    await run(MINUTE);
    expect((await webhooks.status()).problems).toEqual([]);
  });

  it("warns of deliveries that were sent again, too", async () => {
    const { webhooks, register, emit, run, respond, log } = openHarness();
    const { id } = await register();
    await webhooks.start();
    respond(() => 500);
    await emit();
    await run(1);
    await webhooks.stop();
    log.length = 0;
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: id });
    await webhooks.deliveries.resend({ id: deliveries[0]?.id ?? "" });
    await run(MINUTE);
    expect(log).toEqual(["warn deliveries are due and no process attempts them: call start() in one"]);
  });

  it("says nothing of deliveries that other processes take one after another", async () => {
    let looks = 0;
    const { webhooks, register, emit, run, log } = openHarness({
      change: (store) => ({
        // Now and then a look falls between a delivery's storage and its claim.
        stats: async () => ({ ...(await store.stats()), due: looks++ % 3 === 2 ? 0 : 1, leased: 0 }),
      }),
    });
    await register();
    for (let minute = 0; minute < 5; minute++) {
      await emit();
      await run(MINUTE);
    }
    expect(looks).toBeGreaterThan(3);
    expect([log, (await webhooks.status()).problems]).toEqual([[], []]);
  });

  it.each([
    ["this process is started", true, 0],
    ["another process has a delivery under lease", false, 1],
  ])("says nothing of due deliveries if %s", async (_, isStarted, leased) => {
    const { webhooks, register, emit, run, log } = openHarness({
      change: (store) => ({ stats: async () => ({ ...(await store.stats()), due: 5, leased }) }),
    });
    await register();
    if (isStarted) await webhooks.start();
    await emit();
    await run(5 * MINUTE);
    expect([log, (await webhooks.status()).problems]).toEqual([[], []]);
  });

  it("is told in the context in which the service was created, not in that of the first event", async () => {
    const tenants = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const note = (): void => void contexts.push(tenants.getStore());
    const logger = { debug() {}, info: note, warn: note, error: note };
    const { register, emit, run } = tenants.run("service", () => openHarness({ options: { logger } }));
    await register();
    await tenants.run("clinic-a", async () => {
      await emit();
      await run(5 * MINUTE);
    });
    expect(contexts).toEqual(["service"]);
  });

  it("lets a process that only emits end", () => {
    const timers: NodeJS.Timeout[] = [];
    const setTimer = (callback: () => void, ms: number) => {
      const timer = setTimeout(callback, ms);
      timers.push(timer);
      return timer as unknown as Timer;
    };
    const reminder = createStartReminder({
      store: { stats: forever },
      clock: { ...systemClock, setTimeout: setTimer },
      logger: silentLogger,
      warnsAtExit: false,
    });
    reminder.expectStart(1);
    expect(timers.map((timer) => timer.hasRef())).toEqual([false]);
    reminder.started();
  });

  it("is looked at by one timer, also after a start() during a look", async () => {
    const asked = held<void>();
    let looks = 0;
    const { webhooks, register, emit, run } = openHarness({
      options: { awaitStorage: false },
      change: (store) => ({
        async stats() {
          looks += 1;
          if (looks === 1) await asked.promise;
          return store.stats();
        },
      }),
    });
    await register();
    await emit();
    await run(MINUTE);
    await webhooks.start();
    await run(0);
    await webhooks.stop();
    await emit();
    asked.resolve();
    await run(0);
    looks = 0;
    await run(10 * MINUTE);
    const rate = looks;
    looks = 0;
    await webhooks.start();
    await run(10 * MINUTE);
    expect([rate, looks]).toEqual([30, 0]);
  });

  it("says nothing where another process delivers, or where nothing is due", async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const storage = memoryStorage();
    const { logger, log } = recordingLogger();
    const emitting = createWebhooks({ storage, access, clock, logger });
    const delivering = createWebhooks({
      storage,
      access,
      clock,
      logger: false,
      delivery: { send: async () => response(204) },
    });
    const subscriber = { id: "key-1", account: "clinic" };
    await emitting.registrations.create({ subscriber, url: "https://hooks.example.com/in" });
    await delivering.start();
    await emitting.emit({
      type: "patient.created",
      account: "clinic",
      resource: { resourceType: "Patient" },
    });
    await delivering.idle();
    await clock.advance(2 * MINUTE);
    await emitting.emit({
      type: "patient.created",
      account: "nobody",
      resource: { resourceType: "Patient" },
    });
    await clock.advance(2 * MINUTE);
    expect(log).toEqual([]);
    expect((await emitting.status()).problems).toEqual([]);
    await delivering.stop();
  });
});

describe("a service without a logger", () => {
  afterEach(() => vi.restoreAllMocks());

  /** Leaves an event that nobody delivers for a minute, and returns what the console gets. */
  async function neverStart(options: Pick<WebhooksOptions, "logger">): Promise<readonly unknown[]> {
    const lines: unknown[] = [];
    for (const level of ["debug", "info", "log", "warn", "error"] as const)
      vi.spyOn(console, level).mockImplementation((line) => void lines.push([level, line]));
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const webhooks = createWebhooks({ storage: memoryStorage(), access, clock, ...options });
    await webhooks.registrations.create({
      subscriber: { id: "key-1", account: "clinic" },
      url: "https://hooks.example.com/in",
    });
    const resource = { resourceType: "Patient", id: "p1" };
    await webhooks.emit({ type: "patient.updated", account: "clinic", resource });
    await clock.advance(MINUTE);
    await webhooks.stop();
    return lines;
  }

  it("warns on the console, one line each, and is silent with `logger: false`", async () => {
    expect(await neverStart({})).toContainEqual([
      "warn",
      'postbell: deliveries are due and no process attempts them: call start() in one {"due":1}',
    ]);
    vi.restoreAllMocks();
    expect(await neverStart({ logger: false })).toEqual([]);
  });
});

describe("the operator's log", () => {
  it("has a line for each failed attempt with the time of the next, and warns of the last", async () => {
    const { logger, log } = recordingLogger();
    const retry = { intervalsMs: [MINUTE], everyMs: 10 * MINUTE, windowMs: 2 * MINUTE, jitter: 0 };
    const harness = await startHarness({ answer: () => 500, options: { logger, retry } });
    const { id } = await harness.register("https://hooks.example.com/in?token=s3cret");
    const eventId = await harness.emit();
    const at = harness.clock.now();
    await harness.run(2 * MINUTE);
    const fields = {
      account: "clinic",
      webhook: id,
      delivery: `${id}.${eventId}`,
      kind: "http",
      status: 500,
      code: "HTTP_500",
    };
    expect(log).toEqual([
      {
        level: "info",
        fields: { ...fields, nextAttemptAt: new Date(at + MINUTE).toISOString() },
        message: "a delivery attempt failed",
      },
      { level: "warn", fields, message: "the last attempt of a delivery failed" },
    ]);
    expect(JSON.stringify(log)).not.toContain("s3cret");
  });

  it("has no line for an attempt that a stop cut off", async () => {
    const endpoint = holdingEndpoint();
    const harness = await startHarness({ answer: endpoint.answer });
    await harness.register();
    await harness.emit();
    await harness.quiet();
    await harness.stop(SECOND);
    endpoint.release(unreachable);
    await harness.quiet();
    expect([harness.sent.length, harness.log]).toEqual([1, []]);
  });

  it("has no line for a delivery that was accepted", async () => {
    const { register, emit, quiet, log } = await startHarness();
    await register();
    await emit();
    await quiet();
    expect(log).toEqual([]);
  });
});
