/** Content on Redis and on SQLite: processes that share it, and a server that fails. */

import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import {
  createPost,
  describeContent,
  describeContentWithoutServer,
  toolsFor,
} from "./support/content-suite.js";
import { startRedisUnderTest, toRedis } from "./support/redis-under-test.js";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";
import { startForTests } from "./support/start-for-tests.js";
import type { StorageAddress } from "./support/storage-under-test.js";

const turnsOf = (standard: number): number => Number(process.env["CONTENT_INTERLEAVINGS"] ?? standard);

describe("on SQLite", () => {
  describeContent({ start: startSqliteUnderTest, turns: turnsOf(2_000) });
});

describe("on Redis", () => {
  describeContent({ start: () => startRedisUnderTest("aof-everysec"), turns: turnsOf(10_000) });
  describeContentWithoutServer(() => startRedisUnderTest("aof-always"));
});

describe("a Redis that goes away", () => {
  const on = startForTests(() => startRedisUnderTest("aof-always"));
  const { serviceOn, faultsIn } = toolsFor(on);
  const flushAll = async (address: StorageAddress): Promise<void> => {
    const redis = new Redis(toRedis(address).url);
    await redis.flushall();
    redis.disconnect();
  };

  it("and comes back empty, or filled by another process, is never answered for with what was there", async () => {
    const address = await on().fresh();
    const [first, second] = [serviceOn(address), serviceOn(address)] as const;
    const id = await createPost(first, "Gone");
    expect((await second(`GET /posts/${id}`)).status).toBe(200);
    await flushAll(address);
    expect((await first(`GET /posts/${id}`)).status).toBe(404);
    // As many commits as there were, and more: the numbers alone say nothing.
    for (const title of ["New", "Newer", "Newest"]) await createPost(first, title);
    const { body } = await second("GET /posts");
    const titlesOf = (posts: readonly { readonly title: { readonly rendered: string } }[]) =>
      posts.map(({ title }) => title.rendered).sort();
    expect(titlesOf(body)).toEqual(["New", "Newer", "Newest"]);
    expect(await faultsIn(address)).toEqual([]);
  });
});
