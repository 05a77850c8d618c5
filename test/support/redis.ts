/** Lets a test use the shared Redis server without affecting other tests. */

import { randomUUID } from "node:crypto";
import { inject } from "vitest";

/** Throws where there is no server: a test that needs one fails, and says what to do. */
export function redisUrl(): string {
  const redis = inject("redis");
  if ("url" in redis) return redis.url;
  throw new Error(`No Redis for this test. ${redis.reason} Or set REDIS_URL.`);
}

/**
 * No other test, file or run has the same one, since a server given by REDIS_URL outlives the run.
 */
export const freshPrefix = (): string => `test-${randomUUID()}`;
