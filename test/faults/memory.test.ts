/**
 * Redis that is full, or that drops what it was given; what a storage bounds by itself; and what of
 * a secret is in it.
 */

import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { manualClock } from "../../src/testing/manual-clock.js";
import { decodeUuid, encodeUuid } from "../../storage/redis/codec.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { openStore } from "./support/redis-store.js";
import { codeOf, eventually, newEvent } from "./support/store-driver.js";

const DAY_MS = 86_400_000;

let redis: RedisServer;
let admin: Redis;
beforeAll(async () => {
  redis = await startRedis();
  admin = new Redis(redis.port);
});
afterAll(async () => {
  admin.disconnect();
  await redis.stop();
});

const usedMemory = async (client: Redis): Promise<number> =>
  Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]);

/** Everything that a key holds, as one text. */
async function textOf(client: Redis, key: string): Promise<string> {
  const type = await client.type(key);
  if (type === "hash") return JSON.stringify(await client.hgetall(key));
  if (type === "zset") return JSON.stringify(await client.zrange(key, "0", "-1"));
  return String(await client.get(key));
}

async function textsOf(client: Redis, prefix: string): Promise<readonly string[]> {
  const keys = await client.keys(`{${prefix}*`);
  return Promise.all(keys.map((key) => textOf(client, key)));
}

describe("Redis with no memory left (F26)", () => {
  test("refuses emits and webhooks as storage_full, while claims and outcomes go on and make room", async () => {
    const server = await startRedis({ args: ["--maxmemory-policy", "noeviction"] });
    const client = new Redis(server.port);
    const opened = openStore({ url: server.url });
    await opened.register();
    for (let count = 0; count < 200; count++) await opened.append(newEvent("clinic"));
    await client.config("SET", "maxmemory", String((await usedMemory(client)) - 100_000));
    const before = await opened.store.stats();
    for (let count = 0; count < 5; count++)
      expect(await codeOf(opened.append(newEvent("clinic", { payload: "x".repeat(10_000) })))).toBe(
        "storage_full",
      );
    expect(await codeOf(opened.register("another"))).toBe("storage_full");
    expect(await opened.store.stats()).toEqual(before);

    // A process that starts while Redis is full.
    const started = openStore({ url: server.url, prefix: opened.prefix });
    expect(await started.store.stats()).toEqual(before);
    const [first] = await started.claim({ most: 1 });
    if (!first) throw new Error("one is due");
    const dueAt = started.store.now();
    const retry = { state: "pending", step: 1, dueAt, postponed: 0, crashes: 0 } as const;
    expect(await started.settle(first, retry)).toBe("settled");
    await started.storage.close();
    expect(await opened.drain()).toHaveLength(200);
    expect(await opened.store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 200 });
    await client.config("SET", "maxmemory", "0");
    expect(await opened.append(newEvent("clinic"))).toMatchObject({ result: "stored" });
    expect((await opened.storage.check()).repaired).toBe(0);
    await opened.storage.close();
    client.disconnect();
    await server.stop();
  });
});

describe("Redis that drops keys (F27)", () => {
  test("check() warns of the policy", async () => {
    const server = await startRedis({ args: ["--maxmemory-policy", "allkeys-lru"] });
    const opened = openStore({ url: server.url });
    const report = await opened.storage.check();
    expect(report).toMatchObject({ ok: false, evictionPolicy: "allkeys-lru" });
    expect(report.warnings.join()).toMatch(/allkeys-lru.*noeviction/);
    await opened.storage.close();
    await server.stop();
  });

  test.each([
    ["that waits for its first attempt", false],
    ["that waits for a retry", true],
  ])(
    "a delivery %s, and whose event is gone, ends as failed, with an alarm; the others go on",
    async (_, isRetry) => {
      const opened = openStore({ url: redis.url });
      const { id: webhookId } = await opened.register();
      const [gone, kept] = [newEvent("clinic"), newEvent("clinic")];
      // By another process: this one would still have it.
      const emitter = openStore({ url: redis.url, prefix: opened.prefix });
      await emitter.append(gone);
      await emitter.storage.close();
      if (isRetry) {
        const [claimed] = await opened.claim();
        if (!claimed) throw new Error("one is due");
        const dueAt = opened.store.now();
        await opened.settle(claimed, { state: "pending", step: 1, dueAt, postponed: 0, crashes: 0 });
      }
      await opened.append(kept);
      await admin.hdel(opened.key("events"), `1/${encodeUuid(gone.id)}`);
      expect(await opened.drain()).toEqual([`${webhookId}.${kept.id}`]);
      expect(opened.log.some(({ level }) => level === "error")).toBe(true);
      const { deliveries } = await opened.store.listDeliveries({ webhookId, limit: 10 });
      expect(deliveries.find(({ eventId }) => eventId === gone.id)).toMatchObject({
        state: "failed",
        reason: "payload_missing",
      });
      expect(await opened.store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 2 });
      // The place of the event in the log, which nobody could find without its text.
      expect((await opened.storage.check()).repaired).toBe(1);
      expect((await opened.storage.check()).repaired).toBe(0);
      await opened.storage.close();
    },
  );

  test("an attempt that failed, of an event that only its emitter still has, ends with an alarm in another process", async () => {
    const opened = openStore({ url: redis.url });
    const other = openStore({ url: redis.url, prefix: opened.prefix });
    const { id: webhookId } = await opened.register();
    const gone = newEvent("clinic");
    await opened.append(gone);
    await admin.hdel(opened.key("events"), `1/${encodeUuid(gone.id)}`);
    const [claimed] = await opened.claim({ leaseMs: 1 });
    if (!claimed) throw new Error("its emitter still has it");
    const dueAt = opened.store.now();
    await opened.settle(claimed, { state: "pending", step: 1, dueAt, postponed: 0, crashes: 0 });
    await other.drain();
    expect(other.log.some(({ level }) => level === "error")).toBe(true);
    const { deliveries } = await opened.store.listDeliveries({ webhookId, limit: 10 });
    expect(deliveries).toMatchObject([{ state: "failed", reason: "payload_missing" }]);
    expect(await opened.store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 1 });
    await Promise.all([opened.storage.close(), other.storage.close()]);
  });
});

describe("one id with two contents (F60)", () => {
  test("twenty emits at once store one of them, and refuse the other as a conflict", async () => {
    const opened = openStore({ url: redis.url });
    const peer = openStore({ url: redis.url, prefix: opened.prefix });
    await opened.register();
    const id = randomUUID();
    const contents = ["A", "B"].map((letter) => newEvent("clinic", { id, digest: letter, payload: letter }));
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const event = contents[index % 2] ?? newEvent("clinic");
        const { result } = await (index % 3 === 0 ? peer : opened).append(event);
        return `${event.payload} ${result}`;
      }),
    );
    const stored = answers.filter((answer) => answer.endsWith("stored"));
    expect(stored).toHaveLength(1);
    const winner = stored[0]?.slice(0, 1);
    const rest = answers.filter((answer) => !answer.endsWith("stored"));
    expect(
      rest.every((answer) => answer.endsWith(answer.startsWith(`${winner}`) ? "duplicate" : "conflict")),
    ).toBe(true);
    const [claimed] = await opened.claim();
    expect(claimed?.event).toMatchObject({ digest: winner, payload: winner });
    await Promise.all([opened.storage.close(), peer.storage.close()]);
  });
});

describe("more emits than deliveries (F61)", () => {
  test("up to the bound every emit is stored, beyond it every emit rejects, and nothing grows", async () => {
    const opened = openStore({ url: redis.url, limits: { pending: 1_000 } });
    await opened.register();
    const emit = (count: number): Promise<readonly string[]> =>
      Promise.all(Array.from({ length: count }, () => codeOf(opened.append(newEvent("clinic")))));
    const first = await emit(1_500);
    expect(first.filter((code) => code === "resolved")).toHaveLength(1_000);
    expect(first.filter((code) => code === "storage_full")).toHaveLength(500);
    const [redisBefore, heapBefore] = [await usedMemory(admin), process.memoryUsage().heapUsed];
    for (let round = 0; round < 10; round++)
      expect(new Set(await emit(1_000))).toEqual(new Set(["storage_full"]));
    expect((await usedMemory(admin)) - redisBefore).toBeLessThan(1_000_000);
    expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(100_000_000);
    expect(await opened.drain()).toHaveLength(1_000);
    expect(await emit(1)).toEqual(["resolved"]);
    await opened.storage.close();
  });
});

describe("sealed secrets", () => {
  const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

  test("no secret stands in Redis, also not in what is kept for a repeated request or of a rotation", async () => {
    const opened = openStore({ url: redis.url, sealKeys: [first] });
    const { store } = opened;
    const { id, secret } = await opened.register();
    const now = store.now();
    const webhook = {
      ...((await store.getWebhook(id)) as NonNullable<Awaited<ReturnType<typeof store.getWebhook>>>),
      id: store.newWebhookId("clinic"),
    };
    const idempotency = { key: "once", digest: "d", expiresAt: now + 600_000 };
    await store.createWebhook({ webhook, enabledLimit: 15, accountLimit: 100, idempotency, now });
    const rotation = { secret: "whsec_rotated", rotateAt: now + 600_000 };
    await store.updateWebhook({ id, account: "clinic", change: { rotation }, enabledLimit: 15, now });
    await opened.append(newEvent("clinic"));
    await opened.claim();
    const texts = await textsOf(admin, opened.prefix);
    expect(texts.length).toBeGreaterThan(5);
    expect(texts.filter((text) => text.includes("whsec_"))).toEqual([]);
    expect(await store.getWebhook(id)).toMatchObject({ secret: "whsec_rotated", previousSecret: secret });
    await opened.storage.close();
  });

  test("a new key in front opens what the old one sealed, and seals what is changed from then on", async () => {
    const old = openStore({ url: redis.url, sealKeys: [first] });
    const { id, secret } = await old.register();
    const both = openStore({ url: redis.url, prefix: old.prefix, sealKeys: [second, first] });
    const now = both.store.now();
    expect(await both.store.getWebhook(id)).toMatchObject({ secret });
    await both.store.updateWebhook({
      id,
      account: "clinic",
      change: { eventTypes: ["*"] },
      enabledLimit: 15,
      now,
    });
    const next = openStore({ url: redis.url, prefix: old.prefix, sealKeys: [second] });
    expect(await next.store.getWebhook(id)).toMatchObject({ secret });
    await Promise.all([old, both, next].map(({ storage }) => storage.close()));
  });

  test("without the key a webhook's deliveries wait, with an alarm, and others go on; with it they are delivered", async () => {
    const sealed = openStore({ url: redis.url, sealKeys: [first] });
    const { id } = await sealed.register();
    const waiting = newEvent("clinic");
    await sealed.append(waiting);
    const keyless = openStore({ url: redis.url, prefix: sealed.prefix });
    await keyless.register("another");
    const other = newEvent("another");
    await keyless.append(other);
    expect(await codeOf(keyless.store.getWebhook(id))).toBe("storage_unavailable");
    expect((await keyless.claim()).map(({ event }) => event.id)).toEqual([other.id]);
    const alarms = keyless.log.filter(({ level }) => level === "error");
    expect(alarms).toHaveLength(1);
    expect(JSON.stringify(alarms)).not.toContain("whsec_");
    const minute = 60_000;
    const waits = async () => (await sealed.store.getDelivery(`${id}.${waiting.id}`))?.dueAt ?? 0;
    await eventually(async () => (await waits()) > sealed.store.now() + minute / 2, {
      ms: 3_000,
      what: "it is rescheduled",
    });
    const now = sealed.store.now() + minute + 1;
    const request = { now, token: "later", leaseUntil: now + minute, room: { fast: 9, slow: 9 } };
    const { claims } = await sealed.store.claim(request);
    expect(claims.find(({ event }) => event.id === waiting.id)).toMatchObject({
      crashes: 0,
      startedAt: null,
      step: 0,
    });
    await Promise.all([sealed.storage.close(), keyless.storage.close()]);
  });
});

describe("the books", () => {
  test("a count and a lease that a hand has changed are counted and put right", async () => {
    const opened = openStore({ url: redis.url }, { perEndpoint: 2 });
    const { id: webhookId } = await opened.register();
    for (let count = 0; count < 2; count++) await opened.append(newEvent("clinic"));
    expect(await opened.claim()).toHaveLength(2);
    await admin.hset(opened.key("in-flight"), "1", "7");
    expect((await opened.storage.check()).repaired).toBe(1);
    expect((await opened.storage.check()).repaired).toBe(0);
    const [lease = ""] = await admin.zrange(opened.key("leases"), "0", "0");
    await admin.zrem(opened.key("leases"), lease);
    expect((await opened.storage.check()).repaired).toBeGreaterThan(0);
    expect((await opened.storage.check()).repaired).toBe(0);
    // The slot and the delivery are free again.
    const [, short = ""] = lease.split("/");
    expect((await opened.claim()).map(({ id }) => id)).toEqual([`${webhookId}.${decodeUuid(short)}`]);
    await opened.storage.close();
  });

  test("the counts of a webhook's deliveries are counted again where they are wrong", async () => {
    const opened = openStore({ url: redis.url });
    const [one, other] = [await opened.register(), await opened.register()];
    await opened.register("another");
    for (let count = 0; count < 4; count++) await opened.append(newEvent("clinic"));
    const claims = (await opened.claim()).filter(({ webhook }) => webhook.id === one.id);
    const [delivered, failed, withheld] = claims;
    if (!delivered || !failed || !withheld) throw new Error("four are due");
    await opened.settle(delivered);
    await opened.settle(failed, { state: "failed", reason: "exhausted" });
    await opened.settle(withheld, { state: "withheld", reason: "access_denied" });
    await opened.store.resend({ id: delivered.id, account: "clinic", now: opened.store.now() });
    const again = (await opened.claim()).find(({ id }) => id === `${delivered.id}.1`);
    if (!again) throw new Error("it is due again");
    await opened.settle(again);
    const now = opened.store.now();
    const counts = () => Promise.all([one, other].map(({ id }) => opened.store.deliveryStats(id, now)));
    const right = await counts();
    expect(right).toMatchObject([
      { pending: 1, delivered: 2, failed: 1, withheld: 1 },
      { pending: 4, delivered: 0, failed: 0, withheld: 0 },
    ]);
    expect((await opened.storage.check()).repaired).toBe(0);
    const lastAttempt = { at: 1, kind: "http", status: 500, code: "HTTP_500" };
    await admin.hset(opened.key("webhook-counts"), {
      1: `7,0,0,0,0\n${JSON.stringify(lastAttempt)}\n`,
      2: "garbage",
    });
    expect(await counts()).not.toEqual(right);
    expect((await opened.storage.check()).repaired).toBe(1);
    // The hours of the last day are gone: the log has the attempts, but nothing counts them again.
    const lastDay = { succeeded: 0, failed: 0, durationMs: 0 };
    expect(await counts()).toEqual([{ ...right[0], lastAttempt, lastDay, hours: [] }, right[1]]);
    expect((await opened.storage.check()).repaired).toBe(0);
    await opened.storage.close();
  });

  test("once all is removed and its time is over, no key is left but the layout and the books", async () => {
    const clock = manualClock(Date.now());
    const opened = openStore(
      { url: redis.url, time: "clock" },
      { clock, retention: { keepMs: 1_000, events: 100 } },
    );
    const ids = [await opened.register("a"), await opened.register("b")];
    for (let count = 0; count < 50; count++) {
      await opened.append(newEvent("a"));
      await opened.append(newEvent("b"));
    }
    await opened.append(newEvent("nobody"));
    const claims = await opened.claim({ most: 40 });
    for (const claim of claims.slice(0, 20)) await opened.settle(claim);
    for (const claim of claims.slice(20, 25))
      await opened.settle(claim, { state: "failed", reason: "exhausted" });
    for (const { id, account } of ids) await opened.store.removeWebhook({ id, account, now: clock.now() });
    await clock.advance(DAY_MS + 1_000);
    for (let count = 0; count < 20; count++) await opened.claim();
    const keys = (await admin.keys(`{${opened.prefix}*`)).map((key) => key.slice(opened.prefix.length + 2));
    expect(keys.sort()).toEqual(["0}:meta", ":layout"].sort());
    expect(await opened.store.stats()).toEqual({
      webhooks: 0,
      events: 0,
      pending: 0,
      leased: 0,
      due: 0,
      endpoints: { ok: 0, failing: 0, warned: 0, disabled: 0 },
      ended: 0,
      bytes: 0,
    });
    await opened.storage.close();
  });
});
