/**
 * Content on Redis beyond the contract: a full server, replication, and the warnings of `check()`.
 */

import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/core/clock.js";
import { silentLogger } from "../../../src/core/logger.js";
import { listChanges, put } from "../../../src/testing/content-store-contract/fixture.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type RedisStorageOptions, redisStorage } from "../../../storage/redis/index.js";
import { contentFaults } from "../../faults/support/content-checker.js";
import { listLogger } from "../../faults/support/store-driver.js";
import { type Call, callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { eventually } from "../../support/eventually.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { type RedisOptions, type RedisServer, startRedis } from "../../support/redis-server.js";

const administrator = { as: "administrator" } as const;

async function serverFor(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
}

function storageOn(url: string, prefix = freshPrefix(), options: Partial<RedisStorageOptions> = {}) {
  const storage = redisStorage({ url, prefix, ...options });
  onTestFinished(() => storage.close());
  return { storage, prefix };
}

const create = (call: Call, title: string, content = "") =>
  call("POST /posts", { ...administrator, body: { title, content, status: "publish" } });

describe("a Redis with no memory left", () => {
  it("refuses growing commits as a whole, allows reads and removals, and accepts writes again once there is room", async () => {
    const server = await serverFor({ args: ["--maxmemory-policy", "noeviction"] });
    const { storage, prefix } = storageOn(server.url);
    const call = callsOf(contentSite({ storage }));
    const kept = (await create(call, "Kept")).body.id as number;
    const leave = async (bytes: number): Promise<void> => {
      const used = Number(/used_memory:(\d+)/.exec(await server.cli("INFO", "memory"))?.[1]);
      await server.cli("CONFIG", "SET", "maxmemory", String(used + bytes));
    };
    await leave(2_000_000);

    const long = "A long text. ".repeat(5_000);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, post) => create(call, `Post ${post}`, long)),
    );
    const stored = answers.flatMap(({ status, body }) => (status === 201 ? [body.id as number] : []));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(stored.length).toBeGreaterThan(5);
    expect(refused.length).toBeGreaterThan(5);
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
    // Whatever Redis frees of its buffers meanwhile.
    await server.cli("CONFIG", "SET", "maxmemory", "1");
    const renaming = await call(`PUT /posts/${kept}`, { ...administrator, body: { title: "Renamed" } });
    expect(renaming.status).toBe(503);

    // One process was refused; the other knows only the stored content.
    const { storage: second } = storageOn(server.url, prefix);
    for (const reader of [call, callsOf(contentSite({ storage: second }))]) {
      const { headers } = await reader("GET /posts");
      expect(headers["X-WP-Total"]).toBe(String(stored.length + 1));
      for (const id of stored) {
        const { body } = await reader(`GET /posts/${id}`, { ...administrator, query: { context: "edit" } });
        expect(body.content.raw).toBe(long);
      }
      expect((await reader(`GET /posts/${kept}`)).body.title.rendered).toBe("Kept");
    }
    expect(await contentFaults(server.url, prefix)).toEqual([]);

    await leave(-100_000);
    for (const id of stored) {
      const removal = await call(`DELETE /posts/${id}`, { ...administrator, query: { force: true } });
      expect(removal.status).toBe(200);
    }
    expect((await create(call, "After", long)).status).toBe(201);
    expect(await contentFaults(server.url, prefix)).toEqual([]);
    expect((await storage.check()).warnings.join()).not.toMatch(/The content has/);
  });
});

describe("the changes after a commit of the same process", () => {
  const context = { clock: systemClock, logger: silentLogger };

  it("are known without reading them from Redis, unless others commit too", async () => {
    const server = await serverFor();
    const { storage, prefix } = storageOn(server.url);
    const [own, other] = [storage.content(context), storageOn(server.url, prefix).storage.content(context)];
    const scripts = async (): Promise<number> =>
      Number(/cmdstat_fcall:calls=(\d+)/.exec(await server.cli("INFO", "commandstats"))?.[1] ?? 0);
    await own.load();
    await own.commit([put("post/1", 0)]);
    const before = await scripts();
    expect(await own.changes(0)).toMatchObject({ sequence: 1, changes: [{ key: "post/1", version: 1 }] });
    expect(await scripts()).toBe(before);
    await own.commit([put("post/2", 0)]);
    await other.commit([put("post/3", 0)]);
    const keys = (await listChanges(own, 1)).map(({ key }) => key);
    expect(keys).toEqual(["post/2", "post/3"]);
  });

  it("are not known if the data was replaced before the commit", async () => {
    const { storage, prefix } = storageOn(redisUrl());
    const own = storage.content(context);
    await own.load();
    await own.commit([put("post/1", 0)]);
    await own.changes(0);
    const admin = new Redis(redisUrl());
    await admin.del(...(await admin.keys(`{${prefix}:content}:*`)));
    admin.disconnect();
    // As many commits as before.
    await storageOn(redisUrl(), prefix)
      .storage.content(context)
      .commit([put("post/7", 0)]);
    expect(await own.commit([put("post/8", 0)])).toMatchObject({ ok: true, sequence: 2 });
    expect(await own.changes(1)).toBe("reload");
  });
});

describe("durability 'replicated'", () => {
  const isUnconfirmed = expect.objectContaining({
    level: "warn",
    message: expect.stringMatching(/no replica has confirmed/),
  });

  it("logs that no replica has a change, and reports it as stored", async () => {
    const server = await serverFor();
    const options = { durability: "replicated", replicationTimeoutMs: 50 } as const;
    const { storage, prefix } = storageOn(server.url, freshPrefix(), options);
    const { logger, log } = listLogger();
    const call = callsOf(contentSite({ storage, logger }));
    const { status, body } = await create(call, "Stored");
    expect(status).toBe(201);
    expect(log).toContainEqual(isUnconfirmed);
    const { storage: other } = storageOn(server.url, prefix);
    expect((await callsOf(contentSite({ storage: other }))(`GET /posts/${body.id}`)).status).toBe(200);
  });

  it("resolves once a replica has the change, and then logs nothing", async () => {
    const master = await serverFor({ args: ["--repl-diskless-sync-delay", "0"] });
    const replica = await serverFor({ args: ["--replicaof", "127.0.0.1", String(master.port)] });
    const isInStep = async (): Promise<boolean> =>
      /master_link_status:up/.test(await replica.cli("INFO", "replication")) &&
      (await master.cli("WAIT", "1", "100")).trim() === "1";
    await eventually(isInStep, "a replica in step");
    const options = { durability: "replicated", replicationTimeoutMs: 2_000 } as const;
    const { storage, prefix } = storageOn(master.url, freshPrefix(), options);
    const { logger, log } = listLogger();
    const call = callsOf(contentSite({ storage, logger }));
    const { status, body } = await create(call, "Stored twice");
    expect(status).toBe(201);
    const key = `{${prefix}:content}:columns`;
    expect(await replica.cli("HGET", key, `post/${body.id}`)).toContain("Stored twice");
    expect(log).not.toContainEqual(isUnconfirmed);
  });
});

describe("check()", () => {
  const warningsOf = async (storage: ReturnType<typeof redisStorage>): Promise<readonly string[]> => {
    const { ok, warnings } = await storage.check();
    if (warnings.length > 0) expect(ok).toBe(false);
    return warnings.filter((warning) => warning.startsWith("The content"));
  };

  it("has no warning for complete content, and none without content", async () => {
    const { storage } = storageOn(redisUrl());
    expect(await warningsOf(storage)).toEqual([]);
    const call = callsOf(contentSite({ storage }));
    const { body } = await create(call, "Whole");
    expect(await warningsOf(storage)).toEqual([]);
    await call(`DELETE /posts/${body.id}`, { ...administrator, query: { force: true } });
    expect(await warningsOf(storage)).toEqual([]);
  });

  it.each(["meta", "heads", "columns", "bodies", "names", "ids", "changes", "commits"])(
    "warns that the content has lost %s",
    async (name) => {
      const { storage, prefix } = storageOn(redisUrl());
      await create(callsOf(contentSite({ storage })), "Torn");
      const admin = new Redis(redisUrl());
      await admin.del(`{${prefix}:content}:${name}`);
      admin.disconnect();
      expect(await warningsOf(storage)).toEqual([
        expect.stringMatching(new RegExp(`has lost what was in ${name}\\. Restore`)),
      ]);
    },
  );

  it("warns that a record has lost its body", async () => {
    const { storage, prefix } = storageOn(redisUrl());
    const store = storage.content({ clock: manualClock(0), logger: listLogger().logger });
    await create(callsOf(contentSite({ storage })), "Torn");
    await store.commit([put("revision/99", 0, { columns: null })]);
    const admin = new Redis(redisUrl());
    await admin.hdel(`{${prefix}:content}:bodies`, "revision/99");
    admin.disconnect();
    expect(await warningsOf(storage)).toEqual([
      expect.stringMatching(/has (\d+) records and \d+ bodies\. Restore/),
    ]);
  });
});

describe("a process that uses content alone, such as the CLI", () => {
  it("neither fixes the number of partitions of the webhooks nor needs to know it", async () => {
    const { storage: first, prefix } = storageOn(redisUrl());
    expect((await create(callsOf(contentSite({ storage: first })), "A")).status).toBe(201);
    const { storage: host } = storageOn(redisUrl(), prefix, { partitions: 4 });
    const webhooks = host.webhooks({
      clock: systemClock,
      logger: silentLogger,
      perEndpoint: 5,
      retention: { keepMs: 0, events: 0 },
    });
    expect(await webhooks.listWebhooks({ account: "clinic", limit: 10, cursor: undefined })).toMatchObject({
      webhooks: [],
    });
    const { storage: later } = storageOn(redisUrl(), prefix);
    const { headers } = await callsOf(contentSite({ storage: later }))("GET /posts");
    expect(headers).toMatchObject({ "X-WP-Total": "1" });
  });

  it("is refused if the layout has another version", async () => {
    const { storage, prefix } = storageOn(redisUrl());
    await create(callsOf(contentSite({ storage })), "A");
    const redis = new Redis(redisUrl());
    onTestFinished(() => redis.disconnect());
    await redis.hset(`{${prefix}:content}:meta`, "layout", "2");
    const { storage: later } = storageOn(redisUrl(), prefix);
    const store = later.content({ clock: systemClock, logger: silentLogger });
    await expect(store.load()).rejects.toMatchObject({ code: "invalid_option", field: "prefix" });
  });
});
