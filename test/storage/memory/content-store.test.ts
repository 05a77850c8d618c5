/**
 * The content store of the memory storage: the contract, its bound, the changes it remembers, and
 * its time.
 */

import { describe, expect, test } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import { put, remove } from "../../../src/testing/content-store-contract/fixture.js";
import { contentStoreContract } from "../../../src/testing/content-store-contract.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type MemoryStorageOptions, memoryStorage } from "../../../storage/memory/index.js";

describe("the memory storage keeps the content store contract:", () => {
  contentStoreContract({ test, create: () => ({ storage: memoryStorage() }) });
});

const START_MS = Date.UTC(2026, 0, 5, 8);

const storeWith = (limits: MemoryStorageOptions["limits"] = {}) => {
  const clock = manualClock(START_MS);
  return { clock, store: memoryStorage({ limits }).content({ clock, logger: silentLogger }) };
};

describe("the bound of the content in memory", () => {
  const full = expect.objectContaining({ code: "storage_full", field: "limits.contentBytes" });
  const text = (length: number) => ({ columns: null, body: "x".repeat(length) });

  test("refuses a commit that would exceed it, and stores nothing of it", async () => {
    const { store } = storeWith({ contentBytes: 10_000 });
    await store.commit([put("post/1", 0, text(4_000))]);
    await expect(store.commit([put("post/2", 0, text(10)), put("post/3", 0, text(5_000))])).rejects.toEqual(
      full,
    );
    expect(await store.read(["post/2", "post/3"])).toEqual([undefined, undefined]);
    expect(await store.commit([put("post/2", 0, text(10))])).toMatchObject({ ok: true, sequence: 2 });
  });

  test("counts names, and two bytes for characters beyond ASCII", async () => {
    const { store } = storeWith({ contentBytes: 10_000 });
    await expect(
      store.commit([put("post/1", 0, { columns: null, body: "é".repeat(5_000) })]),
    ).rejects.toEqual(full);
    await expect(
      store.commit([put("post/1", 0, { ...text(1), unique: ["n".repeat(10_000)] })]),
    ).rejects.toEqual(full);
  });

  test("gains room when records are removed or shrink, and always accepts a commit that shrinks it", async () => {
    const { store } = storeWith({ contentBytes: 10_000 });
    const fill = put("post/1", 0, text(9_000));
    await store.commit([fill]);
    for (let round = 0; round < 20; round += 1) {
      await store.commit([remove("post/1", 1)]);
      expect(await store.commit([fill])).toMatchObject({ ok: true });
    }
    expect(await store.commit([put("post/1", 1, text(100))])).toMatchObject({ ok: true });
    expect(await store.commit([put("post/2", 0, text(8_000))])).toMatchObject({ ok: true });
  });
});

describe("the changes of the content in memory", () => {
  test("are remembered for at least the last 20 000; older ones need a new load, and memory does not grow", async () => {
    const { store } = storeWith();
    const write = async (from: number, to: number) => {
      for (let version = from; version < to; version += 1) await store.commit([put("post/1", version)]);
    };
    await write(0, 20_000);
    expect(store.changes(0)).toMatchObject({
      sequence: 20_000,
      changes: [{ key: "post/1", version: 20_000 }],
    });
    await write(20_000, 40_001);
    expect(store.changes(20_000)).toBe("reload");
    expect(store.changes(20_001)).toMatchObject({ sequence: 40_001, changes: [{ version: 40_001 }] });
    expect(store.changes(40_001)).toEqual({ sequence: 40_001, changes: [] });
  });

  test("are returned synchronously", async () => {
    const { store } = storeWith();
    expect(store.changes(0)).not.toBeInstanceOf(Promise);
  });
});

test("the time of the content in memory does not change when the wall clock is set", async () => {
  const { clock, store } = storeWith();
  expect(store.now()).toBe(START_MS);
  clock.setWallClock(0);
  await clock.advance(1_500);
  expect(store.now()).toBe(START_MS + 1_500);
});

test("content and webhooks share one memory storage, and each sees its own data only", async () => {
  const storage = memoryStorage();
  const context = { clock: manualClock(START_MS), logger: silentLogger };
  await storage.content(context).commit([put("post/1", 0)]);
  const [record] = await storage.content(context).read(["post/1"]);
  expect(record).toMatchObject({ key: "post/1", version: 1 });
  await storage.close();
});
