/** The work of one storage call, measured for the contract's budgets, and read from the scripts. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createScenario,
  type DeclareTest,
  type StorageUnderTest,
} from "../../../src/testing/storage-contract/fixture.js";
import { testLongLogs } from "../../../src/testing/storage-contract/long-logs.js";
import { testWorkPerCall } from "../../../src/testing/storage-contract/work-per-call.js";
import type { StorageContractOptions } from "../../../src/testing/storage-contract.js";
import { countExecutedBlocks, type ExecutedBlocks } from "../../support/executed-blocks.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { countedRedis } from "../../support/redis-work.js";

/** Declares the tests of the contract that bound the work, with a storage that counts it. */
function declareBudgets(
  declare: StorageContractOptions["test"],
  create: () => Promise<StorageUnderTest>,
): void {
  const it: DeclareTest = (name, run, options) =>
    declare(name, async () => {
      const underTest = await create();
      try {
        await run(createScenario(underTest, options));
      } finally {
        await underTest.storage.close();
        await underTest.destroy?.();
      }
    });
  testLongLogs(it);
  testWorkPerCall(it);
}

describe("the memory storage keeps its budgets, counted in executed blocks:", () => {
  let blocks: ExecutedBlocks;
  beforeAll(async () => {
    blocks = await countExecutedBlocks("/storage/memory/");
  });
  afterAll(() => blocks.stop());
  declareBudgets(test, async () => {
    const { memoryStorage } = await import("../../../storage/memory/index.js");
    return { storage: memoryStorage(), work: blocks.count };
  });

  test("blocks are really counted", async () => {
    const { memoryStorage } = await import("../../../storage/memory/index.js");
    const s = createScenario({ storage: memoryStorage() });
    await s.register();
    const before = await blocks.count();
    for (let count = 0; count < 100; count++) await s.emit();
    expect((await blocks.count()) - before).toBeGreaterThan(1_000);
  });
});

describe("the Redis storage keeps its budgets, counted in commands and their elements:", () => {
  declareBudgets(test, async () => countedRedis(new Redis(redisUrl()), freshPrefix()));
});

describe("check()", () => {
  test("counts a long log in pages, and corrects counts that are wrong", async () => {
    const client = new Redis(redisUrl());
    const prefix = freshPrefix();
    const { storage, destroy } = countedRedis(client, prefix);
    const s = createScenario({ storage });
    const { id } = await s.register();
    const emit = (count: number) => Promise.all(Array.from({ length: count }, () => s.emit()));
    for (let count = 0; count < 6; count++) await emit(200);
    for (const claim of await s.claim()) await s.deliver(claim);
    expect((await storage.check()).repaired).toBe(0);
    const right = await s.store.deliveryStats(id, s.now());
    expect(right?.delivered).toBeGreaterThan(0);
    await client.hset(`{${prefix}:0}:webhook-counts`, "1", "9,9,9,0\n\n");
    expect(await s.store.deliveryStats(id, s.now())).not.toEqual(right);
    expect((await storage.check()).repaired).toBe(1);
    expect(await s.store.deliveryStats(id, s.now())).toEqual({
      ...right,
      lastAttempt: null,
      lastDay: { succeeded: 0, failed: 0, durationMs: 0 },
      hours: [],
    });
    expect((await storage.check()).repaired).toBe(0);
    await storage.close();
    destroy();
  });
});

describe("the library", () => {
  const folder = resolve(import.meta.dirname, "../../../storage/redis/library");
  /** Reads without LIMIT, which are bounded in another way. */
  const BOUNDED_OTHERWISE: Readonly<Record<string, readonly string[]>> = {
    // One member, the first or the one at an index.
    "content.lua": ["ZRANGE key over - 1 over - 1 WITHSCORES"],
    "claim.lua": ["ZRANGE key 0 0 WITHSCORES"],
    "registrations.lua": ["ZRANGE keys.healthNotifications 0 0 WITHSCORES"],
    // Read only if there are at most 1 000.
    "erasure.lua": ["HGETALL keys.removals"],
    "read.lua": ["HVALS keys.accounts", "ZRANGE keys.healthNotifications 0 -1"],
    // Read only if there are at most 2 000. Removals end by themselves.
    "repair.lua": ["HGETALL keys.inFlight", "HVALS keys.removals", "ZRANGE keys.leases 0 -1"],
  };
  const WHOLE = /call\('((?:Z(?:REV)?RANGE\w*|HGETALL|HVALS|HKEYS|SMEMBERS|LRANGE|KEYS)\b.*)/g;

  test.each(
    readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".lua")),
  )("%s reads no key without a limit", (name) => {
    const text = readFileSync(join(folder, name), "utf8").replace(/--.*$/gm, "");
    const unbounded = [...text.matchAll(WHOLE)]
      .map(([, call = ""]) => call)
      .filter((call) => !call.includes("'LIMIT'"))
      .map((call) => call.slice(0, call.indexOf(")")).replaceAll(/[',]/g, ""));
    expect(unbounded.toSorted()).toEqual(BOUNDED_OTHERWISE[name] ?? []);
  });
});
