/** With exactly the rights in docs/redis.md the contracts hold, and each of them is needed. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contentStoreContract, storageContract } from "../../../src/testing/index.js";
import { redisStorage } from "../../../storage/redis/index.js";
import { openStore } from "../../faults/support/redis-store.js";
import { newEvent } from "../../faults/support/store-driver.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { freshPrefix } from "../../support/redis.js";
import { type RedisServer, startRedis } from "../../support/redis-server.js";

const document = readFileSync(join(import.meta.dirname, "../../../docs/redis.md"), "utf8");
const [, listed = ""] = /ACL SETUSER webhooks ([^`]*)```/.exec(document) ?? [];
const rights = listed.split(/\s+/).filter((right) => right !== "");

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis({ persistence: "aof-everysec" });
});
afterAll(() => redis.stop());

/** Creates a user for a new prefix, and returns both. */
async function createUser(without: readonly string[] = []) {
  const prefix = freshPrefix();
  const own = rights
    .filter((right) => !without.includes(right))
    .map((right) => right.replace("{postbell", `{${prefix}`));
  await redis.cli("ACL", "SETUSER", prefix, ...own);
  return { prefix, url: `redis://${prefix}:password@127.0.0.1:${redis.port}` };
}

describe("as a user with the rights of docs/redis.md", () => {
  const create = async () => {
    const options = { ...(await createUser()), time: "clock" } as const;
    return { storage: redisStorage(options), peer: redisStorage(options) };
  };
  storageContract({ test, create });
  contentStoreContract({ test, create });

  test("old changes of content are dropped, and check() reports on everything", async () => {
    const opened = openStore({ ...(await createUser()), limits: { contentChanges: 100 } });
    const call = callsOf(contentSite({ storage: opened.storage }));
    const body = { title: "Opening hours", status: "publish" };
    const created = await Promise.all(
      Array.from({ length: 110 }, () => call("POST /posts", { as: "administrator", body })),
    );
    expect(new Set(created.map(({ status }) => status))).toEqual(new Set([201]));
    await opened.register();
    await opened.append(newEvent("clinic"));
    const older =
      "#!lua name=postbell_0123456789ab\nredis.register_function('older', function() return 1 end)";
    await redis.cli("FUNCTION", "LOAD", older);
    expect(await opened.storage.check()).toMatchObject({ ok: true, role: "master", repaired: 0 });
    expect(await redis.cli("FUNCTION", "LIST")).not.toContain("postbell_0123456789ab");
    await opened.storage.close();
  });

  test("deliveries continue on a full Redis without the library", async () => {
    const opened = openStore(await createUser());
    await opened.register();
    await opened.append(newEvent("clinic"));
    await redis.cli("FUNCTION", "FLUSH");
    await redis.cli("CONFIG", "SET", "maxmemory", "1");
    expect(await opened.drain()).toHaveLength(1);
    await redis.cli("CONFIG", "SET", "maxmemory", "0");
    await opened.storage.close();
  });

  test("every command that the document lists is used", async () => {
    const stats = await redis.cli("INFO", "commandstats");
    const used = new Set([...stats.matchAll(/^cmdstat_([^:]+):/gm)].map(([, name]) => `+${name}`));
    const commands = rights.filter((right) => right.startsWith("+"));
    expect(commands.length).toBeGreaterThan(30);
    expect(commands.filter((right) => !used.has(right))).toEqual([]);
  });
});

test("check() as a user without INFO says what it could not check, and repairs all the same", async () => {
  const opened = openStore(await createUser(["+info", "+config|get"]));
  await opened.register();
  await opened.append(newEvent("clinic"));
  await redis.cli("DEL", opened.key("account-counts"));
  const report = await opened.storage.check();
  expect(report).toMatchObject({ ok: false, version: "unknown", role: "unknown" });
  expect(report.warnings).toEqual([expect.stringMatching(/may not call INFO.*were not checked/)]);
  expect(report.repaired).toBeGreaterThan(0);
  expect(await opened.drain()).toHaveLength(1);
  await opened.storage.close();
});
