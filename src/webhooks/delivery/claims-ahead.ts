/** Claims that wait in this process for a slot, so that one is there the moment an attempt ends. */

import type { Claim } from "../store.js";

/** More would keep deliveries from other processes that have slots free. */
const MOST_AHEAD = 64;

export interface WaitingClaim {
  readonly claim: Claim;
  /** Monotonic time before the claim was asked for. */
  readonly claimedAt: number;
}

/**
 * First in, first out, and bounded by the room that was asked for. Only for the fast lane: nobody
 * should wait behind slow endpoints.
 */
export interface ClaimsAhead {
  readonly size: () => number;
  /** How many more to ask for. 0 while more than half are left, so that each call brings many. */
  readonly room: () => number;
  readonly add: (waiting: WaitingClaim) => void;
  readonly next: () => WaitingClaim | undefined;
  /** Removes and returns all of them. */
  readonly drain: () => readonly WaitingClaim[];
}

/** `slots`: how many attempts of the lane are made at once; no more than these wait. */
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
