/** Sketches of durations, and records of versions that kept the last day without them. */

import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { createScenario } from "../../../src/testing/storage-contract/fixture.js";
import { MAX_SKETCH_CHARACTERS } from "../../../storage/queue/constants.js";
import { addToSketch, readQuantiles, sketchDurations } from "../../../storage/queue/recent-attempts.js";
import { redisStorage } from "../../../storage/redis/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

const HOUR = 3_600_000;

describe("a sketch of durations", () => {
  test("differs from each duration up to 73 seconds by 5 % at most, and half a millisecond", () => {
    const wrong: number[] = [];
    for (let ms = 0; ms <= 73_000; ms++) {
      const { p50, p95 } = readQuantiles(sketchDurations([ms]));
      if (p50 !== p95 || p50 === null || Math.abs(p50 - ms) > 0.05 * ms + 0.5) wrong.push(ms);
    }
    expect(wrong).toEqual([]);
  });

  test("has a bounded size, and counts every attempt", () => {
    const clock = manualClock(0, { seed: 1 });
    const durations = Array.from({ length: 50_000 }, () => Math.round(90_000 ** clock.random()));
    let sketch = "";
    let longest = 0;
    for (const durationMs of durations) {
      sketch = addToSketch(sketch, sketchDurations([durationMs]));
      longest = Math.max(longest, sketch.length);
    }
    expect(longest).toBeLessThanOrEqual(MAX_SKETCH_CHARACTERS + 100);
    const counted = addToSketch(sketch, "x".repeat(MAX_SKETCH_CHARACTERS));
    expect(counted).toBe(sketchDurations(durations));
  });

  test.each([Number.NaN, -5, 1e300, Number.POSITIVE_INFINITY])("takes a duration of %d", (durationMs) => {
    expect(readQuantiles(sketchDurations([durationMs])).p50).toBeTypeOf("number");
  });

  test("that something else has changed has the quantiles of what can be read", () => {
    expect(readQuantiles("zz9bb,bd3 ch")).toEqual(readQuantiles("bd3"));
    expect(readQuantiles("")).toEqual({ p50: null, p95: null });
  });
});

/** The counts of the newest hour, and of 23 hours before it. */
const OLD_HOURS = (hour: number) => [
  { hour, succeeded: 2, failed: 1, durationMs: 24 },
  { hour: hour - 23, succeeded: 4, failed: 0, durationMs: 72 },
];

/** A storage, and the function that writes the hours of its first webhook as they were before. */
function openRedis() {
  const client = new Redis(redisUrl());
  const prefix = freshPrefix();
  const storage = redisStorage({ client, prefix, time: "clock" });
  onTestFinished(async () => {
    await storage.close();
    client.disconnect();
  });
  const write = async (hour: number) => {
    const lines = OLD_HOURS(hour).map((own) => `${Object.values(own).join(" ")};`);
    await client.hset(`{${prefix}:0}:tallies`, "1", `6,1,0,0\n\n${lines.join("")}`);
  };
  /** Counts the stored hours. */
  const count = async () => {
    const values = await client.hvals(`{${prefix}:0}:tallies`);
    return values.join("").split(";").length - 1;
  };
  return { storage, write, count };
}

function openSqlite() {
  const file = createDatabaseFile();
  const database = openDatabase(file.path);
  const storage = sqliteStorage({ database });
  onTestFinished(async () => {
    await storage.close();
    database.close();
    file.destroy();
  });
  const write = async (hour: number) =>
    database.exec(`UPDATE postbell_endpoints SET recent = '${JSON.stringify(OLD_HOURS(hour))}'`);
  const count = async () => {
    const rows = database.prepare("SELECT endpoint, hour FROM postbell_hours").all();
    const recent = database.prepare("SELECT recent FROM postbell_endpoints").all();
    return rows.length + recent.length;
  };
  return { storage, write, count };
}

const STORAGES = [
  { name: "Redis", open: openRedis },
  { name: "SQLite", open: openSqlite },
];

test.each(STORAGES)(
  "on $name, 72 hours are stored at most, and none of a removed webhook",
  async ({ open }) => {
    const { storage, count } = open();
    const s = createScenario({ storage });
    const { id } = await s.register();
    for (let hour = 0; hour < 80; hour++) {
      await s.emit();
      for (const claim of await s.claim()) await s.deliver(claim);
      await s.advance(HOUR);
    }
    const stored = await count();
    expect(stored).toBeGreaterThan(70);
    // SQL keeps the hour that the current one is about to replace.
    expect(stored).toBeLessThanOrEqual(73);
    await s.remove(id);
    await s.tidy();
    expect(await count()).toBe(0);
  },
);

test.each(STORAGES)(
  "on $name, a day that a version without sketches has counted is kept",
  async ({ open }) => {
    const { storage, write } = open();
    const s = createScenario({ storage });
    const { id } = await s.register();
    const first = s.now();
    await write(first / HOUR);
    const read = async () => {
      const stats = await s.store.deliveryStats(id, s.now());
      return [stats?.lastDay, stats?.hours];
    };
    const past = { at: first - 23 * HOUR, delivered: 4, failed: 0, p50: null, p95: null };
    const newest = { at: first, delivered: 2, failed: 1, p50: null, p95: null };
    expect(await read()).toEqual([{ succeeded: 6, failed: 1, durationMs: 96 }, [past, newest]]);
    const deliver = async () => {
      await s.emit();
      for (const claim of await s.claim()) await s.deliver(claim);
    };
    await deliver();
    const measured = { ...newest, delivered: 3, p50: 12, p95: 12 };
    expect(await read()).toEqual([{ succeeded: 7, failed: 1, durationMs: 108 }, [past, measured]]);
    await s.advance(2 * HOUR);
    await deliver();
    const current = { at: s.now(), delivered: 1, failed: 0, p50: 12, p95: 12 };
    const lastDay = { succeeded: 4, failed: 1, durationMs: 48 };
    expect(await read()).toEqual([lastDay, [past, measured, current]]);
  },
);
