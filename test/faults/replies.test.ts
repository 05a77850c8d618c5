/**
 * Error replies of Redis, as a proxy gives them and as Redis itself does: each call is made again
 * or rejected, and none is taken for success.
 */

import { mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisClient, redisStorage } from "../../storage/redis/index.js";
import { type RedisServer, startCluster, startRedis } from "../support/redis-server.js";
import { type Command, errorReply, startCommandProxy } from "./support/redis-command-proxy.js";
import { type OpenStore, openStore } from "./support/redis-store.js";
import { codeOf, eventually, newEvent } from "./support/store-driver.js";

const SETTLED_MS = 4_500;
const RESUMED_MS = 5_000;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Transient errors: the call is retried until it succeeds. */
const PASSING = [
  "LOADING Redis is loading the dataset in memory",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "CLUSTERDOWN The cluster is down",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
  "ERR Function not found",
] as const;

/**
 * As `PASSING`, except that the storage's own client looks for the new master at once, and may give
 * the call up over it.
 */
const DEMOTED = "READONLY You can't write against a read only replica.";

/** Lasting errors, and the error that the host gets. */
const LASTING = [
  [
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
    "storage_unavailable",
  ],
  ["OOM command not allowed when used memory > 'maxmemory'.", "storage_full"],
  ["MOVED 3999 127.0.0.1:6381", "storage_unavailable"],
  ["ASK 3999 127.0.0.1:6381", "storage_unavailable"],
  ["NOREPLICAS Not enough good replicas to write.", "storage_unavailable"],
  ["NOPERM User default has no permissions to run the 'evalsha' command", "storage_unavailable"],
  ["ERR unknown command", "storage_unavailable"],
] as const;

/**
 * The three calls that deliveries depend on, on a store that is ready for each of them. Each is
 * carried by the script of its name.
 */
const CALLS = {
  append: ({ append }: OpenStore) => append(newEvent("clinic")),
  claim: ({ claim }: OpenStore) => claim({ most: 1 }),
  settle: async (opened: OpenStore, [claimed]: Awaited<ReturnType<OpenStore["claim"]>>) =>
    claimed && opened.settle(claimed),
} as const;

const isOfCall = ({ script }: Command): boolean => script !== undefined && Object.hasOwn(CALLS, script);

async function openBehindProxy() {
  const proxy = await startCommandProxy(redis);
  const opened = openStore({ url: proxy.url });
  await opened.register();
  for (let count = 0; count < 3; count++) await opened.append(newEvent("clinic"));
  const claimed = await opened.claim({ most: 1 });
  return {
    proxy,
    opened,
    claimed,
    close: async () => {
      await opened.storage.close();
      await proxy.stop();
    },
  };
}

describe("an error reply (F21)", () => {
  test.each(PASSING)("%s: given twice, the calls succeed all the same, each once", async (text) => {
    const { proxy, opened, claimed, close } = await openBehindProxy();
    for (const [kind, call] of Object.entries(CALLS)) {
      let left = 2;
      proxy.decide(({ script }) => (script === kind && left-- > 0 ? errorReply(text) : "pass"));
      await call(opened, claimed);
    }
    expect(await opened.store.stats()).toMatchObject({ events: 4, pending: 3, leased: 1, ended: 1 });
    expect((await opened.storage.check()).repaired).toBe(0);
    await close();
  });

  test(`${DEMOTED}: each call settles, and made again it succeeds, once`, async () => {
    const { proxy, opened, claimed, close } = await openBehindProxy();
    const event = newEvent("clinic");
    const calls = { ...CALLS, append: () => opened.append(event) };
    for (const [kind, call] of Object.entries(calls)) {
      let left = 1;
      proxy.decide(({ script }) => (script === kind && left-- > 0 ? errorReply(DEMOTED) : "pass"));
      const isDone = async (): Promise<boolean> => {
        const code = await codeOf(call(opened, claimed));
        expect(["resolved", "storage_unavailable"]).toContain(code);
        return code === "resolved";
      };
      await eventually(isDone, { ms: RESUMED_MS, what: kind });
    }
    expect(await opened.store.stats()).toMatchObject({ events: 4, pending: 3, leased: 1, ended: 1 });
    await close();
  });

  test("to a subscription made again does not end the process, and a later connection listens again", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const proxy = await startCommandProxy(redis);
    const admin = new Redis(redis.url);
    const { store, storage } = openStore({ url: proxy.url });
    let wakes = 0;
    const unwatch = store.watch(() => wakes++);
    await eventually(() => wakes > 0, { ms: RESUMED_MS, what: "the subscription" });

    let refused = 0;
    proxy.decide(({ name }) => {
      if (name !== "SUBSCRIBE") return "pass";
      refused++;
      return errorReply("NOPERM User default has no permissions to access a channel");
    });
    await admin.call("CLIENT", "KILL", "TYPE", "pubsub");
    await eventually(() => refused > 0, { ms: RESUMED_MS, what: "the refusal" });
    await store.stats();
    proxy.decide(() => "pass");
    const before = wakes;
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await eventually(() => wakes > before, { ms: RESUMED_MS, what: "the new subscription" });
    expect(unhandled).toEqual([]);

    process.off("unhandledRejection", note);
    unwatch();
    await storage.close();
    admin.disconnect();
    await proxy.stop();
  });

  test("that lasts, is told as storage_unavailable within seconds, and as nothing else", async () => {
    const answers = [...PASSING, DEMOTED].map(async (text) => {
      const { proxy, opened, claimed, close } = await openBehindProxy();
      proxy.decide((command) => (isOfCall(command) ? errorReply(text) : "pass"));
      const begin = performance.now();
      const codes = await Promise.all(Object.values(CALLS).map((call) => codeOf(call(opened, claimed))));
      const ms = performance.now() - begin;
      proxy.decide(() => "pass");
      const isBack = async (): Promise<boolean> => (await codeOf(opened.store.stats())) === "resolved";
      await eventually(isBack, { ms: RESUMED_MS, what: "the storage works again" });
      const { events, pending, leased, ended } = await opened.store.stats();
      await close();
      return { text, codes, isInTime: ms < SETTLED_MS, events, pending, leased, ended };
    });
    for (const answer of await Promise.all(answers)) {
      expect(answer).toMatchObject({
        codes: ["storage_unavailable", "storage_unavailable", "storage_unavailable"],
        isInTime: true,
        events: 3,
        pending: 3,
        leased: 1,
        ended: 0,
      });
    }
  }, 30_000);

  test.each(LASTING)("%s rejects with %s, and nothing has changed", async (text, code) => {
    const { proxy, opened, claimed, close } = await openBehindProxy();
    proxy.decide((command) => (isOfCall(command) ? errorReply(text) : "pass"));
    for (const call of Object.values(CALLS)) expect(await codeOf(call(opened, claimed))).toBe(code);
    proxy.decide(() => "pass");
    expect(await opened.store.stats()).toMatchObject({ events: 3, pending: 3, leased: 1, ended: 0 });
    await CALLS.settle(opened, claimed);
    expect(await opened.drain()).toHaveLength(2);
    await close();
  });
});

describe("Redis that cannot write to its disk", () => {
  test("after a failed snapshot, writes reject until it can again (F29)", async () => {
    const server = await startRedis({ args: ["--save", "3600 1"] });
    const admin = new Redis(server.port);
    const opened = openStore({ url: server.url });
    await opened.register();
    await opened.append(newEvent("clinic"));
    const claimed = await opened.claim();
    // A folder where the file should be: also the superuser cannot write it.
    await mkdir(join(server.dir, "dump.rdb"));
    await admin.bgsave();
    const hasFailed = async (): Promise<boolean> =>
      (await admin.info("persistence")).includes("rdb_last_bgsave_status:err");
    await eventually(hasFailed, { ms: 5_000, what: "the snapshot fails" });
    for (const call of Object.values(CALLS))
      expect(await codeOf(call(opened, claimed))).toBe("storage_unavailable");
    expect(await opened.store.stats()).toMatchObject({ events: 1, pending: 1, leased: 1 });
    await rm(join(server.dir, "dump.rdb"), { recursive: true });
    await admin.save();
    expect(await opened.settle(claimed[0] as never)).toBe("settled");
    await opened.append(newEvent("clinic"));
    expect(await opened.drain()).toHaveLength(1);
    await opened.storage.close();
    admin.disconnect();
    await server.stop();
  });

  // A device that is always full stands for the disk; only Linux has it.
  test.runIf(process.platform === "linux")(
    "with a full disk under the AOF, writes reject and nothing is delivered twice (F28)",
    async () => {
      const server = await startRedis({ persistence: "aof-everysec" });
      const opened = openStore({ url: server.url });
      await opened.register();
      await opened.append(newEvent("clinic"));
      const claimed = await opened.claim();
      const aof = join(server.dir, "appendonlydir");
      const before = new Redis(server.port);
      await before.bgrewriteaof();
      const isWritten = async (): Promise<boolean> =>
        /aof_rewrite_in_progress:0[\s\S]*aof_rewrite_scheduled:0/.test(await before.info("persistence"));
      await eventually(isWritten, { ms: 5_000, what: "the AOF is rewritten" });
      before.disconnect();
      await server.kill();
      const [increment = ""] = (await readdir(aof)).filter((name) => name.endsWith(".incr.aof"));
      await rm(join(aof, increment));
      await symlink("/dev/full", join(aof, increment));
      await server.restart();
      const admin = new Redis(server.port);
      const isFull = async (): Promise<boolean> => {
        await admin.set("filler", "x").catch(() => {});
        return /aof_last_write_status:err/.test(await admin.info("persistence"));
      };
      await eventually(isFull, { ms: 10_000, what: "the disk is full" });
      for (const call of Object.values(CALLS))
        expect(await codeOf(call(opened, claimed))).toBe("storage_unavailable");
      await admin.call("CONFIG", "SET", "appendonly", "no");
      expect(await opened.settle(claimed[0] as never)).toBe("settled");
      await opened.append(newEvent("clinic"));
      expect(await opened.drain()).toHaveLength(1);
      expect((await opened.storage.check()).repaired).toBe(0);
      await opened.storage.close();
      admin.disconnect();
      await server.stop();
    },
  );
});

describe("a foreign script that holds Redis up (F30)", () => {
  const BLOCK = `local t = redis.call('TIME') local till = t[1] * 1000 + t[2] / 1000 + ARGV[1]
    repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 > till`;

  test.each([
    [1_000, "resolved"],
    [5_000, "storage_unavailable"],
  ])("for %i ms: an emit meanwhile is %s, and stored once", async (ms, code) => {
    const server = await startRedis({ args: ["--busy-reply-threshold", "20"] });
    const admin = new Redis(server.port);
    const opened = openStore({ url: server.url });
    await opened.register();
    const blocking = admin.eval(BLOCK, 0, ms);
    await sleep(100);
    const event = newEvent("clinic");
    const begin = performance.now();
    expect(await codeOf(opened.append(event))).toBe(code);
    expect(performance.now() - begin).toBeLessThan(SETTLED_MS);
    await blocking;
    await opened.append(event);
    expect(await opened.drain()).toHaveLength(1);
    await opened.storage.close();
    admin.disconnect();
    await server.stop();
  });
});

describe("a Cluster (F31)", () => {
  test("no function touches a key of another slot than its own, which Redis refuses", async () => {
    const cluster = await startCluster(3);
    const client = new Cluster([...cluster.nodes]);
    const { storage, store, register, append, claim, settle, drain } = openStore({
      client: client as unknown as RedisClient,
    });
    const accounts = Array.from({ length: 40 }, (_, index) => `clinic-${index}`);
    for (const account of accounts) {
      const webhook = await register(account);
      const now = store.now();
      await append(newEvent(account));
      await store.updateWebhook({
        id: webhook.id,
        account,
        change: { url: "https://example.com/" },
        enabledLimit: 15,
        now,
      });
      expect((await store.listWebhooks({ account, limit: 10 })).webhooks).toHaveLength(1);
      expect((await store.listDeliveries({ webhookId: webhook.id, limit: 10 })).deliveries).toHaveLength(1);
    }
    const [first] = await claim({ most: 1 });
    if (!first) throw new Error("one is due");
    const failed = await settle(first, { state: "failed", reason: "exhausted" });
    expect(failed).toBe("settled");
    const { id, webhook } = first;
    expect(await store.resend({ id, account: webhook.account, now: store.now() })).toBeDefined();
    await drain();
    expect(await store.stats()).toMatchObject({ webhooks: 40, events: 40, pending: 0, leased: 0, ended: 41 });
    const recovered = {
      webhookId: webhook.id,
      account: webhook.account,
      since: 0,
      dueAt: store.now(),
      everyMs: 0,
      limit: 10,
      now: store.now(),
    };
    expect(await store.recover(recovered)).toMatchObject({ count: 0 });
    await store.claimHealthNotifications({ now: store.now(), leaseUntil: store.now() + 1_000, limit: 10 });
    expect(await store.removeWebhook({ id: webhook.id, account: webhook.account, now: store.now() })).toBe(
      true,
    );
    expect((await storage.check()).repaired).toBe(0);
    await storage.close();
    client.disconnect();
    await cluster.stop();
  }, 60_000);

  test("a client of the host with another number of partitions is refused", async () => {
    const opened = openStore({ url: redis.url, partitions: 2 });
    await opened.register();
    const other = redisStorage({ url: redis.url, prefix: opened.prefix, partitions: 3 });
    expect(await codeOf(other.check())).toBe("invalid_option");
    await other.close();
    await opened.storage.close();
  });
});
