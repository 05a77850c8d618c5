/** `drain`: delivers what is due within bounds, in a process that is never started. */

import { createRequire } from "node:module";
import { describe, expect, it, onTestFinished } from "vitest";
import { PostbellError, type Storage } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { redisStorage } from "../../../storage/redis/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import {
  forever,
  type Harness,
  type HarnessOptions,
  held,
  holdingEndpoint,
  MINUTE,
  openHarness,
  SECOND,
  START,
} from "../../support/webhook-harness.js";

const require = createRequire(import.meta.url);

const STORAGES: Record<string, () => Storage> = {
  memory: () => memoryStorage(),
  SQLite: () => sqliteStorage({ database: new (require("libsql"))(":memory:") }),
  Redis: () => redisStorage({ url: redisUrl(), prefix: freshPrefix(), time: "clock" }),
};

/** A service that is not started, with `count` events that are due. */
async function open(storage: Storage, count: number, options: HarnessOptions = {}): Promise<Harness> {
  onTestFinished(() => storage.close());
  const harness = openHarness({ storage, ...options });
  await harness.register();
  for (let made = 0; made < count; made++) await harness.emit();
  return harness;
}

const stats = async ({ store }: Harness) => {
  const { pending, leased } = await store.stats();
  return { pending, leased };
};

describe.each(Object.entries(STORAGES))("drain() on %s", (_, createStorage) => {
  it("attempts everything that is due, and leaves no lease, timer or started loop", async () => {
    const harness = await open(createStorage(), 30);
    const { webhooks, sent } = harness;
    expect(await webhooks.drain()).toEqual({ attempted: 30, isEmpty: true });
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(30);
    expect(await stats(harness)).toEqual({ pending: 0, leased: 0 });
    await expect(webhooks.idle()).rejects.toMatchObject({ code: "not_started" });
    await harness.emit();
    await harness.quiet();
    expect(await stats(harness)).toEqual({ pending: 1, leased: 0 });
    expect(await webhooks.drain()).toEqual({ attempted: 1, isEmpty: true });
  });

  it("takes exactly as many deliveries as allowed, and gives the others back at once", async () => {
    const harness = await open(createStorage(), 25);
    for (const deliveries of [1, 7, 10]) {
      expect(await harness.webhooks.drain({ deliveries })).toEqual({ attempted: deliveries, isEmpty: false });
    }
    expect(harness.sent).toHaveLength(18);
    expect(await stats(harness)).toEqual({ pending: 7, leased: 0 });
    expect(await harness.webhooks.drain({ deliveries: 50 })).toEqual({ attempted: 7, isEmpty: true });
    expect(new Set(harness.sent.map(({ eventId }) => eventId)).size).toBe(25);
  });

  it("takes no more than allowed if new and quick endpoints have deliveries at once", async () => {
    const harness = await open(createStorage(), 1);
    await harness.webhooks.drain();
    await harness.register("https://hooks.example.com/new");
    for (let made = 0; made < 5; made++) await harness.emit();
    expect(await harness.webhooks.drain({ deliveries: 3 })).toEqual({ attempted: 3, isEmpty: false });
    expect(await stats(harness)).toEqual({ pending: 7, leased: 0 });
  });

  it("shares the deliveries of one storage among processes, each once", async () => {
    const storage = createStorage();
    const clock = manualClock(START);
    const first = await open(storage, 40, { clock });
    const others = [1, 2].map(() => openHarness({ storage, clock }));
    const all = [first, ...others];
    const results = await Promise.all(all.map(({ webhooks }) => webhooks.drain({ deliveries: 100 })));
    const sent = all.flatMap((harness) => harness.sent.map(({ eventId }) => eventId));
    expect(sent).toHaveLength(40);
    expect(new Set(sent).size).toBe(40);
    expect(results.reduce((sum, { attempted }) => sum + attempted, 0)).toBe(40);
    expect(await stats(first)).toEqual({ pending: 0, leased: 0 });
  });
});

// Redis replies in real time, so a test that moves the clock cannot tell when it has.
const LOCAL = Object.entries(STORAGES).filter(([name]) => name !== "Redis");

describe.each(LOCAL)("drain() on %s, in time", (_, createStorage) => {
  it("begins no attempt after forMs, and waits for those in flight until their deadline only", async () => {
    const harness = await open(createStorage(), 30, { answer: () => forever() });
    let drained: unknown;
    void harness.webhooks.drain({ forMs: 5 * SECOND }).then((result) => {
      drained = { result, at: harness.clock.now() };
    });
    await harness.runUntil(START + 5 * SECOND - 1);
    const inFlight = harness.sent.length;
    expect(inFlight).toBeGreaterThan(0);
    expect(inFlight).toBeLessThan(30);
    await harness.run(2 * MINUTE);
    expect(harness.sent).toHaveLength(inFlight);
    const { result, at } = drained as { result: unknown; at: number };
    expect(result).toMatchObject({ isEmpty: false });
    // `delivery.deadlineMs`, and `limits.hookMs` for the hooks before it.
    expect(at - START).toBeLessThanOrEqual(5 * SECOND + 30 * SECOND + 5 * SECOND);
    expect((await stats(harness)).leased).toBe(0);
  });

  it("settles an attempt that ends after forMs, and does not begin another", async () => {
    const endpoint = holdingEndpoint();
    const harness = await open(createStorage(), 30, { answer: endpoint.answer });
    const drained = harness.webhooks.drain({ forMs: 5 * SECOND });
    await harness.runUntil(START + 6 * SECOND);
    const inFlight = endpoint.open.length;
    endpoint.release();
    await harness.quiet();
    expect(await drained).toEqual({ attempted: inFlight, isEmpty: false });
    expect(await stats(harness)).toEqual({ pending: 30 - inFlight, leased: 0 });
  });

  it("leaves retries that are due later, and takes them when they are due", async () => {
    const harness = await open(createStorage(), 3, { answer: () => 500 });
    expect(await harness.webhooks.drain()).toEqual({ attempted: 3, isEmpty: true });
    expect(await harness.webhooks.drain()).toEqual({ attempted: 0, isEmpty: true });
    harness.respond(() => 200);
    await harness.run(20 * MINUTE);
    expect(await harness.webhooks.drain()).toEqual({ attempted: 3, isEmpty: true });
    expect(await stats(harness)).toEqual({ pending: 0, leased: 0 });
  });
});

describe("drain()", () => {
  it("is refused while the service is started or drains already, and runs again after stop()", async () => {
    const endpoint = holdingEndpoint();
    const { webhooks, register, emit, quiet } = openHarness({ answer: endpoint.answer });
    await register();
    await emit();
    const first = webhooks.drain();
    await expect(webhooks.drain()).rejects.toMatchObject({ code: "already_started" });
    await quiet();
    endpoint.release();
    expect(await first).toEqual({ attempted: 1, isEmpty: true });
    await webhooks.start();
    await expect(webhooks.drain()).rejects.toMatchObject({ code: "already_started" });
    await webhooks.stop();
    expect(await webhooks.drain()).toEqual({ attempted: 0, isEmpty: true });
  });

  it("goes before a start() that is called meanwhile, and ends with a stop() that is", async () => {
    const endpoint = holdingEndpoint();
    const harness = openHarness({ answer: endpoint.answer });
    await harness.register();
    await harness.emit();
    const drained = harness.webhooks.drain();
    const started = harness.webhooks.start();
    await harness.quiet();
    endpoint.release();
    expect(await drained).toEqual({ attempted: 1, isEmpty: true });
    await started;
    await harness.emit();
    await harness.quiet();
    expect(harness.sent).toHaveLength(2);
    endpoint.release();
    await harness.stop(0);

    await harness.emit();
    const second = harness.webhooks.drain({ forMs: MINUTE });
    await harness.quiet();
    expect(harness.sent).toHaveLength(3);
    await harness.stop(SECOND);
    expect(await second).toMatchObject({ isEmpty: false });
    expect(await harness.store.stats()).toMatchObject({ pending: 1, leased: 0 });
  });

  it("counts the requests that were sent, not what a hook postponed", async () => {
    const harness = openHarness({
      options: { access: { authenticate: () => null, canRead: () => Promise.reject(new Error("down")) } },
    });
    await harness.register();
    await harness.emit();
    expect(await harness.webhooks.drain()).toEqual({ attempted: 0, isEmpty: true });
    expect(harness.sent).toEqual([]);
    expect(await harness.store.stats()).toMatchObject({ pending: 1, leased: 0 });
  });

  it("gives back a claim that arrives after forMs", async () => {
    const gate = held<undefined>();
    const harness = openHarness({
      change: (store) => ({
        async claim(request) {
          const claimed = await store.claim(request);
          await gate.promise;
          return claimed;
        },
      }),
    });
    await harness.register();
    await harness.emit();
    const drained = harness.webhooks.drain({ forMs: SECOND });
    await harness.run(SECOND);
    gate.resolve(undefined);
    await harness.quiet();
    expect(await drained).toEqual({ attempted: 0, isEmpty: false });
    expect(harness.sent).toEqual([]);
    expect(await harness.store.stats()).toMatchObject({ pending: 1, leased: 0 });
  });

  it("rejects if the storage is unavailable, and leaves the service stopped", async () => {
    let isDown = true;
    const down = new PostbellError("storage_unavailable", "down");
    const harness = openHarness({
      change: (store) => ({
        claim: (request) => (isDown ? Promise.reject(down) : store.claim(request)),
      }),
    });
    await harness.register();
    await harness.emit();
    await expect(harness.webhooks.drain()).rejects.toMatchObject({ code: "storage_unavailable" });
    isDown = false;
    await harness.run(MINUTE);
    expect(harness.sent).toEqual([]);
    expect(await harness.webhooks.drain()).toEqual({ attempted: 1, isEmpty: true });
  });

  it.each([
    [{ forMs: 0 }, "forMs must be a whole number from 1 to 3600000 (got 0)."],
    [{ forMs: 3_600_001 }, "forMs must be a whole number from 1 to 3600000 (got 3600001)."],
    [{ deliveries: 1.5 }, "deliveries must be a whole number from 1 to 1000000 (got 1.5)."],
    [{ deliveries: "5" }, "deliveries must be a whole number from 1 to 1000000 (got 5)."],
    [{ seconds: 5 }, "drain() has no field 'seconds'"],
    [null, "drain() takes an object"],
  ])("refuses %j and says what to change", async (options, message) => {
    const { webhooks } = openHarness();
    await expect(webhooks.drain(options as never)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message),
    });
  });
});
