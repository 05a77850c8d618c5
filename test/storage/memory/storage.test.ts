/** The memory storage: the storage contract, its time, its end and its options. */

import { describe, expect, test } from "vitest";
import type { Logger } from "../../../src/core/logger.js";
import { storageContract } from "../../../src/testing/index.js";
import { only } from "../../../src/testing/storage-contract/assertions.js";
import { HOUR_MS, LEASE_MS, RETENTION } from "../../../src/testing/storage-contract/builders.js";
import { createScenario, type Scenario } from "../../../src/testing/storage-contract/fixture.js";
import { type MemoryStorageOptions, memoryStorage } from "../../../storage/memory/index.js";

describe("the memory storage keeps the storage contract:", () => {
  storageContract({ test, create: () => ({ storage: memoryStorage() }) });
});

const claimOne = async (s: Scenario) => only(await s.claim({ room: { fast: 0, slow: 1 } }));

describe("the time of the memory storage", () => {
  test.each([
    ["an hour ahead", HOUR_MS],
    ["an hour back", -HOUR_MS],
    ["ten years ahead", 3_650 * 24 * HOUR_MS],
  ])("setting the wall clock %s makes nothing due and ends no lease", async (_, jump) => {
    const s = createScenario({ storage: memoryStorage() });
    await s.register();
    await s.emit();
    await s.postpone(await claimOne(s), HOUR_MS);
    const { ids } = await s.emit();
    await claimOne(s);
    const start = s.store.now();
    expect(start).toBe(s.now());
    s.clock.setWallClock(start + jump);
    let count = 0;
    const claimedAt = async (elapsed: number) => {
      await s.advance(start + elapsed - s.store.now());
      const now = s.store.now();
      expect(now).toBe(start + elapsed);
      const leaseUntil = now + HOUR_MS;
      const request = { now, token: `after ${count++}`, leaseUntil, room: { fast: 9, slow: 9 } };
      return (await s.peer.claim(request)).claims;
    };
    expect(await claimedAt(0)).toEqual([]);
    expect(await claimedAt(LEASE_MS - 1)).toEqual([]);
    expect(only(await claimedAt(LEASE_MS))).toMatchObject({ id: only(ids), crashes: 1 });
    expect(await claimedAt(HOUR_MS - 1)).toEqual([]);
    expect(only(await claimedAt(HOUR_MS))).toMatchObject({ step: 1, dueAt: start + HOUR_MS });
  });

  test("it is a whole number of milliseconds, even if the monotonic clock has fractions", () => {
    let elapsed = 12_345.678_9;
    const clock = {
      ...createScenario({ storage: memoryStorage() }).clock,
      now: () => 1_700_000_000_000,
      monotonic: () => elapsed,
    };
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const store = memoryStorage().webhooks({ clock, logger, perEndpoint: 1, retention: RETENTION });
    expect(store.now()).toBe(1_700_000_000_000);
    elapsed += 1_000.4;
    expect(store.now()).toBe(1_700_000_001_000);
  });
});

describe("closing the memory storage", () => {
  const listening = () => {
    const warnings: object[] = [];
    const logger: Logger = {
      debug() {},
      info() {},
      warn: (fields) => void warnings.push(fields),
      error() {},
    };
    return { warnings, logger };
  };

  test("logs once how many pending deliveries end with it", async () => {
    const { warnings, logger } = listening();
    const storage = memoryStorage();
    const s = createScenario({ storage }, { logger });
    await s.register();
    await s.emit();
    await s.emit();
    await s.deliver(await claimOne(s));
    await storage.close();
    await storage.close();
    expect(warnings).toEqual([{ pending: 1 }]);
  });

  test("logs nothing if nothing is pending, or if it was not used", async () => {
    const { warnings, logger } = listening();
    const storage = memoryStorage();
    const s = createScenario({ storage }, { logger });
    await s.register();
    await storage.close();
    await memoryStorage().close();
    expect(warnings).toEqual([]);
  });
});

describe("the options of the memory storage", () => {
  test("unknown and unusable options are refused, with their path", () => {
    const refused = (field: string) => expect.objectContaining({ code: "invalid_option", field });
    const make = (options: unknown) => () => memoryStorage(options as MemoryStorageOptions);
    expect(make({ limit: {} })).toThrow(refused("limit"));
    expect(make({ limits: { webhook: 1 } })).toThrow(refused("limits.webhook"));
    for (const value of [0, -1, 1.5, Number.NaN, "5", null]) {
      expect(make({ limits: { pending: value } })).toThrow(refused("limits.pending"));
    }
    expect(make({ limits: { bytes: 1023 } })).toThrow(refused("limits.bytes"));
  });

  test("an option that is undefined has its default", async () => {
    const s = createScenario({ storage: memoryStorage({ limits: { pending: undefined } }) });
    await s.register();
    await s.emit();
    expect(await s.store.stats()).toMatchObject({ pending: 1 });
  });
});
