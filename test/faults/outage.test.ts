/** Redis that is gone for a while, under both services. */

import { describe } from "vitest";
import { describeOutage } from "./support/outage-suite.js";
import { startRedisUnderTest } from "./support/redis-under-test.js";

describe("Redis", () => {
  describeOutage(() => startRedisUnderTest("aof-always"));
});
