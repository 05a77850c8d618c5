/**
 * Storing events on Redis: one script for every case, and the events that a process caches for its
 * own claims. And the entries of the audit log.
 */

import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import { createStorageCircuit } from "../../../src/core/storage-circuit.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { guardWebhookStore } from "../../../src/webhooks/guarded-store.js";
import type { ClaimRequest, EventRecord } from "../../../src/webhooks/store.js";
import { createEventCache, type Origin } from "../../../storage/redis/claim-reader.js";
import { encodeUuid } from "../../../storage/redis/codec.js";
import type { RedisClient } from "../../../storage/redis/index.js";
import { type OpenStore, openStore } from "../../faults/support/redis-store.js";
import { newEvent } from "../../faults/support/store-driver.js";
import { eventually } from "../../support/eventually.js";
import { heldClient, isScript } from "../../support/held-client.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { toCalledFunction } from "../../support/redis-function.js";

let admin: Redis;
beforeAll(() => {
  admin = new Redis(redisUrl());
});
afterAll(() => admin.disconnect());

/** A store whose scripts and reads are listed as they are sent. */
function watched(prefix = freshPrefix(), limits: { pending?: number } = {}) {
  const client = new Redis(redisUrl());
  const send: RedisClient["call"] = client.call.bind(client);
  const sent: string[] = [];
  const watching = Object.assign(client, {
    call(command: string, ...args: (string | number)[]) {
      if (command === "FCALL") sent.push(toCalledFunction(String(args[0])) ?? "unknown");
      if (command === "HMGET") sent.push(command);
      return send(command, ...args);
    },
  }) as unknown as RedisClient;
  const opened = openStore({ client: watching, prefix, limits });
  return {
    ...opened,
    async loseConnection() {
      const closed = new Promise((resolve) => client.once("close", resolve));
      client.disconnect(true);
      await closed;
    },
    /** Returns the commands since the last call, except those that read the time. */
    sent: () => sent.splice(0).filter((name) => name !== "time"),
    close: async () => {
      await opened.storage.close();
      client.disconnect();
    },
  };
}

/** Claims until there is something: a process may know the time of Redis a little late. */
async function claimSoon({ claim }: Pick<OpenStore, "claim">): ReturnType<OpenStore["claim"]> {
  let claims: Awaited<ReturnType<OpenStore["claim"]>> = [];
  await eventually(async () => {
    claims = await claim();
    return claims.length > 0;
  }, "a delivery is due");
  return claims;
}

const claimOf = ({ store }: Pick<OpenStore, "store">): ClaimRequest => ({
  token: "with-an-event",
  now: store.now(),
  leaseUntil: store.now() + 60_000,
  room: { fast: 10, slow: 10 },
});

const DAY_MS = 86_400_000;

/** Stores an event, and leases due deliveries in the same call. */
const appendClaiming = async (opened: Pick<OpenStore, "store">, event: EventRecord) => {
  const { store } = opened;
  const request = { events: [event], rememberMs: DAY_MS, now: store.now(), claim: claimOf(opened) };
  const { results, claimed } = await store.append(request);
  return { ...results[0], claimed };
};

const ORIGIN: Origin = { dataSet: "one", connection: 1 };

describe("an event is stored", () => {
  test("by one script, which also leases its delivery, and its body is not read back", async () => {
    const opened = watched();
    const { register, sent, close } = opened;
    const webhook = await register();
    sent();
    const event = newEvent("clinic", { payload: '{"a":1}' });
    const answer = await appendClaiming(opened, event);
    expect(answer).toMatchObject({
      result: "stored",
      deliveries: [{ id: `${webhook.id}.${event.id}`, webhookId: webhook.id }],
      claimed: { claims: [{ id: `${webhook.id}.${event.id}`, event, token: "with-an-event" }] },
    });
    expect(sent()).toEqual(["append"]);
    await close();
  });

  test("by many calls at once after its account has another filter, which is read once", async () => {
    const { store, register, append, sent, close } = watched();
    const { id } = await register();
    const filters = Array.from({ length: 3 }, (_, index) => ({ "data.kind": { eq: `kind-${index}` } }));
    for (const [index, filter] of filters.entries()) {
      const change = { filter };
      await store.updateWebhook({ id, account: "clinic", change, enabledLimit: 9, now: store.now() });
      sent();
      const payload = JSON.stringify({ data: { kind: `kind-${index}` } });
      const stored = await Promise.all(
        Array.from({ length: 100 }, () => append(newEvent("clinic", { payload }))),
      );
      expect(stored.every((result) => "deliveries" in result)).toBe(true);
      expect(sent().filter((name) => name === "readWebhooks")).toEqual(["readWebhooks"]);
    }
    await close();
  });

  test.each([
    ["whose id is met again", async ({ append }: OpenStore) => append(newEvent("clinic", { id: MET }))],
    ["that nobody subscribes to", async ({ append }: OpenStore) => append(newEvent("unknown"))],
    [
      "twice in one call",
      async ({ append }: OpenStore) => {
        const event = newEvent("clinic");
        const answers = await Promise.all([append(event), append(event)]);
        expect(answers.map(({ result }) => result)).toEqual(["stored", "duplicate"]);
      },
    ],
  ])("with others in one call if one of them is an event %s", async (_, uncommon) => {
    const opened = watched();
    const { store, storage, register, append, sent, close, drain } = opened;
    await register();
    await append(newEvent("clinic", { id: MET }));
    sent();
    const beside = newEvent("clinic");
    const [answer] = await Promise.all([append(beside), uncommon(opened)]);
    expect(answer).toMatchObject({ result: "stored" });
    expect(sent()).toEqual(["append"]);
    const delivered = await drain();
    expect(delivered.filter((id) => id.endsWith(beside.id))).toHaveLength(1);
    expect(new Set(delivered).size).toBe(delivered.length);
    expect((await store.stats()).pending).toBe(0);
    expect((await storage.check()).repaired).toBe(0);
    await close();
  });

  test("for a test stands in the queue once, also after an event of a clock that is ahead", async () => {
    const prefix = freshPrefix();
    const { store, storage, register, claim, close } = watched(prefix);
    const webhook = await register();
    const [meta = ""] = (await admin.keys(`{${prefix}:*}:*`)).filter((key) => key.endsWith(":meta"));
    const ahead = (store.now() + 60_000).toString(16).padStart(11, "0");
    await admin.hset(meta, "order", `${ahead}0000`);
    const request = { rememberMs: DAY_MS, now: store.now(), webhookId: webhook.id };
    await store.append({ ...request, events: [newEvent("clinic")] });
    const claims = await claimSoon({ claim });
    expect(await claim()).toEqual([]);
    expect(claims).toHaveLength(1);
    expect((await storage.check()).repaired).toBe(0);
    await close();
  });

  test("up to the bound; beyond it, it is refused and nothing changes", async () => {
    const { store, storage, register, append, sent, close } = watched(freshPrefix(), { pending: 2 });
    await register();
    sent();
    await append(newEvent("clinic"));
    const answers = await Promise.allSettled([append(newEvent("clinic")), append(newEvent("clinic"))]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(sent()).toEqual(["append", "append"]);
    expect(await store.stats()).toMatchObject({ events: 2, pending: 2 });
    expect((await storage.check()).repaired).toBe(0);
    await close();
  });

  test("once, and a repetition that claims leases its delivery in the same call", async () => {
    const opened = watched();
    const { register, append, sent, close } = opened;
    await register();
    const event = newEvent("clinic");
    await append(event);
    sent();
    const answer = await appendClaiming(opened, event);
    expect(answer).toMatchObject({
      result: "duplicate",
      claimed: { claims: [{ event }], nextAt: expect.any(Number) },
    });
    expect(sent().filter((name) => name !== "HMGET")).toEqual(["append"]);
    await close();
  });

  test("in order, however many come within a millisecond", async () => {
    const { store, register, append, close } = watched();
    const { id: webhookId } = await register();
    const events = Array.from({ length: 40 }, () => newEvent("clinic"));
    for (const event of events) await append(event);
    const { deliveries } = await store.listDeliveries({ webhookId, limit: 50 });
    expect(deliveries.map(({ eventId }) => eventId)).toEqual(events.map(({ id }) => id).toReversed());
    await close();
  });
});

describe("entries of the audit log", () => {
  test("are added once if the call is sent again after a lost connection", async () => {
    const redis = new Redis(redisUrl());
    const send: RedisClient["call"] = redis.call.bind(redis);
    const client = Object.assign(redis, {
      async call(command: string, ...args: (string | number)[]) {
        const reply = await send(command, ...args);
        return toCalledFunction(String(args[0])) === "audit" ? send(command, ...args) : reply;
      },
    }) as unknown as RedisClient;
    const { store, storage } = openStore({ client, prefix: freshPrefix() });
    const now = store.now();
    const entries = ["first", "second", "third"].map((entry) => ({
      account: "clinic",
      at: now,
      entry,
      isDelivery: false,
    }));
    await store.addAuditEntries?.({ entries: entries.slice(0, 2), keep: 10, now });
    await store.addAuditEntries?.({ entries: entries.slice(2), keep: 10, now });
    const page = await store.listAuditEntries?.({ account: "clinic", limit: 10 });
    expect(page?.entries).toEqual(entries.toReversed());
    await storage.close();
    redis.disconnect();
  });

  test("are added once if another process adds one of the same time before the call is sent again", async () => {
    const prefix = freshPrefix();
    const other = openStore({ url: redisUrl(), prefix });
    const now = other.store.now();
    const add = ({ store }: Pick<OpenStore, "store">, entry: string) =>
      store.addAuditEntries?.({
        entries: [{ account: "clinic", at: now, entry, isDelivery: false }],
        keep: 10,
        now,
      });
    const redis = new Redis(redisUrl());
    const send: RedisClient["call"] = redis.call.bind(redis);
    const client = Object.assign(redis, {
      async call(command: string, ...args: (string | number)[]) {
        const reply = await send(command, ...args);
        if (toCalledFunction(String(args[0])) !== "audit") return reply;
        await add(other, "between");
        return send(command, ...args);
      },
    }) as unknown as RedisClient;
    const opened = openStore({ client, prefix });
    await add(opened, "first");
    const page = await opened.store.listAuditEntries?.({ account: "clinic", limit: 10 });
    expect(page?.entries.map(({ entry }) => entry)).toEqual(["between", "first"]);
    await Promise.all([opened.storage.close(), other.storage.close()]);
    redis.disconnect();
  });
});

const MET = "0f0e0d0c-0b0a-4908-8706-050403020100";

describe("claims that an append could not return in time", () => {
  test("are released, and the event counts as stored", async () => {
    const clock = manualClock(1_800_000_000_000);
    const { client, answered, hold, end } = heldClient();
    const circuit = createStorageCircuit({ clock, logger: silentLogger, service: "webhooks" });
    const prefix = freshPrefix();
    const own = openStore({ client, prefix, time: "clock" }, { clock });
    const other = openStore({ url: redisUrl(), prefix, time: "clock" }, { clock });
    await other.register();
    // Stored by another process, so that it has to be read from Redis.
    await other.append(newEvent("clinic"));
    await own.store.stats();
    const scriptPasses = hold(isScript);
    answered.length = 0;
    const times = { rememberMs: DAY_MS, now: clock.now() };
    const request = { events: [newEvent("clinic")], ...times, claim: claimOf(own) };
    const appended = guardWebhookStore(own.store, circuit).append(request);
    await eventually(() => answered.includes("FCALL"), "the script has run");
    await clock.advance(2_000);
    const readPasses = hold(([command]) => command === "HMGET");
    scriptPasses();
    await eventually(() => answered.includes("HMGET"), "the events are read");
    await clock.advance(1_900);
    expect(await appended).toMatchObject({ results: [{ result: "stored" }] });
    expect(await appended).not.toHaveProperty("claimed.claims");
    readPasses();
    await vi.waitFor(async () => expect(await other.store.stats()).toMatchObject({ leased: 0 }), 10_000);
    expect((await other.claim()).map(({ crashes }) => crashes)).toEqual([0, 0]);
    await Promise.all([own.storage.close(), other.storage.close()]);
    end();
  });
});

describe("the events that a process caches", () => {
  test("are those it stored itself; all others of a claim are read with one command", async () => {
    const own = watched();
    const other = watched(own.prefix);
    await own.register();
    const events = [newEvent("clinic"), newEvent("clinic"), newEvent("clinic")];
    await own.append(events[0] as (typeof events)[0]);
    for (const event of events.slice(1)) await other.append(event);
    own.sent();
    const claims = await own.claim();
    const byId = (one: { id: string }, other: { id: string }): number => one.id.localeCompare(other.id);
    // Events of the same millisecond come in the order of their ids.
    expect(claims.map(({ event }) => event).sort(byId)).toEqual(events.sort(byId));
    expect(own.sent()).toEqual(["claim", "HMGET"]);
    expect(await Promise.all(claims.map((one) => own.settle(one)))).toEqual(Array(3).fill("settled"));
    await Promise.all([own.close(), other.close()]);
  });

  test("are not used after Redis was emptied, even if the same id comes again", async () => {
    const own = watched();
    const other = watched(own.prefix);
    await own.register();
    const event = newEvent("clinic", { payload: '"before"' });
    await own.append(event);
    await admin.del(...(await admin.keys(`{${own.prefix}*`)));
    await other.register();
    const after = { ...event, payload: '"after"', digest: "another" };
    await other.append(after);
    const claims = await claimSoon(own);
    expect(claims.map((claim) => claim.event)).toEqual([after]);
    expect(own.log.filter(({ fields }) => fields["code"] === "store_reset")).toHaveLength(1);
    await Promise.all([own.close(), other.close()]);
  });

  test("are not used once the connection was lost: Redis may have come back with older data", async () => {
    const own = watched();
    const other = watched(own.prefix);
    await own.register();
    await own.append(newEvent("clinic"));
    await own.drain();
    const keys = await admin.keys(`{${own.prefix}*`);
    const older = await Promise.all(keys.map((key) => admin.dumpBuffer(key)));
    const event = newEvent("clinic", { payload: '"before"', digest: "before" });
    await own.append(event);
    await own.loseConnection();
    await admin.del(...(await admin.keys(`{${own.prefix}*`)));
    await Promise.all(keys.map((key, place) => admin.restore(key, 0, older[place] as Buffer)));
    const after = { ...event, payload: '"after"', digest: "after" };
    await other.append(after);
    const claims = await claimSoon(own);
    expect(claims.map((claim) => claim.event)).toEqual([after]);
    await Promise.all([own.close(), other.close()]);
  });

  test("belong to their account, even if another account has the same id", async () => {
    const { register, append, claim, close } = watched();
    await register("one");
    await register("two");
    const first = newEvent("one", { payload: '"one"' });
    const second = newEvent("two", { id: first.id, payload: '"two"' });
    await append(first);
    await append(second);
    const claims = await claim();
    const seen = claims.map(({ webhook, event }) => `${webhook.account} ${event.account} ${event.payload}`);
    expect(new Set(seen)).toEqual(new Set(['one one "one"', 'two two "two"']));
    await close();
  });

  test("are not used any more when their ids may have been forgotten", () => {
    const cache = createEventCache();
    const event = newEvent("clinic");
    const stored = { event, createdAt: 0 };
    const get = (origin: Origin, now: number) =>
      cache.get("clinic", `1/${encodeUuid(event.id)}`, origin, now);
    cache.add(encodeUuid(event.id), "1", stored, { origin: ORIGIN, until: 1_000 });
    expect(get(ORIGIN, 999)).toBe(stored);
    expect(get(ORIGIN, 1_000)).toBeUndefined();
    expect(get({ ...ORIGIN, dataSet: "another" }, 999)).toBeUndefined();
    expect(get({ ...ORIGIN, connection: 2 }, 999)).toBeUndefined();
    cache.clear();
    expect(get(ORIGIN, 999)).toBeUndefined();
  });

  test("are bounded, and the oldest are removed first", () => {
    const cache = createEventCache(10_000);
    const events = Array.from({ length: 10 }, () => newEvent("clinic", { payload: "x".repeat(1_500) }));
    for (const event of events)
      cache.add(encodeUuid(event.id), "1", { event, createdAt: 0 }, { origin: ORIGIN, until: 1 });
    const kept = events.filter(({ id }) => cache.get("clinic", `1/${encodeUuid(id)}`, ORIGIN, 0));
    expect(kept).toEqual(events.slice(6));
  });
});
