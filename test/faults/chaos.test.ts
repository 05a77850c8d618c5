/** Workers and servers are killed, again and again, under load. */

import { describe } from "vitest";
import { describeChaos } from "./support/chaos-suite.js";
import { startRedisUnderTest } from "./support/redis-under-test.js";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";

describe("on Redis", () => {
  describeChaos({ start: () => startRedisUnderTest("aof-always"), workers: 3 });
});

describe("on SQLite", () => {
  describeChaos({ start: startSqliteUnderTest, workers: 2 });
});
