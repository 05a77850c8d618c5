/** Limits the rate of calls: one token bucket per key, in this process. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.js";

export interface RateLimit {
  /**
   * Takes one token of `key`. Returns 0, or the seconds until the next token if the bucket is
   * empty.
   */
  take: (key: string) => number;
  /** Puts a taken token back. */
  putBack: (key: string) => void;
  /**
   * Takes `count` tokens of `key`, even if the bucket becomes negative: then `take` fails until it
   * refills.
   */
  charge: (key: string, count: number) => void;
}

/** The number of keys to remember. A forgotten key starts with a full bucket. */
const MAX_KEYS = 10_000;

/**
 * A bucket counts parts of tokens: each millisecond adds `perMinute` of them. They are whole
 * numbers, so that no sum of small times falls short of the token that was promised.
 */
const TOKEN = 60_000;

interface Bucket {
  level: number;
  at: number;
}

/** Allows `perMinute` calls a minute for each key, also in one burst; 0 sets no limit. */
export function createRateLimit({ perMinute, clock }: { perMinute: number; clock: Clock }): RateLimit {
  if (perMinute === 0) return { take: () => 0, putBack: () => {}, charge: () => {} };
  const full = perMinute * TOKEN;
  const buckets = new LRUCache<string, Bucket>({ max: MAX_KEYS });
  const refill = (key: string): Bucket => {
    const now = clock.monotonic();
    const bucket = buckets.get(key) ?? { level: full, at: now };
    bucket.level = Math.min(full, bucket.level + (now - bucket.at) * perMinute);
    bucket.at = now;
    buckets.set(key, bucket);
    return bucket;
  };
  return {
    take(key) {
      const bucket = refill(key);
      if (bucket.level < TOKEN) return Math.ceil((TOKEN - bucket.level) / perMinute / 1000);
      bucket.level -= TOKEN;
      return 0;
    },
    putBack(key) {
      const bucket = buckets.get(key);
      if (bucket) bucket.level += TOKEN;
    },
    charge(key, count) {
      refill(key).level -= count * TOKEN;
    },
  };
}

/** One attempt to sign in, counted as a failure until `release` is called. */
export interface SignInAttempt {
  /** False if the address, or the name from this address, has failed too often. */
  isAllowed: boolean;
  release: () => void;
}

/**
 * Limits the failed sign-ins of each address, and of each name that it tries, so that nobody can
 * lock out a user from another address. Without an address, each name has a limit for all clients.
 */
export function createSignInLimit(options: { perMinute: number; clock: Clock }): {
  begin: (address: string | undefined, name?: string) => SignInAttempt;
} {
  const addresses = createRateLimit(options);
  const names = createRateLimit(options);
  return {
    begin(address, name = "") {
      const key = `${address ?? ""} ${name}`;
      const isAddressFree = address === undefined || addresses.take(address) === 0;
      const isAllowed = isAddressFree && names.take(key) === 0;
      const release = (): void => {
        if (isAddressFree && address !== undefined) addresses.putBack(address);
        if (isAllowed) names.putBack(key);
      };
      return { isAllowed, release };
    },
  };
}
