/** Remembers which ids were dealt with, and which are being dealt with right now. Bounded in number and in time. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../src/core/clock.js";

export interface DeDuplicator {
  /** `new`: the id is the caller's until it confirms or releases it. `underway`: another caller has it. `done`: it was confirmed. */
  claim(id: string): "new" | "underway" | "done";
  /** The claimed id was dealt with: claims of it answer `done` while it is remembered. */
  confirm(id: string): void;
  /** The claimed id was not dealt with: the next claim of it answers `new`. */
  release(id: string): void;
}

export interface DeDuplicatorOptions {
  /** Confirmed ids to remember; beyond them the oldest is forgotten. */
  readonly max: number;
  /** Milliseconds a confirmed id is remembered. */
  readonly ttlMs: number;
  readonly clock: Clock;
}

/** Ids under way are not part of the window: no flood of others can make one forgotten, and there are as many as calls under way. */
export function createDeDuplicator({ max, ttlMs, clock }: DeDuplicatorOptions): DeDuplicator {
  const underway = new Set<string>();
  const done = new LRUCache<string, true>({
    max,
    ttl: ttlMs,
    // Without a resolution the cache sets no timer to keep its idea of now; to it, a start at 0 means no limit.
    ttlResolution: 0,
    perf: { now: () => clock.monotonic() + 1 },
  });
  return Object.freeze({
    claim(id: string) {
      if (underway.has(id)) return "underway";
      // `has` leaves the order alone: the oldest goes first, not the one repeated least.
      if (done.has(id)) return "done";
      underway.add(id);
      return "new";
    },
    confirm(id: string) {
      underway.delete(id);
      done.set(id, true);
    },
    release(id: string) {
      underway.delete(id);
    },
  });
}
