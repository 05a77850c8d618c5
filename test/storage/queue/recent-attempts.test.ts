/** Sketches of durations, and how many hours are stored. */

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

/** A storage, and a function that counts the stored hours. */
function openRedis() {
  const client = new Redis(redisUrl());
  const prefix = freshPrefix();
  const storage = redisStorage({ client, prefix, time: "clock" });
  onTestFinished(async () => {
    await storage.close();
    client.disconnect();
  });
  const count = async () => {
    const values = await client.hvals(`{${prefix}:0}:webhook-counts`);
    return values.join("").split(";").length - 1;
  };
  return { storage, count };
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
  const count = async () => {
    const rows = database.prepare("SELECT endpoint, hour FROM postbell_hours").all();
    const recent = database.prepare("SELECT recent_hour FROM postbell_endpoints").all();
    return rows.length + recent.length;
  };
  return { storage, count };
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
