/**
 * Limits the attempts that this process has in flight: one budget for endpoints known to be fast,
 * one for all others. The limit and the slow start of one endpoint are in the storage, for example
 * `storage/endpoint-limits.ts`.
 */

import type { Clock } from "../../core/clock.js";
import type { Deadline } from "../../core/deadlines.js";
import type { Claim, Lane } from "../store.js";

export interface SlotHolder {
  /** The budget of its slot, set by {@link Slots}. `null` while it has no slot. */
  budget: Lane | null;
}

export type FreeSlots = Readonly<Record<Lane, number>>;

export interface Slots {
  /** Returns the number of slots of a lane that are neither taken nor reserved. */
  free(lane: Lane): number;
  /** Gives a slot of the lane to a holder without one, even if no slot is free. */
  enter(holder: SlotHolder, lane: Lane): void;
  /**
   * Moves a slow attempt to the slow budget, if that has room, and frees its slot in the fast one.
   */
  slowDown(holder: SlotHolder): void;
  /** Does nothing for a holder without a slot. */
  leave(holder: SlotHolder): void;
  /** Reserves up to `max` free slots of each lane. Returns `undefined` if no slot is free. */
  reserve(max: number): FreeSlots | undefined;
  endReservation(room: FreeSlots): void;
}

/**
 * At most `sizes.fast + sizes.slow` attempts are in flight, whatever the endpoints do. If the slow
 * budget is full, a slow attempt keeps its fast slot, and is the first to move when there is room.
 */
export function createSlots(sizes: FreeSlots): Slots {
  const used: Record<Lane, number> = { fast: 0, slow: 0 };
  const reserved: Record<Lane, number> = { fast: 0, slow: 0 };
  /** Holders in the fast budget that should be in the slow one. */
  const overdue = new Set<SlotHolder>();

  const move = (holder: SlotHolder): void => {
    overdue.delete(holder);
    used.fast -= 1;
    used.slow += 1;
    holder.budget = "slow";
  };

  const free = (lane: Lane): number => Math.max(0, sizes[lane] - used[lane] - reserved[lane]);

  return Object.freeze<Slots>({
    free,
    enter(holder, lane) {
      used[lane] += 1;
      holder.budget = lane;
    },
    slowDown(holder) {
      if (holder.budget !== "fast") return;
      if (used.slow < sizes.slow) move(holder);
      else overdue.add(holder);
    },
    leave(holder) {
      if (holder.budget === null) return;
      used[holder.budget] -= 1;
      holder.budget = null;
      if (overdue.size === 0) return;
      overdue.delete(holder);
      const [next] = overdue;
      if (next !== undefined && used.slow < sizes.slow) move(next);
    },
    reserve(max) {
      const fast = Math.min(free("fast"), max);
      const slow = Math.min(free("slow"), max);
      if (fast + slow === 0) return undefined;
      reserved.fast += fast;
      reserved.slow += slow;
      return { fast, slow };
    },
    endReservation({ fast, slow }) {
      reserved.fast -= fast;
      reserved.slow -= slow;
    },
  });
}

/** The lanes that may have more due than was claimed. */
type Backlog = Readonly<Record<Lane, boolean>>;

export const NO_BACKLOG: Backlog = { fast: false, slow: false };

/**
 * Adds the lanes that may have more, after a claim that left something due. A slow lane that did
 * not use up its room has nothing more: its free slots would have the store called for nothing
 * while the fast lane is busy.
 */
export function addBacklog(known: Backlog, claims: readonly Pick<Claim, "lane">[], room: FreeSlots): Backlog {
  const slow = claims.reduce((count, { lane }) => count + (lane === "slow" ? 1 : 0), 0);
  return { fast: true, slow: known.slow || slow >= room.slow };
}

export interface Flight extends SlotHolder {
  readonly claim: Claim;
  /** Monotonic time before the claim was requested: the lease cannot begin earlier. */
  readonly claimedAt: number;
  /** Set when the grace period of a stop is over: nothing may be sent after this. */
  isCancelled: boolean;
  /** Set when the result of the attempt is known and only has to be settled. */
  isOver: boolean;
  /** When the attempt counts as slow. */
  slowMark: Deadline | undefined;
}

export const createFlight = (claim: Claim, claimedAt: number): Flight => ({
  claim,
  claimedAt,
  isCancelled: false,
  isOver: false,
  budget: null,
  slowMark: undefined,
});

/** While nothing is known of the rate. More would withhold deliveries from other processes. */
const FIRST_AHEAD = 64;

/**
 * Claims that wait are sent within about this time, at the rate of the last {@link WINDOW_MS}. At
 * thousands of deliveries a second, one call of the storage then claims hundreds.
 */
const AHEAD_MS = 100;
const WINDOW_MS = 50;
const MOST_AHEAD = 512;

type WaitingClaim = Pick<Flight, "claim" | "claimedAt">;

/** A FIFO queue. Only for the fast lane: no delivery should wait behind slow endpoints. */
interface ClaimsAhead {
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
