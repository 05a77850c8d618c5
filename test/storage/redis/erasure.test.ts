/** Erasing accounts on Redis that have many webhooks, or webhooks that cannot be read. */

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createScenario, type Scenario } from "../../../src/testing/storage-contract/fixture.js";
import { createPartitions } from "../../../storage/redis/partition.js";
import { openStore } from "../../faults/support/redis-store.js";
import { newEvent } from "../../faults/support/store-driver.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { countedRedis } from "../../support/redis-work.js";

let admin: Redis;
beforeAll(() => {
  admin = new Redis(redisUrl());
});
afterAll(() => admin.disconnect());

type Erasing = Pick<Scenario["store"], "eraseAccount">;

/** Erases an account, step by step. Returns how many webhooks that were. */
async function eraseAll(store: Erasing, account: string, now: number): Promise<number> {
  let webhooks = 0;
  let cursor: string | undefined;
  do {
    const { erased, next } = await store.eraseAccount({ account, cursor, now });
    webhooks += erased.webhooks;
    cursor = next ?? undefined;
  } while (cursor !== undefined);
  return webhooks;
}

test("the bytes that erasing webhooks writes grow with their number, and not with its square", async () => {
  const { storage, work, destroy } = countedRedis(new Redis(redisUrl()), freshPrefix(), "bytes");
  const s = createScenario({ storage });
  const bytes: number[] = [];
  for (const [account, count] of [
    ["clinic", 100],
    ["hospital", 200],
  ] as const) {
    for (let index = 0; index < count; index++) {
      const creation = s.buildCreation(s.buildWebhook({ account, eventTypes: ["patient.updated"] }));
      await s.store.createWebhook({ ...creation, accountLimit: 500, enabledLimit: 500 });
    }
    const before = await work();
    expect(await eraseAll(s.store, account, s.now())).toBe(count);
    bytes.push((await work()) - before);
  }
  const [once = 0, twice = 0] = bytes;
  expect(twice).toBeLessThan(2.5 * once);
  await storage.close();
  destroy();
});

test("an account whose webhooks cannot be read is erased with all its entries", async () => {
  const { store, storage, register, append, claim, prefix, key } = openStore({ url: redisUrl() });
  await register("clinic");
  await register("clinic");
  const { id: other } = await register("hospital");
  await append(newEvent("clinic"));
  const now = store.now();
  const claims = await claim();
  expect(claims).toHaveLength(2);
  await store.settle(
    claims.map(({ id, token, webhook }) => ({
      id,
      token,
      webhookId: webhook.id,
      account: "clinic",
      now,
      outcome: { state: "failed", reason: "exhausted" },
      startedAt: now,
      attempt: null,
      endpoint: { ok: false, generation: webhook.generation, at: now, noticeAt: now + 1_000, lane: "slow" },
    })),
  );
  expect(await admin.zcard(key("failing"))).toBe(2);
  await admin.hset(key("webhooks"), { 1: "garbage", 2: "1,clinic" });

  expect(await eraseAll(store, "clinic", now)).toBe(2);

  expect(await admin.hkeys(key("ids"))).toEqual([other]);
  expect(await admin.hkeys(key("accounts"))).toEqual(["hospital"]);
  // The replies of the calls are remembered for a few minutes: numbers, under a random name.
  const left = ["meta", "accounts", "ids", "webhooks", "account-list", "remembered", "expirations"];
  const [partition] = createPartitions(prefix, 1).all;
  const names: string[] = [];
  for (const name of partition?.keys ?? [])
    if ((await admin.exists(name)) === 1) names.push(name.slice(`{${prefix}:0}:`.length));
  expect(left).toEqual(expect.arrayContaining(names));
  expect((await admin.hkeys(key("remembered"))).filter((field) => !field.startsWith("a/"))).toEqual([]);
  await storage.close();
});
