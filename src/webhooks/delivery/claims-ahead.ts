/** Keeps claims that wait for a slot, so that the next attempt can begin when one ends. */

import type { Claim } from "../store.js";

/** A higher limit would withhold deliveries from other processes with free slots. */
const MOST_AHEAD = 64;

export interface WaitingClaim {
  readonly claim: Claim;
  /** Monotonic time before the claim was requested. */
  readonly claimedAt: number;
}

/** A FIFO queue. Only for the fast lane: no delivery should wait behind slow endpoints. */
export interface ClaimsAhead {
  readonly size: () => number;
  /**
   * The number of claims to add. 0 while the queue is more than half full: each call then claims
   * many.
   */
  readonly room: () => number;
  readonly add: (waiting: WaitingClaim) => void;
  readonly next: () => WaitingClaim | undefined;
  /** Removes and returns all claims. */
  readonly drain: () => readonly WaitingClaim[];
}

/** @param slots the number of concurrent attempts of the lane; at most as many claims wait. */
export function createClaimsAhead(slots: number): ClaimsAhead {
  const most = Math.min(MOST_AHEAD, slots);
  let waiting: WaitingClaim[] = [];
  let first = 0;
  const size = (): number => waiting.length - first;
  return Object.freeze<ClaimsAhead>({
    size,
    room: () => (size() <= most / 2 ? most - size() : 0),
    add(claim) {
      waiting.push(claim);
    },
    next() {
      const claim = waiting[first];
      if (claim === undefined) return undefined;
      first += 1;
      if (first === waiting.length) {
        waiting = [];
        first = 0;
      }
      return claim;
    },
    drain() {
      const left = waiting.slice(first);
      waiting = [];
      first = 0;
      return left;
    },
  });
}
