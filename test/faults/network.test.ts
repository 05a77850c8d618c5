/**
 * The network between a process and Redis: cut, silent, slow, flapping. Nothing is half stored,
 * nothing is stored twice, every call settles.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { type ProxyMode, startProxy } from "../support/tcp-proxy.js";
import { type Command, type Fate, startCommandProxy } from "./support/redis-command-proxy.js";
import {
  printFigures,
  type Receiver,
  startReceiver,
  startService,
  WHOLE_BOOKS,
} from "./support/redis-service.js";
import { openStore } from "./support/redis-store.js";
import { codeOf, eventually, newEvent } from "./support/store-driver.js";

const HOST = "127.0.0.1";
const RESUMED_MS = 5_000;
/** The store settles each call in 3.5 s, the service in 4 s. */
const SETTLED_MS = 4_500;

let redis: RedisServer;
let receiver: Receiver;
beforeAll(async () => {
  [redis, receiver] = await Promise.all([startRedis(), startReceiver()]);
});
afterAll(async () => {
  await Promise.all([redis.stop(), receiver.close()]);
});

/** Loses the reply to the first call that is asked for. */
function losingFirst(isMeant: (command: Command) => boolean): (command: Command) => Fate {
  let isLost = false;
  return (command) => {
    if (isLost || !isMeant(command)) return "pass";
    isLost = true;
    return "lose-reply";
  };
}

const urlOf = ({ port }: { readonly port: number }): string => `redis://${HOST}:${port}`;

const timed = async (promise: Promise<unknown>): Promise<number> => {
  const begin = performance.now();
  await promise.catch(() => {});
  return performance.now() - begin;
};

describe("a reply that is lost (F2, F10)", () => {
  test("an emit that Redis stored is answered as stored, and emitting again adds nothing", async () => {
    const proxy = await startCommandProxy(redis);
    const { store, storage, register, append } = openStore({ url: proxy.url });
    await register();
    const event = newEvent("clinic");
    proxy.decide(losingFirst(({ script }) => script === "append"));
    expect(await append(event)).toMatchObject({ result: "stored", deliveries: [{}] });
    expect(await append(event)).toMatchObject({ result: "duplicate", deliveries: [{}] });
    expect(await store.stats()).toMatchObject({ events: 1, pending: 1 });
    await storage.close();
    await proxy.stop();
  });

  test("a claim that Redis carried out is answered with what it leased", async () => {
    const proxy = await startCommandProxy(redis);
    const { store, storage, register, append, claim } = openStore({ url: proxy.url });
    await register();
    await append(newEvent("clinic"));
    proxy.decide(losingFirst(({ script }) => script === "claim"));
    expect(await claim()).toHaveLength(1);
    expect(await store.stats()).toMatchObject({ pending: 1, leased: 1 });
    await storage.close();
    await proxy.stop();
  });

  test("an outcome that Redis recorded is not delivered again, and recorded once", async () => {
    const proxy = await startCommandProxy(redis);
    const service = await startService({ redis: { url: proxy.url }, receiver });
    const [webhookId = ""] = await service.register(1);
    proxy.decide(losingFirst(({ script }) => script === "settle"));
    const { id, deliveries } = await service.emit();
    await service.drained();
    expect(receiver.arrivals.filter(({ eventId }) => eventId === id)).toHaveLength(1);
    const delivery = await service.webhooks.deliveries.get(deliveries[0]?.id ?? "");
    expect(delivery).toMatchObject({ webhookId, state: "delivered" });
    expect(delivery?.attempts).toHaveLength(1);
    await service.stop();
    await proxy.stop();
  });
});

describe("a request that is cut off (F4)", () => {
  test("stores the event with all its fifteen deliveries or not at all, wherever the cut is", async () => {
    const proxy = await startProxy({ host: HOST, port: redis.port });
    const client = new Redis(proxy.port, { maxRetriesPerRequest: 0, retryStrategy: () => 5 });
    client.on("error", () => {});
    const { storage, prefix, register, append } = openStore({ client });
    const direct = openStore({ url: redis.url, prefix });
    for (let index = 0; index < 15; index++) await register();
    const requestBytes = 3_500;
    const seen = { none: 0, all: 0 };
    for (let cutAfter = 1; cutAfter < requestBytes; cutAfter += 97) {
      const before = await direct.store.stats();
      const event = newEvent("clinic");
      await proxy.mode({ resetAfterBytes: cutAfter });
      const isStored = (await codeOf(append(event))) === "resolved";
      await proxy.mode("pass");
      await eventually(() => client.status === "ready", { ms: RESUMED_MS, what: "the client connects" });
      const after = await direct.store.stats();
      const added = after.pending - before.pending;
      expect([0, 15]).toContain(added);
      expect(after.events - before.events).toBe(added / 15);
      expect(isStored && added === 0).toBe(false);
      seen[added === 15 ? "all" : "none"]++;
      const again = await append(event);
      expect(again).toMatchObject({ result: added === 15 ? "duplicate" : "stored" });
      expect("deliveries" in again && again.deliveries).toHaveLength(15);
    }
    expect(seen.none).toBeGreaterThan(10);
    expect(seen.all).toBeGreaterThan(0);
    expect((await storage.check()).repaired).toBe(0);
    client.disconnect();
    await storage.close();
    await direct.storage.close();
    await proxy.stop();
  });
});

describe("functions that Redis forgets (F22)", () => {
  test("are loaded again, and every event is delivered exactly once", async () => {
    const admin = new Redis(redis.port);
    const service = await startService({ redis: { url: redis.url }, receiver });
    await service.register(3);
    let isOver = false;
    const flushing = (async () => {
      for (; !isOver; await sleep(20)) await admin.call("FUNCTION", "FLUSH");
    })();
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 20 }, () => service.emit()));
    await service.drained();
    isOver = true;
    await flushing;
    const figures = await service.figures();
    printFigures("F22 FUNCTION FLUSH", figures);
    expect(figures).toEqual({ deliveries: 600, lost: 0, duplicates: 0, books: WHOLE_BOOKS });
    await service.stop();
    admin.disconnect();
  });
});

const PARTITIONS: readonly [ProxyMode & string, number][] = (
  ["refuse", "black-hole", "swallow"] as const
).flatMap((mode) => [100, 1_000, 10_000].map((ms): [ProxyMode & string, number] => [mode, ms]));

describe("a partition between a process and Redis (F23)", () => {
  // All at once: the longest takes ten seconds.
  test.concurrent.each(PARTITIONS)(
    "%s for %i ms: delivering resumes within 5 s, nothing is lost, doubled, or sent after its lease",
    async (mode, ms) => {
      const proxy = await startProxy({ host: HOST, port: redis.port });
      const leaseEnds = new Map<string, number>();
      const service = await startService({
        redis: { url: urlOf(proxy) },
        receiver,
        change: (store) => ({
          async claim(request) {
            const answer = await store.claim(request);
            for (const { id } of answer.claims) leaseEnds.set(id, request.leaseUntil);
            return answer;
          },
        }),
      });
      await service.register(2);
      for (let count = 0; count < 20; count++) await service.emit();
      const before = await service.emit();
      await proxy.mode(mode);
      if (mode === "refuse") proxy.cutAll();
      const during = randomUUID();
      const stored = service.emitSurely(during);
      await sleep(ms);
      await proxy.mode("pass");
      const healedAt = Date.now();
      const after = randomUUID();
      await Promise.all([stored, service.emitSurely(after)]);
      const arrivalOf = (id: string) => receiver.arrivals.find(({ eventId }) => eventId === id);
      await eventually(() => arrivalOf(after) !== undefined, { ms: 10_000, what: "the next event arrives" });
      expect((arrivalOf(after)?.at ?? Infinity) - healedAt).toBeLessThan(RESUMED_MS);
      await service.drained(45_000);
      expect(arrivalOf(before.id)).toBeDefined();
      for (const { eventId, webhookId, at } of receiver.arrivals) {
        // Deliveries that are not in the list were sent by another of these services.
        expect(at).toBeLessThan(leaseEnds.get(`${webhookId}.${eventId}`) ?? Number.POSITIVE_INFINITY);
      }
      const figures = await service.figures();
      printFigures(`F23 ${mode} ${ms} ms`, figures);
      expect(figures).toEqual({ deliveries: 46, lost: 0, duplicates: 0, books: WHOLE_BOOKS });
      await service.stop();
      await proxy.stop();
    },
    60_000,
  );

  test("a connection that died in silence is given up, and delivering resumes within 5 s", async () => {
    const proxy = await startCommandProxy(redis);
    const service = await startService({ redis: { url: proxy.url }, receiver });
    await service.register(1);
    await service.emit();
    await service.drained();
    proxy.silence();
    await codeOf(service.emit());
    const healedAt = performance.now();
    const code = await Promise.race([
      codeOf(service.emitSurely()),
      sleep(2 * RESUMED_MS).then(() => "no connection"),
    ]);
    expect({ code, isInTime: performance.now() - healedAt < RESUMED_MS }).toEqual({
      code: "resolved",
      isInTime: true,
    });
    await proxy.stop();
    await service.stop();
  }, 30_000);

  test("while Redis is silent, each of many calls settles within seconds", async () => {
    const proxy = await startProxy({ host: HOST, port: redis.port });
    const { storage, register, append } = openStore({ url: urlOf(proxy) });
    await register();
    await proxy.mode("black-hole");
    const times = await Promise.all(Array.from({ length: 200 }, () => timed(append(newEvent("clinic")))));
    expect(Math.max(...times)).toBeLessThan(SETTLED_MS);
    await proxy.mode("pass");
    await storage.close();
    await proxy.stop();
  }, 60_000);

  test("while Redis is silent, the storage can be closed", async () => {
    const proxy = await startProxy({ host: HOST, port: redis.port });
    const { storage, register } = openStore({ url: urlOf(proxy) });
    await register();
    await proxy.mode("black-hole");
    const closed = storage.close().then(() => "closed");
    expect(await Promise.race([closed, sleep(SETTLED_MS).then(() => "still open")])).toBe("closed");
    await proxy.stop();
  });
});

describe("a slow Redis (F24)", () => {
  test.concurrent.each([1, 50, 500])(
    "a round trip of %i ms delays deliveries, and doubles none",
    async (roundTripMs) => {
      const proxy = await startProxy({ host: HOST, port: redis.port });
      await proxy.mode({ delayMs: roundTripMs / 2 });
      const service = await startService({ redis: { url: urlOf(proxy) }, receiver });
      await service.register(2);
      // Surely: on a busy machine such a round trip may take longer than an emit waits.
      await Promise.all(Array.from({ length: 60 }, () => service.emitSurely()));
      await service.drained();
      const figures = await service.figures();
      printFigures(`F24 round trip ${roundTripMs} ms`, figures);
      expect(figures).toEqual({ deliveries: 120, lost: 0, duplicates: 0, books: WHOLE_BOOKS });
      await service.stop();
      await proxy.stop();
    },
    60_000,
  );

  test.each([
    ["DEBUG", "SLEEP", "5"],
    ["CLIENT", "PAUSE", "5000", "WRITE"],
  ])(
    "%s %s: an emit rejects in time, and emitting again adds no second delivery",
    async (command, ...args) => {
      const slow = await startRedis();
      const admin = new Redis(slow.port);
      const service = await startService({ redis: { url: slow.url }, receiver });
      await service.register(1);
      await service.emit();
      await service.drained();
      const asleep = admin.call(command, ...args);
      await sleep(50);
      const id = randomUUID();
      const begin = performance.now();
      expect(await codeOf(service.emit(id))).toBe("storage_unavailable");
      expect(performance.now() - begin).toBeLessThan(SETTLED_MS);
      await asleep;
      await service.emitSurely(id);
      await service.drained();
      const figures = await service.figures();
      printFigures(`F24 ${command} ${args.join(" ")}`, figures);
      expect(figures).toEqual({ deliveries: 2, lost: 0, duplicates: 0, books: WHOLE_BOOKS });
      await service.stop();
      admin.disconnect();
      await slow.stop();
    },
  );

  test("what a claim leased whose answer came too late is given back at once, and not left to its lease", async () => {
    const proxy = await startProxy({ host: HOST, port: redis.port });
    const { store, storage, register, append, claim } = openStore({ url: urlOf(proxy) });
    await register();
    await append(newEvent("clinic"));
    await proxy.mode({ delayMs: 2_000 });
    expect(await codeOf(claim())).toBe("storage_unavailable");
    await proxy.mode({ delayMs: 0 });
    const isFree = async (): Promise<boolean> => (await store.stats().catch(() => null))?.leased === 0;
    await eventually(isFree, { ms: RESUMED_MS, what: "the lease is given back" });
    expect(await claim()).toHaveLength(1);
    await storage.close();
    await proxy.stop();
  }, 20_000);
});

describe("a connection that flaps (F25)", () => {
  test("cut every 90 ms, 600 emits are stored once each, and every promise settles", async () => {
    const proxy = await startProxy({ host: HOST, port: redis.port });
    const service = await startService({ redis: { url: urlOf(proxy) }, receiver });
    await service.register(1);
    const cutting = setInterval(() => proxy.cutAll(), 90);
    const emitting = Array.from({ length: 600 }, async (_, index) => {
      await sleep(5 * index);
      await service.emitSurely();
    });
    await Promise.all(emitting);
    clearInterval(cutting);
    await service.drained();
    const figures = await service.figures();
    printFigures("F25 a cut every 90 ms", figures, `${proxy.connections()} connections`);
    expect(figures).toEqual({ deliveries: 600, lost: 0, duplicates: 0, books: WHOLE_BOOKS });
    await service.stop();
    await proxy.stop();
  }, 60_000);
});
