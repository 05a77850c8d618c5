/**
 * Guarantees of `redisStorage` beyond the storage contract: options, sealed secrets, warnings,
 * connections and bounds.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { isPostbellError } from "../../../src/core/errors.js";
import { encodeUuid } from "../../../storage/redis/codec.js";
import { type RedisClient, type RedisStorageOptions, redisStorage } from "../../../storage/redis/index.js";
import { createPartitions } from "../../../storage/redis/partition.js";
import { listWarnings } from "../../../storage/redis/server-report.js";
import { createSeal } from "../../../storage/seal.js";
import { openStore } from "../../faults/support/redis-store.js";
import { newEvent } from "../../faults/support/store-driver.js";
import { eventually } from "../../support/eventually.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { type RedisCluster, startCluster, startRedis } from "../../support/redis-server.js";

/** The number of the first webhook of a partition. */
const FIRST_WEBHOOK = "1";
const HOST = "127.0.0.1";

const [firstKey, secondKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

let admin: Redis;
beforeAll(() => {
  admin = new Redis(redisUrl());
});
afterAll(() => admin.disconnect());

/** `<code> <field>` of what a promise rejects with, or `resolved`. */
const refusalOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "resolved",
    (error: unknown) => (isPostbellError(error) ? `${error.code} ${error.field}` : String(error)),
  );

async function storedText(key: string, field: string): Promise<string> {
  const value = await admin.hget(key, field);
  if (value === null) throw new Error(`${key} has no ${field}`);
  return value;
}

const cutAtFeed = (value: string): readonly [line: string, rest: string] => {
  const [line = ""] = value.split("\n", 1);
  return [line, value.slice(line.length)];
};

describe("the options", () => {
  const client = { call: async () => null } as unknown as RedisClient;
  const url = "redis://127.0.0.1:1";

  test.each<[string, object, string]>([
    ["neither url nor client", {}, "url"],
    ["both url and client", { url, client }, "url"],
    ["a URL with a broken host", { url: "redis://:password@[::1" }, "url"],
    ["a URL with an impossible port", { url: "rediss://:password@localhost:99999" }, "url"],
    ["an opening brace in the prefix", { url, prefix: "a{b" }, "prefix"],
    ["a closing brace in the prefix", { url, prefix: "a}b" }, "prefix"],
    ["a blank in the prefix", { url, prefix: "a b" }, "prefix"],
    ["a lone surrogate in the prefix", { url, prefix: "a\ud800" }, "prefix"],
    ["an empty prefix", { url, prefix: "" }, "prefix"],
    ["a prefix of 101 characters", { url, prefix: "a".repeat(101) }, "prefix"],
    ["no partition", { url, partitions: 0 }, "partitions"],
    ["257 partitions", { url, partitions: 257 }, "partitions"],
    ["one and a half partitions", { url, partitions: 1.5 }, "partitions"],
    ["a seal key of 31 bytes", { url, sealKeys: [firstKey, Buffer.alloc(31)] }, "sealKeys"],
    [
      "a seal key of 31 bytes in base64",
      { url, sealKeys: [Buffer.alloc(31).toString("base64")] },
      "sealKeys",
    ],
    ["an unknown option", { url, partition: 4 }, "partition"],
    ["an unknown limit", { url, limits: { events: 4 } }, "limits.events"],
  ])("%s is refused", (_, options, field) => {
    expect(() => redisStorage(options as RedisStorageOptions)).toThrow(
      expect.objectContaining({ code: "invalid_option", field }),
    );
  });

  test.each<[string, object]>([
    ["256 partitions", { url, partitions: 256 }],
    ["a prefix of 100 characters", { url, prefix: "a".repeat(100) }],
    ["seal keys as bytes and in base64", { url, sealKeys: [firstKey, secondKey.toString("base64")] }],
    ["a client", { client }],
    ["a URL with a password and a database", { url: "rediss://user:p%40ss@localhost:6380/2" }],
    ["the path of a socket", { url: "/run/redis/redis.sock" }],
  ])("%s is accepted", (_, options) => {
    expect(() => redisStorage(options as RedisStorageOptions)).not.toThrow();
  });

  test("a process with another number of partitions is refused, and the first process continues", async () => {
    const begun = openStore({ url: redisUrl(), partitions: 4 });
    await begun.register();
    const other = openStore({ url: redisUrl(), prefix: begun.prefix, partitions: 5 });
    expect(await refusalOf(other.register("another"))).toBe("invalid_option partitions");
    expect(await refusalOf(other.append(newEvent("another")))).toBe("invalid_option partitions");
    expect(await begun.append(newEvent("clinic"))).toMatchObject({ result: "stored" });
    expect(await begun.store.stats()).toMatchObject({ webhooks: 1, pending: 1 });
    await Promise.all([begun.storage.close(), other.storage.close()]);
  });

  test("a layout of a later version is refused, and nothing is written", async () => {
    const prefix = freshPrefix();
    const layout = `{${prefix}}:layout`;
    const later = JSON.stringify({ version: 2, partitions: 1 });
    await admin.set(layout, later);
    const opened = openStore({ url: redisUrl(), prefix });
    expect(await refusalOf(opened.register())).toBe("invalid_option prefix");
    expect(await refusalOf(opened.append(newEvent("clinic")))).toBe("invalid_option prefix");
    expect(await admin.get(layout)).toBe(later);
    expect(await admin.keys(`{${prefix}*`)).toEqual([layout]);
    await opened.storage.close();
  });
});

describe("sealed secrets", () => {
  const cannotOpen = expect.objectContaining({ code: "storage_unavailable", field: "sealKeys" });

  test("a secret sealed for one webhook does not open for another", () => {
    const seal = createSeal([firstKey]);
    const sealed = seal.close("whsec_a", "webhook-a");
    expect(sealed).not.toContain("whsec_a");
    expect(seal.open(sealed, "webhook-a")).toBe("whsec_a");
    expect(() => seal.open(sealed, "webhook-b")).toThrow(cannotOpen);
  });

  test("without its key a secret does not open", () => {
    const sealed = createSeal([firstKey]).close("whsec_a", "webhook-a");
    expect(() => createSeal([secondKey]).open(sealed, "webhook-a")).toThrow(cannotOpen);
    expect(() => createSeal([]).open(sealed, "webhook-a")).toThrow(cannotOpen);
  });

  test("a secret that was changed or cut does not open", () => {
    const seal = createSeal([firstKey]);
    const sealed = seal.close("whsec_a", "webhook-a");
    const [mark, version, name, text = ""] = sealed.split(".");
    const bytes = Buffer.from(text, "base64url");
    bytes.writeUInt8(bytes.readUInt8(12) ^ 1, 12);
    const changed = [mark, version, name, bytes.toString("base64url")].join(".");
    expect(() => seal.open(changed, "webhook-a")).toThrow(cannotOpen);
    expect(() => seal.open(sealed.slice(0, -4), "webhook-a")).toThrow(cannotOpen);
  });

  test("the first key seals, and every key opens", () => {
    const old = createSeal([firstKey]).close("whsec_a", "webhook-a");
    const both = createSeal([secondKey, firstKey]);
    expect(both.open(old, "webhook-a")).toBe("whsec_a");
    const renewed = both.close("whsec_a", "webhook-a");
    expect(createSeal([secondKey]).open(renewed, "webhook-a")).toBe("whsec_a");
    expect(() => createSeal([firstKey]).open(renewed, "webhook-a")).toThrow(cannotOpen);
  });

  test("sealing the same secret twice gives two different texts", () => {
    const seal = createSeal([firstKey]);
    expect(seal.close("whsec_a", "webhook-a")).not.toBe(seal.close("whsec_a", "webhook-a"));
  });

  test("without keys a secret is stored as it is, and a key that is given later reads it", () => {
    expect(createSeal([]).close("whsec_a", "webhook-a")).toBe("whsec_a");
    expect(createSeal([firstKey]).open("whsec_a", "webhook-a")).toBe("whsec_a");
  });

  test("a sealed secret copied to another webhook in Redis signs nothing there", async () => {
    const opened = openStore({ url: redisUrl(), sealKeys: [firstKey] });
    const [from, to] = [await opened.register(), await opened.register()];
    const webhooks = opened.key("webhooks");
    const secretOf = (value: string): string =>
      (JSON.parse(cutAtFeed(value)[1]) as { readonly secret: string }).secret;
    const [source, target] = [await storedText(webhooks, "1"), await storedText(webhooks, "2")];
    await admin.hset(webhooks, "2", target.replace(secretOf(target), secretOf(source)));
    expect(await opened.store.getWebhook(from.id)).toMatchObject({ secret: from.secret });
    expect(await refusalOf(opened.store.getWebhook(to.id))).toBe("storage_unavailable sealKeys");
    await opened.append(newEvent("clinic"));
    expect((await opened.claim()).map(({ webhook }) => webhook.id)).toEqual([from.id]);
    await opened.storage.close();
  });
});

describe("warnings", () => {
  const healthy = {
    version: "7.0.15",
    role: "master",
    replicas: 0,
    evictionPolicy: "noeviction",
    persistence: { aof: true, fsync: "everysec", rdb: true },
    clockSkewMs: 0,
  };

  test.each<[string, Partial<typeof healthy>, RegExp]>([
    ["a version before 7", { version: "6.2.14" }, /6\.2\.14.*older than 7/],
    ["a replica", { role: "slave" }, /slave.*refuses writes/],
    ["a policy that evicts", { evictionPolicy: "allkeys-lru" }, /allkeys-lru.*noeviction/],
    [
      "no persistence",
      { persistence: { aof: false, fsync: "everysec", rdb: false } },
      /nothing on disk.*appendonly/,
    ],
    [
      "snapshots only",
      { persistence: { aof: false, fsync: "everysec", rdb: true } },
      /snapshots only.*appendonly/,
    ],
    ["no fsync", { persistence: { aof: true, fsync: "no", rdb: true } }, /appendfsync is no/],
    ["a clock that is ahead", { clockSkewMs: 5_001 }, /5001 ms apart/],
    ["a clock that is behind", { clockSkewMs: -60_000 }, /-60000 ms apart/],
  ])("%s gives one, which says what is wrong", (_, given, expected) => {
    const warnings = listWarnings({ ...healthy, ...given });
    expect(warnings).toEqual([expect.stringMatching(expected)]);
  });

  test.each<[string, Partial<typeof healthy>]>([
    ["a server as it should be", {}],
    ["version 7", { version: "7.0.0" }],
    ["version 10.0", { version: "10.0.1" }],
    ["a setting of fsync that cannot be read", { persistence: { aof: true, fsync: "unknown", rdb: false } }],
    ["a clock that is 5 s ahead", { clockSkewMs: 5_000 }],
  ])("%s gives none", (_, given) => {
    expect(listWarnings({ ...healthy, ...given })).toEqual([]);
  });

  test("every problem has a warning", () => {
    const persistence = { aof: false, fsync: "no", rdb: false };
    const given = { version: "5.0.0", role: "slave", evictionPolicy: "volatile-lru", clockSkewMs: 9_000 };
    expect(listWarnings({ ...healthy, ...given, persistence })).toHaveLength(5);
  });

  test("a server without persistence is warned about at the first call only", async () => {
    const server = await startRedis({ persistence: "none" });
    const opened = openStore({ url: server.url });
    const warnings = (): readonly string[] =>
      opened.log.flatMap(({ level, message }) => (level === "warn" ? [message] : []));
    expect(opened.log).toEqual([]);
    await opened.store.stats();
    await eventually(() => warnings().length > 0, "a warning");
    await opened.register();
    await opened.append(newEvent("clinic"));
    await opened.claim();
    // Its commands use the same connection, after all commands that inspect the server.
    expect((await opened.storage.check()).warnings).toEqual(warnings());
    expect(warnings()).toEqual([expect.stringMatching(/nothing on disk/)]);
    await opened.storage.close();
    await server.stop();
  });

  test("a server that writes each change to disk causes no warning", async () => {
    const server = await startRedis({ persistence: "aof-everysec" });
    const opened = openStore({ url: server.url });
    await opened.register();
    expect(await opened.storage.check()).toMatchObject({ ok: true, warnings: [], repaired: 0 });
    expect(opened.log.filter(({ level }) => level === "warn")).toEqual([]);
    await opened.storage.close();
    await server.stop();
  });
});

const EVENTS = ["ready", "end", "close", "message", "error"];
const listenersOf = (client: Redis | Cluster): readonly number[] =>
  EVENTS.map((event) => client.listenerCount(event));

/** Uses every kind of connection that a storage makes. */
async function useAll(options: RedisStorageOptions): Promise<ReturnType<typeof openStore>> {
  const opened = openStore(options);
  let isHeard = false;
  opened.store.watch(() => {
    isHeard = true;
  });
  await opened.register();
  await opened.append(newEvent("clinic"));
  await opened.drain();
  await opened.storage.check();
  if (options.durability !== "replicated") await eventually(() => isHeard, "a subscription");
  return opened;
}

describe("close()", () => {
  test.each(["standard", "replicated"] as const)(
    "leaves a client of the host connected and without listeners, durability '%s'",
    async (durability) => {
      const connectionName = freshPrefix();
      const client = new Redis(redisUrl(), { connectionName });
      await client.ping();
      const before = listenersOf(client);
      const connections = async (): Promise<number> =>
        String(await admin.client("LIST")).split(`name=${connectionName} `).length - 1;
      const opened = await useAll({ client, durability, replicationTimeoutMs: 10 });
      expect(await connections()).toBe(2);
      await opened.storage.close();
      await eventually(async () => (await connections()) === 1, "our connection is closed");
      expect(listenersOf(client)).toEqual(before);
      expect(client.status).toBe("ready");
      expect(await client.ping()).toBe("PONG");
      client.disconnect();
    },
  );

  test("does not change other subscriptions of the host's client", async () => {
    const client = new Redis(redisUrl());
    const channel = freshPrefix();
    const listening = client.duplicate();
    const heard: unknown[] = [];
    listening.on("message", (_, message) => heard.push(message));
    await listening.subscribe(channel);
    const opened = await useAll({ client });
    await opened.storage.close();
    await client.publish(channel, "still here");
    await eventually(() => heard.length > 0, "the message");
    expect(heard).toEqual(["still here"]);
    client.disconnect();
    listening.disconnect();
  });
});

describe("the bounds", () => {
  test("limits.pending is divided among the partitions: each holds its share, and all together no more", async () => {
    const prefix = freshPrefix();
    const opened = openStore({ url: redisUrl(), prefix, partitions: 4, limits: { pending: 8 } });
    const partitions = createPartitions(prefix, 4);
    const accounts = partitions.all.map((partition) => {
      for (let count = 0; ; count++)
        if (partitions.ofAccount(`clinic-${count}`) === partition) return `clinic-${count}`;
    });
    for (const account of accounts) {
      await opened.register(account);
      const answers: string[] = [];
      for (let count = 0; count < 3; count++) answers.push(await refusalOf(opened.append(newEvent(account))));
      expect(answers).toEqual(["resolved", "resolved", "storage_full limits.pending"]);
    }
    expect(await opened.store.stats()).toMatchObject({ pending: 8 });
    expect(await opened.drain()).toHaveLength(8);
    for (const account of accounts)
      expect(await opened.append(newEvent(account))).toMatchObject({ result: "stored" });
    await opened.storage.close();
  });

  test("limits.pendingPerAccount applies to each account alone, and to all deliveries of an event together", async () => {
    const opened = openStore({ url: redisUrl(), limits: { pendingPerAccount: 3 } });
    await opened.register();
    await opened.register();
    await opened.register("another");
    expect(await opened.append(newEvent("clinic"))).toMatchObject({ result: "stored" });
    const refused = newEvent("clinic");
    expect(await refusalOf(opened.append(refused))).toBe("storage_full limits.pendingPerAccount");
    expect(await opened.store.stats()).toMatchObject({ events: 1, pending: 2 });
    for (let count = 0; count < 3; count++)
      expect(await opened.append(newEvent("another"))).toMatchObject({ result: "stored" });
    expect(await refusalOf(opened.append(newEvent("another")))).toBe("storage_full limits.pendingPerAccount");
    expect(await opened.drain()).toHaveLength(5);
    expect(await opened.append(refused)).toMatchObject({ result: "stored" });
    await opened.storage.close();
  });
});

describe("fields that a later version wrote into a record (F55)", () => {
  const LATER = ",later,2";

  test("a webhook keeps them through a claim, a report, an update and a health notification", async () => {
    const opened = openStore({ url: redisUrl() });
    const { store } = opened;
    const { id } = await opened.register();
    const webhooks = opened.key("webhooks");
    const [line, config] = cutAtFeed(await storedText(webhooks, FIRST_WEBHOOK));
    const laterConfig = { ...(JSON.parse(config) as object), later: { mode: "batch", size: [1, 2] } };
    await admin.hset(webhooks, FIRST_WEBHOOK, `${line}${LATER}\n${JSON.stringify(laterConfig)}`);
    const kept = async (): Promise<void> => {
      const [first, rest] = cutAtFeed(await storedText(webhooks, FIRST_WEBHOOK));
      expect(first.endsWith(LATER)).toBe(true);
      expect(JSON.parse(rest)).toMatchObject({ later: laterConfig.later });
    };

    await opened.append(newEvent("clinic"));
    const [claimed] = await opened.claim();
    if (!claimed) throw new Error("one is due");
    await kept();

    const failingSince = store.now();
    const noticeAt = failingSince + 1_000;
    const { generation } = claimed.webhook;
    expect(
      await store.settle([
        {
          id: claimed.id,
          webhookId: id,
          account: "clinic",
          token: claimed.token,
          now: failingSince,
          outcome: { state: "delivered" },
          startedAt: failingSince,
          attempt: null,
          endpoint: { ok: false, generation, at: failingSince, noticeAt, lane: "fast" },
        },
      ]),
    ).toEqual(["settled"]);
    expect(await store.getWebhook(id)).toMatchObject({ failingSince, noticeAt });
    await kept();

    const warnedAt = failingSince + 1;
    const notice = { failingSince, from: "ENABLED", status: "ENABLED", warnedAt, noticeAt } as const;
    expect(await store.settleHealthNotification({ id, account: "clinic", ...notice, now: store.now() })).toBe(
      true,
    );
    expect(await store.getWebhook(id)).toMatchObject({ warnedAt });
    await kept();

    const url = "https://hooks.example.com/moved";
    const rotation = { secret: "whsec_next", rotateAt: store.now() + 60_000 };
    const change = { url, status: "DISABLED", eventTypes: ["patient.*"], rotation } as const;
    const updated = await store.updateWebhook({
      id,
      account: "clinic",
      change,
      enabledLimit: 15,
      now: store.now(),
    });
    expect(updated).toMatchObject({ result: "updated", webhook: { url, status: "DISABLED" } });
    expect(await store.getWebhook(id)).toMatchObject({ url, secret: "whsec_next" });
    await kept();
    await opened.storage.close();
  });

  test("a delivery keeps them through a claim, a retry, an expired lease and its completion", async () => {
    const opened = openStore({ url: redisUrl() });
    const { store } = opened;
    const { id: webhookId } = await opened.register();
    const event = newEvent("clinic");
    await opened.append(event);
    const claimOne = async (leaseMs?: number) => {
      const [claimed] = await opened.claim(leaseMs === undefined ? {} : { leaseMs });
      if (!claimed) throw new Error("one is due");
      return claimed;
    };
    const deliveries = opened.key("deliveries");
    const ref = `${FIRST_WEBHOOK}/${encodeUuid(event.id)}`;
    const kept = async (): Promise<boolean> =>
      cutAtFeed(await storedText(deliveries, ref))[0].endsWith(LATER);

    const first = await claimOne();
    const [line, rest] = cutAtFeed(await storedText(deliveries, ref));
    // Empty fields at the end of a line are left out, except before a later one.
    const fields = `${line}${",".repeat(13 - line.split(",").length)}`;
    await admin.hset(deliveries, ref, `${fields}${LATER}${rest}`);
    const retry = { state: "pending", step: 1, dueAt: store.now(), postponed: 0, crashes: 0 } as const;
    expect(await opened.settle(first, retry)).toBe("settled");
    expect(await kept()).toBe(true);

    await claimOne(1);
    expect(await kept()).toBe(true);
    await eventually(async () => (await opened.claim({ most: 1 })).length === 1, "the lease has run out");
    expect(await kept()).toBe(true);

    const { deliveries: listed } = await store.listDeliveries({ webhookId, limit: 10 });
    expect(listed).toMatchObject([{ id: first.id, state: "pending", step: 1, reason: null }]);
    // A success counts, even if the delivery is leased to another process.
    expect(await opened.settle(first)).toBe("settled");
    expect(await kept()).toBe(true);
    expect(await store.getDelivery(first.id)).toMatchObject({ state: "delivered", reason: null });
    await opened.storage.close();
  });
});

describe("notifications of workers", () => {
  test("a process that listens is notified of what another process stores", async () => {
    const own = openStore({ url: redisUrl() });
    await own.register();
    const other = openStore({ url: redisUrl(), prefix: own.prefix });
    const heard: number[] = [];
    other.store.watch((at) => heard.push(at));
    const channel = `{${own.prefix}}:notifications`;
    const subscribers = async (): Promise<number> => Number((await admin.pubsub("NUMSUB", channel))[1]);
    await eventually(async () => (await subscribers()) === 1, "the subscription");
    // The subscription itself notifies once; that is not the notification to wait for.
    for (let known = -1; known !== heard.length; await sleep(50)) known = heard.length;
    heard.length = 0;
    // A first call reads the time, and claims nothing.
    await other.store.stats();

    await own.append(newEvent("clinic"));
    await eventually(() => heard.length > 0, "the hint");
    expect(Math.min(...heard)).toBeLessThanOrEqual(own.store.now());
    // As a worker does: its estimate of the server's time may be behind that of the other process.
    await eventually(() => other.store.now() >= Math.min(...heard), "the time of the hint");
    expect(await other.claim()).toHaveLength(1);

    await other.storage.close();
    await eventually(async () => (await subscribers()) === 0, "the end of it");
    await own.storage.close();
  });
});

describe("durability 'replicated'", () => {
  test("an emit is confirmed once a replica has it", async () => {
    const master = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    const replica = await startRedis({ args: ["--replicaof", HOST, String(master.port)] });
    // The master reports a replica as online that may still be loading. It is in step once it
    // confirms a write.
    const isInStep = async (): Promise<boolean> =>
      /master_link_status:up/.test(await replica.cli("INFO", "replication")) &&
      (await master.cli("WAIT", "1", "100")).trim() === "1";
    await eventually(isInStep, "a replica in step");
    const opened = openStore({ url: master.url, durability: "replicated" });
    const { id: webhookId } = await opened.register();
    let event = newEvent("clinic");
    // On a busy machine a replica may take longer than the emit waits.
    const isConfirmed = async (): Promise<boolean> => {
      event = newEvent("clinic");
      const stored = await opened.append(event);
      return stored.result === "stored" && stored.confirmed === true;
    };
    await eventually(isConfirmed, "an event that a replica has confirmed");
    expect(await replica.cli("HEXISTS", opened.key("events"), `1/${encodeUuid(event.id)}`)).toBe("1");
    expect(await opened.store.getDelivery(`${webhookId}.${event.id}`)).toMatchObject({ state: "pending" });

    await replica.stop();
    expect(await opened.append(newEvent("clinic"))).toMatchObject({ result: "stored", confirmed: false });
    await opened.storage.close();
    await master.stop();
  });

  describe("on a Cluster of masters without replicas", () => {
    let cluster: RedisCluster;
    let client: Cluster;
    beforeAll(async () => {
      cluster = await startCluster(3);
      client = new Cluster([...cluster.nodes]);
      await client.ping();
    });
    afterAll(async () => {
      client.disconnect();
      await cluster.stop();
    });

    test("emits are stored without delay, and not confirmed", async () => {
      const replicationTimeoutMs = 200;
      const opened = openStore({ client, durability: "replicated", replicationTimeoutMs });
      for (let count = 0; count < 6; count++) await opened.register(`clinic-${count}`);
      const asked = vi.spyOn(Redis.prototype, "call");
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, count) => opened.append(newEvent(`clinic-${count}`))),
      );
      const waits = asked.mock.calls.filter(([command]) => command === "WAIT");
      asked.mockRestore();
      expect(waits.length).toBeGreaterThan(0);
      expect(waits.length).toBeLessThanOrEqual(6);
      for (const wait of waits) expect(wait).toEqual(["WAIT", 1, replicationTimeoutMs]);
      for (const answer of answers) expect(answer).toMatchObject({ result: "stored", confirmed: false });
      expect(await opened.drain()).toHaveLength(6);
      await opened.storage.close();
    });

    test("close() leaves the host's client connected and without listeners", async () => {
      const before = listenersOf(client);
      const nodesBefore = client.nodes("master").map(listenersOf);
      const opened = await useAll({ client });
      await opened.storage.close();
      expect(listenersOf(client)).toEqual(before);
      expect(client.nodes("master").map(listenersOf)).toEqual(nodesBefore);
      expect(client.status).toBe("ready");
      expect(await client.ping()).toBe("PONG");
    });
  });
});
