/**
 * The delivery queue on Redis: its records, and its behaviour with damaged data, at bounds and with
 * late replies.
 */

import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { manualClock } from "../../../src/testing/manual-clock.js";
import type { Claim, EventRecord } from "../../../src/webhooks/store.js";
import { encodeUuid } from "../../../storage/redis/codec.js";
import { type OpenStore, openStore } from "../../faults/support/redis-store.js";
import { newEvent } from "../../faults/support/store-driver.js";
import { eventually } from "../../support/eventually.js";
import { heldClient, isScript } from "../../support/held-client.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { startRedis } from "../../support/redis-server.js";

const START = Date.UTC(2026, 0, 1);
const RETENTION = { keepMs: 3_600_000, events: 10_000 };

let admin: Redis;
beforeAll(() => {
  admin = new Redis(redisUrl());
});
afterAll(() => admin.disconnect());

async function open(given: Parameters<typeof openStore>[1] = {}, time?: "clock") {
  const opened = openStore({ url: redisUrl(), time }, given);
  const webhook = await opened.register();
  return {
    ...opened,
    webhook,
    /** Stores an event by another process, so that this one has to read it. */
    appendElsewhere: async (event: EventRecord): Promise<void> => {
      const other = openStore({ url: redisUrl(), prefix: opened.prefix }, given);
      await other.append(event);
      await other.storage.close();
    },
    emit: async (count: number) => {
      for (let index = 0; index < count; index++) await opened.append(newEvent("clinic"));
    },
  };
}

const settleAll = ({ settle }: Pick<OpenStore, "settle">, claims: readonly Claim[]) =>
  Promise.all(claims.map((claim) => settle(claim)));

/** How often HGET was called on a server so far, also by scripts. */
const fieldReads = async (redis: Redis): Promise<number> =>
  Number(/cmdstat_hget:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1] ?? 0);

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "resolved",
    (error: { readonly code?: string }) => error.code ?? "another error",
  );

describe("a delivery that is delivered at its first attempt", () => {
  test("has a short record, and is read with its attempt like any other", async () => {
    const { store, storage, append, claim, settle, key, webhook } = await open();
    const event = newEvent("clinic");
    await append(event);
    const ref = `1/${encodeUuid(event.id)}`;
    const [claimed] = await claim();
    if (!claimed) throw new Error("one is due");
    expect(await admin.hget(key("deliveries"), ref)).toBe(`l,${claimed.token}`);
    expect(await settle(claimed)).toBe("settled");
    expect(await admin.hget(key("deliveries"), ref)).toMatch(/^d,[^,]+,\d{13},\d{13}\n\d{13},1,0,204$/);
    const delivery = await store.getDelivery(claimed.id);
    expect(delivery).toMatchObject({ state: "delivered", step: 0, eventId: event.id, reason: null });
    expect(delivery?.attempts).toEqual([
      {
        at: delivery?.startedAt,
        durationMs: 1,
        step: 0,
        isExtra: false,
        kind: "delivered",
        status: 204,
        code: "HTTP_204",
        excerpt: null,
      },
    ]);
    const { deliveries } = await store.listDeliveries({ webhookId: webhook.id, limit: 5 });
    expect(deliveries).toEqual([delivery]);
    expect((await storage.check()).repaired).toBe(0);
    await storage.close();
  });

  test("counts once for each of two generations of its endpoint that are settled together", async () => {
    const { store, storage, emit, claim, settle, webhook } = await open();
    await emit(5);
    const before = await claim({ most: 3 });
    const change = { url: "https://hooks.example.com/moved" } as const;
    const { id, account } = webhook;
    await store.updateWebhook({ id, account, change, enabledLimit: 15, now: store.now() });
    const after = await claim();
    expect(after).toHaveLength(2);
    expect(await settleAll({ settle }, [...before, ...after])).toEqual(Array(5).fill("settled"));
    expect(await store.deliveryStats(webhook.id, store.now())).toMatchObject({ delivered: 5, pending: 0 });
    expect((await storage.check()).repaired).toBe(0);
    await storage.close();
  });
});

describe("failed attempts", () => {
  test("of many endpoints are settled by a call that reads their event once", async () => {
    // A separate server, because other tests read fields of the shared one at the same time.
    const server = await startRedis({ persistence: "none" });
    const own = new Redis(server.url);
    onTestFinished(async () => {
      own.disconnect();
      await server.stop();
    });
    const opened = openStore({ url: server.url });
    for (let count = 0; count < 40; count++) await opened.register();
    await opened.append(newEvent("clinic"));
    const claims = await opened.claim();
    expect(claims).toHaveLength(40);
    const before = await fieldReads(own);
    const again = { state: "pending", step: 1, dueAt: START, postponed: 0, crashes: 0 } as const;
    const results = await Promise.all(claims.map((claim) => opened.settle(claim, again)));
    expect(results).toEqual(Array(40).fill("settled"));
    expect((await fieldReads(own)) - before).toBeLessThan(10);
    expect((await opened.storage.check()).repaired).toBe(0);
    await opened.storage.close();
  });
});

describe("the bounds of retention", () => {
  test("hold while claims and settlements keep coming", async () => {
    const { store, storage, emit, claim, settle } = await open({
      retention: { keepMs: 3_600_000, events: 20 },
    });
    await emit(600);
    for (let claims = await claim({ most: 150 }); claims.length > 0; ) {
      const settled = settleAll({ settle }, claims);
      claims = await claim({ most: 150 });
      await settled;
    }
    await claim();
    expect(await store.stats()).toMatchObject({ pending: 0, ended: 20, events: 20 });
    await storage.close();
  });

  test("of 0 ms free an event with its last delivery", async () => {
    const { store, storage, emit, claim, settle } = await open({ retention: { keepMs: 0, events: 20 } });
    await emit(2);
    await settleAll({ settle }, await claim());
    expect(await store.stats()).toMatchObject({ events: 0, ended: 0, pending: 0 });
    await storage.close();
  });
});

describe("an event that cannot be read", () => {
  test.each([
    ["has a type that cannot be decoded", (text: string) => text.replace("patient.updated", "%zz")],
    ["has a digest that is no JSON", (text: string) => text.replace(/\n"[^\n]*"\n/, "\n{\n")],
    ["has no head", (text: string) => text.slice(text.indexOf("\n") + 1)],
    ["is empty", () => ""],
  ])("%s: its delivery ends with an alarm, and the others go on", async (_, damage) => {
    const { store, storage, appendElsewhere, emit, claim, settle, key, log } = await open();
    const event = newEvent("clinic");
    await appendElsewhere(event);
    const field = `1/${encodeUuid(event.id)}`;
    await admin.hset(key("events"), field, damage((await admin.hget(key("events"), field)) ?? ""));
    await emit(3);
    await eventually(async () => {
      await settleAll({ settle }, await claim());
      return (await store.stats()).pending === 0;
    }, "all deliveries have ended");
    expect(log.some(({ level, message }) => level === "error" && message.includes("cannot be read"))).toBe(
      true,
    );
    await storage.close();
  });
});

describe("a lease of a delivery whose record is gone", () => {
  test("that a resend created does not keep other expired leases from being recovered", async () => {
    const { store, storage, emit, claim, settle, key } = await open();
    await emit(1);
    const [first] = await claim();
    if (!first) throw new Error("one is due");
    await settle(first);
    const sent = await store.resend({ id: first.id, account: "clinic", now: store.now() });
    expect(sent?.id).toMatch(/\.1$/);
    const [later = ""] = (await admin.hkeys(key("deliveries"))).filter((ref) => ref.endsWith(".1"));
    await admin.hdel(key("deliveries"), later);
    await emit(1);
    await claim({ leaseMs: 1 });
    await eventually(async () => (await claim()).length === 1, "the healthy one is leased again");
    await storage.close();
  });
});

describe("a key of a foreign type", () => {
  const KEYS = [
    "deliveries",
    "webhook-counts",
    "progress",
    "account-counts",
    "completed",
    "retention",
    "leases",
  ];

  test.each(KEYS)("%s: nothing is half recorded, and nothing is lost once it is gone", async (name) => {
    const { store, storage, emit, claim, settle, key } = await open({ perEndpoint: 2 });
    await emit(4);
    const claims = await claim();
    expect(claims).toHaveLength(2);
    const kept = `${key(name)}-kept`;
    const isThere = (await admin.exists(key(name))) === 1;
    if (isThere) await admin.rename(key(name), kept);
    await admin.set(key(name), "foreign");
    const answers = await Promise.all(claims.map((one) => codeOf(settle(one))));
    expect(new Set(answers)).toEqual(new Set(["storage_unavailable"]));
    expect(["resolved", "storage_unavailable"]).toContain(await codeOf(claim()));
    await admin.del(key(name));
    if (isThere) await admin.rename(kept, key(name));
    expect(await settleAll({ settle }, claims)).toEqual(["settled", "settled"]);
    await settleAll({ settle }, await claim());
    expect(await store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 4 });
    expect((await storage.check()).repaired).toBe(0);
    await storage.close();
  });
});

test("an erasure of an account that nobody continues leaves no delivery pending", async () => {
  const { store, storage, emit, claim, key } = await open();
  await emit(3);
  expect(await claim({ most: 1 })).toHaveLength(1);
  await store.eraseAccount({ account: "clinic", now: store.now() });
  expect(await store.stats()).toMatchObject({ webhooks: 0, pending: 3 });
  expect(await claim()).toEqual([]);
  await eventually(async () => (await store.stats()).pending === 0, "the deliveries are freed");
  expect(await admin.exists(key("removals"))).toBe(0);
  expect((await storage.check()).repaired).toBe(0);
  await storage.close();
});

describe("a reply that comes too late", () => {
  test("and reports an unmatched settlement does not crash the process", async () => {
    const clock = manualClock(START);
    const { client, answered, hold, end } = heldClient();
    const prefix = freshPrefix();
    const direct = openStore({ url: redisUrl(), prefix, time: "clock" }, { clock });
    const opened = openStore({ client, prefix, time: "clock" }, { clock, retention: RETENTION });
    const webhook = await direct.register();
    await direct.append(newEvent("clinic"));
    const [claimed] = await opened.claim();
    if (!claimed) throw new Error("one is due");
    await direct.store.removeWebhook({ id: webhook.id, account: "clinic", now: clock.now() });
    const rejections = vi.fn<(reason: unknown) => void>();
    process.on("unhandledRejection", rejections);
    answered.length = 0;
    const release = hold(isScript);
    const results = [codeOf(opened.settle(claimed)), codeOf(opened.claim())];
    await eventually(() => answered.length > 0, "Redis has answered");
    await clock.advance(4_000);
    expect(await Promise.all(results)).toEqual(["storage_unavailable", "storage_unavailable"]);
    release();
    await opened.storage.check();
    process.off("unhandledRejection", rejections);
    expect(rejections).not.toHaveBeenCalled();
    await Promise.all([opened.storage.close(), direct.storage.close()]);
    end();
  });

  test("from one partition does not stop deliveries of the others", async () => {
    const clock = manualClock(START);
    const { client, answered, hold, end } = heldClient();
    const prefix = freshPrefix();
    const { store, storage, register, claim } = openStore(
      { client, prefix, time: "clock", partitions: 2 },
      { clock },
    );
    const other = openStore({ url: redisUrl(), prefix, time: "clock", partitions: 2 }, { clock });
    const isInFirst = (account: string): boolean =>
      Number.parseInt(store.newWebhookId(account).slice(0, 8), 16) % 2 === 0;
    const account = ["a", "b", "c", "d", "e", "f", "g", "h"].find(isInFirst) ?? "a";
    await register(account);
    await other.append(newEvent(account));
    const release = hold(
      (args) => isScript(args) && args.some((arg) => String(arg).includes(`{${prefix}:1}`)),
    );
    const claims = claim();
    // The events that the other partition leased are read after it.
    await eventually(() => answered.includes("HMGET"), "the other partition has answered");
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(3_500);
    expect(await claims).toHaveLength(1);
    release();
    await Promise.all([storage.close(), other.storage.close()]);
    end();
  });
});

test("an endpoint waits for the next second if another process has a higher rate", async () => {
  const clock = manualClock(START);
  const high = await open({ clock, perSecond: 5 }, "clock");
  const options = { url: redisUrl(), prefix: high.prefix, time: "clock" } as const;
  const low = openStore(options, { clock, perSecond: 2 });
  await high.emit(9);
  const now = START;
  const claim = ({ store }: OpenStore) =>
    store.claim({ now, token: `${Math.random()}`, leaseUntil: now + 60_000, room: { fast: 4, slow: 4 } });
  expect((await claim(high)).claims).toHaveLength(4);
  expect(await claim(low)).toEqual({ claims: [], nextAt: START + 1_000 });
  await clock.advance(1_000);
  expect(await low.claim()).toHaveLength(2);
  await high.storage.close();
  await low.storage.close();
});

describe("the key of the rates", () => {
  const openRated = (perSecond?: number) =>
    open({ clock: manualClock(START), perEndpoint: 100, perSecond }, "clock");

  test("has a field for each endpoint that was served, until its webhook is removed", async () => {
    const { store, storage, emit, claim, settle, key, webhook } = await openRated(3);
    await emit(5);
    const claims = await claim();
    expect(claims).toHaveLength(3);
    expect(await admin.hgetall(key("rates"))).toEqual({ 1: `${START / 1_000},3` });
    await settleAll({ settle }, claims);
    expect(await claim()).toEqual([]);
    expect((await storage.check()).repaired).toBe(0);
    await store.removeWebhook({ id: webhook.id, account: "clinic", now: store.now() });
    expect(await admin.exists(key("rates"))).toBe(0);
    await storage.close();
  });

  test("is not written without a limit", async () => {
    const { storage, emit, claim, settle, key } = await openRated();
    await emit(5);
    const claims = await claim();
    expect(claims).toHaveLength(5);
    expect(await settleAll({ settle }, claims)).toEqual(Array(5).fill("settled"));
    expect(await admin.exists(key("rates"))).toBe(0);
    await storage.close();
  });

  test("of a foreign type leases nothing, and nothing is lost once it is gone", async () => {
    const { storage, emit, claim, key } = await openRated(3);
    await emit(5);
    await admin.set(key("rates"), "foreign");
    expect(await codeOf(claim())).toBe("storage_unavailable");
    await admin.del(key("rates"));
    expect(await claim()).toHaveLength(3);
    await storage.close();
  });

  test("with a field that cannot be read, or is far ahead, limits from then on", async () => {
    for (const value of ["garbage", "", "1", `${START / 1_000 + 3_600},3`]) {
      const { storage, emit, claim, key } = await openRated(3);
      await emit(5);
      await admin.hset(key("rates"), "1", value);
      expect(await claim()).toHaveLength(3);
      expect(await claim()).toEqual([]);
      await storage.close();
    }
  });
});
