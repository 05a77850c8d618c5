/** Options of a host's client that change commands or replies: each works, or is refused. */

import { Cluster as Cluster6, Command, Redis as Redis6 } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RedisClient, redisStorage } from "../../../storage/redis/index.js";
import { openStore } from "../../faults/support/redis-store.js";
import { newEvent } from "../../faults/support/store-driver.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { type RedisCluster, startCluster } from "../../support/redis-server.js";

const ACCOUNTS = ["clinic", "hospital", "practice", "laboratory"];

/** Emits, delivers, lists and checks, for several accounts at once. */
async function expectWebhooksToWork(client: RedisClient): Promise<void> {
  const opened = openStore({ client });
  onTestFinished(() => opened.storage.close());
  const { store, storage } = opened;
  await Promise.all(ACCOUNTS.map((account) => opened.register(account)));
  const events = ACCOUNTS.map((account) => newEvent(account));
  for (const result of ["stored", "duplicate"]) {
    const answers = await Promise.all(events.map((event) => opened.append(event)));
    expect(answers.map((answer) => answer.result)).toEqual(ACCOUNTS.map(() => result));
  }
  expect(await store.stats()).toMatchObject({ pending: ACCOUNTS.length, leased: 0 });
  expect(await opened.drain()).toHaveLength(ACCOUNTS.length);
  for (const [index, account] of ACCOUNTS.entries()) {
    const { webhooks } = await store.listWebhooks({ account, limit: 10 });
    const webhookId = webhooks[0]?.id ?? "";
    const { deliveries } = await store.listDeliveries({ webhookId, limit: 10 });
    const id = `${webhookId}.${events[index]?.id}`;
    expect(deliveries).toMatchObject([{ id, state: "delivered", attempts: [{ status: 204 }] }]);
  }
  expect(await storage.check()).toMatchObject({ role: "master", replicas: 0, repaired: 0 });
}

/** Writes, reads and lists a post. */
async function expectContentToWork(client: RedisClient): Promise<void> {
  const storage = redisStorage({ client, prefix: freshPrefix() });
  onTestFinished(() => storage.close());
  const call = callsOf(contentSite({ storage }));
  const body = { title: "Opening hours", content: "From nine to five.", status: "publish" };
  const { id } = (await call("POST /posts", { as: "administrator", body })).body;
  const { body: posts } = await call("GET /posts");
  expect(posts).toMatchObject([{ id, title: { rendered: "Opening hours" } }]);
}

const clientOf = (client: unknown): RedisClient => {
  const own = client as RedisClient;
  own.on("error", () => {});
  onTestFinished(() => own.disconnect());
  return own;
};

const WORKS: readonly (readonly [string, object])[] = [
  ["enableAutoPipelining", { enableAutoPipelining: true }],
  ["lazyConnect", { lazyConnect: true }],
  ["maxRetriesPerRequest null", { maxRetriesPerRequest: null }],
  ["maxRetriesPerRequest 0", { maxRetriesPerRequest: 0 }],
  ["showFriendlyErrorStack", { showFriendlyErrorStack: true }],
  ["enableOfflineQueue false", { enableOfflineQueue: false }],
  ["enableReadyCheck false", { enableReadyCheck: false }],
  ["autoResendUnfulfilledCommands false", { autoResendUnfulfilledCommands: false }],
  ["autoResubscribe false", { autoResubscribe: false }],
  ["commandTimeout and socketTimeout", { commandTimeout: 60_000, socketTimeout: 60_000 }],
  ["RESP2", { protocol: 2 }],
];

describe.each<[string, (options: object) => unknown]>([
  ["5", (options) => new Redis5(redisUrl(), options)],
  ["6", (options) => new Redis6(redisUrl(), options)],
])("a client of ioredis %s", (_, open) => {
  test.each(WORKS)("with %s emits, delivers and lists events, and stores content", async (__, options) => {
    const connect = () => clientOf(open(options));
    await expectWebhooksToWork(connect());
    await expectContentToWork(connect());
  });
});

describe("a client of a Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster(3);
  });
  afterAll(() => cluster.stop());

  test.each([
    ["5", Cluster5],
    ["6", Cluster6],
  ])("of ioredis %s with each of these options emits, delivers and lists events", async (_, Cluster) => {
    const each = [{ lazyConnect: true }, { scaleReads: "slave" }, { enableOfflineQueue: false }];
    for (const options of each) {
      await expectWebhooksToWork(clientOf(new Cluster([...cluster.nodes], options as object)));
    }
  });
});

test("transformers of replies and arguments that the host sets for its own commands change nothing", async () => {
  const commands = ["hget", "hmget", "hscan", "zscan", "get", "eval", "evalsha", "info", "publish"];
  for (const name of commands) {
    Command.setReplyTransformer(name, () => "changed by the host");
    Command.setArgumentTransformer(name, () => ["changed by the host"]);
  }
  onTestFinished(() => {
    const { _transformer: transformers } = Command as unknown as {
      readonly _transformer: Record<"reply" | "argument", Record<string, unknown>>;
    };
    for (const name of commands) {
      delete transformers.reply[name];
      delete transformers.argument[name];
    }
  });
  await expectWebhooksToWork(clientOf(new Redis6(redisUrl())));
});

test("a client of a Cluster with enableAutoPipelining is refused: ioredis 5 mixes slots in its pipelines", () => {
  for (const Cluster of [Cluster5, Cluster6]) {
    const client = clientOf(new Cluster([], { enableAutoPipelining: true, lazyConnect: true }));
    expect(() => redisStorage({ client })).toThrow(expect.objectContaining({ code: "invalid_option" }));
  }
});

const REFUSED: readonly (readonly [string, object])[] = [
  ["keyPrefix", { keyPrefix: "host:" }],
  ["stringNumbers", { stringNumbers: true }],
  ["replyMapping resp3", { replyMapping: "resp3" }],
];

describe.each([
  ["Redis of ioredis 5", (options: object) => new Redis5({ ...options, lazyConnect: true })],
  ["Redis of ioredis 6", (options: object) => new Redis6({ ...options, lazyConnect: true })],
  ["Cluster of ioredis 6", (redisOptions: object) => new Cluster6([], { redisOptions, lazyConnect: true })],
])("a %s that changes keys or the types of replies is refused when it is given:", (_, connect) => {
  test.each(REFUSED)("%s", (__, options) => {
    expect(() => redisStorage({ client: clientOf(connect(options)) })).toThrow(
      expect.objectContaining({
        code: "invalid_option",
        field: "client",
        message: expect.stringContaining("without keyPrefix, stringNumbers and replyMapping"),
      }),
    );
  });
});
