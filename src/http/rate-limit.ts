/** Limits the rate of calls: one token bucket per key, in this process. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.js";

export interface RateLimit {
  /**
   * Takes one token of `key`. Returns 0, or the seconds until the next token if the bucket is
   * empty.
   */
  readonly take: (key: string) => number;
  /** Puts a taken token back. */
  readonly putBack: (key: string) => void;
  /**
   * Takes `count` tokens of `key`, even if the bucket becomes negative: then `take` fails until it
   * refills.
   */
  readonly charge: (key: string, count: number) => void;
}

/** The number of keys to remember. A forgotten key starts with a full bucket. */
const MAX_KEYS = 10_000;

/** Allows `perMinute` calls a minute for each key, also in one burst; 0 sets no limit. */
export function createRateLimit({
  perMinute,
  clock,
}: {
  readonly perMinute: number;
  readonly clock: Clock;
}): RateLimit {
  if (perMinute === 0) return { take: () => 0, putBack: () => {}, charge: () => {} };
  const perMs = perMinute / 60_000;
  const buckets = new LRUCache<string, { tokens: number; at: number }>({ max: MAX_KEYS });
  const refill = (key: string): { tokens: number } => {
    const now = clock.monotonic();
    const bucket = buckets.get(key) ?? { tokens: perMinute, at: now };
    bucket.tokens = Math.min(perMinute, bucket.tokens + (now - bucket.at) * perMs);
    bucket.at = now;
    buckets.set(key, bucket);
    return bucket;
  };
  return {
    take(key) {
      const bucket = refill(key);
      if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / perMs / 1000);
      bucket.tokens -= 1;
      return 0;
    },
    putBack(key) {
      const bucket = buckets.get(key);
      if (bucket) bucket.tokens += 1;
    },
    charge(key, count) {
      refill(key).tokens -= count;
    },
  };
}
