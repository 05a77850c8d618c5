/** Remembers which ids were handled and which are being handled, limited in number and time. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.js";

export interface DeDuplicator {
  /**
   * Takes an id. `new`: the id belongs to the caller until it confirms or releases it. `in_flight`:
   * another caller has it. `done`: it was confirmed.
   */
  claim(id: string): "new" | "in_flight" | "done";
  /** Marks a claimed id as handled. Claims of it return `done` while it is remembered. */
  confirm(id: string): void;
  /** Gives a claimed id back. The next claim of it returns `new`. */
  release(id: string): void;
}

/**
 * Creates an empty window. Ids in flight are not part of it: a flood of other ids cannot make one
 * forgotten, and there are only as many as calls in flight.
 */
export function createDeDuplicator({
  max,
  ttlMs,
  clock,
}: {
  /** Confirmed ids to remember. Beyond this number the oldest is forgotten. */
  max: number;
  /** Milliseconds for which a confirmed id is remembered. */
  ttlMs: number;
  clock: Clock;
}): DeDuplicator {
  const inFlight = new Set<string>();
  const done = new LRUCache<string, true>({
    max,
    ttl: ttlMs,
    // With a resolution of 0 the cache sets no timer. It takes a start at 0 for "no limit", hence +
    // 1.
    ttlResolution: 0,
    perf: { now: () => clock.monotonic() + 1 },
  });
  return Object.freeze({
    claim(id: string) {
      if (inFlight.has(id)) return "in_flight";
      // `has` keeps the order, so the oldest id is forgotten first, not the one used least
      // recently.
      if (done.has(id)) return "done";
      inFlight.add(id);
      return "new";
    },
    confirm(id: string) {
      inFlight.delete(id);
      done.set(id, true);
    },
    release(id: string) {
      inFlight.delete(id);
    },
  });
}
