/** Keeps claims that wait for a slot, so that the next attempt can begin when one ends. */

import type { Clock } from "../../core/clock.js";
import type { Claim } from "../store.js";

/** While nothing is known of the rate. More would withhold deliveries from other processes. */
const FIRST_AHEAD = 64;

/**
 * Claims that wait are sent within about this time, at the rate of the last {@link WINDOW_MS}. At
 * thousands of deliveries a second, one call of the storage then claims hundreds.
 */
const AHEAD_MS = 100;
const WINDOW_MS = 50;
const MOST_AHEAD = 512;

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

/** @param slots the number of concurrent attempts of the lane; at first, as many claims wait. */
export function createClaimsAhead(slots: number, clock: Pick<Clock, "monotonic">): ClaimsAhead {
  const least = Math.min(FIRST_AHEAD, slots);
  let most = least;
  let waiting: WaitingClaim[] = [];
  let first = 0;
  /** How many claims were taken since a monotonic time. */
  let taken = 0;
  let since = clock.monotonic();
  const size = (): number => waiting.length - first;

  const measureRate = (): void => {
    const elapsed = clock.monotonic() - since;
    if (elapsed < WINDOW_MS) return;
    most = Math.max(least, Math.min(MOST_AHEAD, Math.ceil((taken / elapsed) * AHEAD_MS)));
    taken = 0;
    since += elapsed;
  };

  return Object.freeze<ClaimsAhead>({
    size,
    room() {
      measureRate();
      return size() <= most / 2 ? most - size() : 0;
    },
    add(claim) {
      waiting.push(claim);
    },
    next() {
      const claim = waiting[first];
      if (claim === undefined) return undefined;
      first += 1;
      taken += 1;
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
