/** An upgrade and its rollback, on SQLite and on Redis. */

import { describe } from "vitest";
import { startRedisUnderTest } from "./support/redis-under-test.js";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";
import { describeUpgrade } from "./support/upgrade-suite.js";

describe("an upgrade on SQLite", () => {
  describeUpgrade(startSqliteUnderTest);
});

describe("an upgrade on Redis", () => {
  describeUpgrade(() => startRedisUnderTest("aof-everysec"));
});
