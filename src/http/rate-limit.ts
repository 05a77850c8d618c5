/** A token bucket per key, bounded, for this process. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.js";

export interface RateLimit {
  /** Takes one token of `key`. 0 where there was one; else the seconds until there is. */
  readonly take: (key: string) => number;
  /** Puts back one that was taken. */
  readonly putBack: (key: string) => void;
  /** Takes `count` tokens of `key`, also more than there are: `take` fails until the bucket is above zero again. */
  readonly charge: (key: string, count: number) => void;
}

/** Keys remembered; a forgotten key starts with a full bucket. */
const MAX_KEYS = 10_000;

/** `perMinute` requests a minute for each key, all of them at once if need be; 0 sets no limit. */
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
  const refilled = (key: string): { tokens: number } => {
    const now = clock.monotonic();
    const bucket = buckets.get(key) ?? { tokens: perMinute, at: now };
    bucket.tokens = Math.min(perMinute, bucket.tokens + (now - bucket.at) * perMs);
    bucket.at = now;
    buckets.set(key, bucket);
    return bucket;
  };
  return {
    take(key) {
      const bucket = refilled(key);
      if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / perMs / 1000);
      bucket.tokens -= 1;
      return 0;
    },
    putBack(key) {
      const bucket = buckets.get(key);
      if (bucket) bucket.tokens += 1;
    },
    charge(key, count) {
      refilled(key).tokens -= count;
    },
  };
}
