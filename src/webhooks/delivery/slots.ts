/**
 * The room for attempts in this process: one budget of slots for endpoints known to be fast, one
 * for all others, and the claims that wait for a slot. The limit and the slow start of one endpoint
 * are in the storage (`storage/queue/endpoint.ts`).
 */

import type { Clock, Deadline } from "../../core/clock.js";
import type { Claim, ClaimRequest, ClaimResponse, Lane } from "../store.js";

export interface SlotHolder {
  /** The budget of its slot, set by {@link Slots}. `null` while it has no slot. */
  budget: Lane | null;
}

export type FreeSlots = Record<Lane, number>;

/** How many deliveries a drain may still take, and how many attempts it has made. */
export class DrainLimit {
  attempts = 0;
  #left: number;

  constructor(deliveries: number) {
    this.#left = deliveries;
  }

  get isReached(): boolean {
    return this.#left === 0;
  }

  /**
   * The room for a claim: each lane may use up what is left, because the other may have nothing.
   */
  limit({ fast, slow }: FreeSlots): FreeSlots {
    return { fast: Math.min(fast, this.#left), slow: Math.min(slow, this.#left) };
  }

  /** Returns the first of these claims, as many as are still allowed. */
  take(claims: readonly Claim[]): readonly Claim[] {
    const taken = claims.length > this.#left ? claims.slice(0, this.#left) : claims;
    this.#left -= taken.length;
    return taken;
  }
}

/** Slots that are reserved for a claim which another call of the storage carries. */
export interface Reservation {
  request: ClaimRequest;
  /** Call it when the other call has ended, with what it claimed, if anything. */
  end(claimed: ClaimResponse | undefined): void;
}

/** A claim request, with the state of the worker when it was built. */
export interface PendingClaim {
  request: ClaimRequest;
  /** Monotonic time: no lease of this claim begins earlier. */
  claimedAt: number;
  freedBefore: number;
  /** True if another call carries the claim, for what that call has created. */
  isCarried: boolean;
}

/**
 * At most `sizes.fast + sizes.slow` attempts are in flight, whatever the endpoints do. If the slow
 * budget is full, a slow attempt keeps its fast slot, and is the first to move when there is room.
 */
export class Slots {
  #sizes: FreeSlots;
  #used: Record<Lane, number> = { fast: 0, slow: 0 };
  #reserved: Record<Lane, number> = { fast: 0, slow: 0 };
  /** Holders in the fast budget that should be in the slow one. */
  #overdue = new Set<SlotHolder>();

  constructor(sizes: FreeSlots) {
    this.#sizes = sizes;
  }

  /** Returns the number of slots of a lane that are neither taken nor reserved. */
  free(lane: Lane): number {
    return Math.max(0, this.#sizes[lane] - this.#used[lane] - this.#reserved[lane]);
  }

  /** Gives a slot of the lane to a holder without one, even if no slot is free. */
  enter(holder: SlotHolder, lane: Lane): void {
    this.#used[lane] += 1;
    holder.budget = lane;
  }

  /**
   * Moves a slow attempt to the slow budget, if that has room, and frees its slot in the fast one.
   */
  slowDown(holder: SlotHolder): void {
    if (holder.budget !== "fast") return;
    if (this.#used.slow < this.#sizes.slow) this.#move(holder);
    else this.#overdue.add(holder);
  }

  /** Does nothing for a holder without a slot. */
  leave(holder: SlotHolder): void {
    if (holder.budget === null) return;
    this.#used[holder.budget] -= 1;
    holder.budget = null;
    if (this.#overdue.size === 0) return;
    this.#overdue.delete(holder);
    const [next] = this.#overdue;
    if (next !== undefined && this.#used.slow < this.#sizes.slow) this.#move(next);
  }

  /** Reserves up to `max` free slots of each lane. Returns `undefined` if no slot is free. */
  reserve(max: number): FreeSlots | undefined {
    const fast = Math.min(this.free("fast"), max);
    const slow = Math.min(this.free("slow"), max);
    if (fast + slow === 0) return undefined;
    this.#reserved.fast += fast;
    this.#reserved.slow += slow;
    return { fast, slow };
  }

  endReservation({ fast, slow }: FreeSlots): void {
    this.#reserved.fast -= fast;
    this.#reserved.slow -= slow;
  }

  #move(holder: SlotHolder): void {
    this.#overdue.delete(holder);
    this.#used.fast -= 1;
    this.#used.slow += 1;
    holder.budget = "slow";
  }
}

/** The lanes in which more may be due than was claimed, because no slot was free. */
export class Backlog {
  #fast = false;
  #slow = false;

  isEmpty(): boolean {
    return !this.#fast && !this.#slow;
  }

  /** Nothing was claimed, for want of room. */
  fill(): void {
    this.#fast = true;
    this.#slow = true;
  }

  /** True if a lane with free slots may have more due. */
  hasRoom({ fast, slow }: FreeSlots): boolean {
    return (this.#fast && fast > 0) || (this.#slow && slow > 0);
  }

  /**
   * Takes over what a claim shows. A slow lane that did not use up its room has nothing more: its
   * free slots would have the store called for nothing while the fast lane is busy.
   *
   * @param isMoreDue true if the claim left something that is due.
   * @param isCarried true for a claim of one partition only, which empties no lane.
   */
  note({ claims }: ClaimResponse, room: FreeSlots, isMoreDue: boolean, isCarried: boolean): void {
    if (!isCarried) {
      this.#fast = false;
      this.#slow = false;
    }
    if (!isMoreDue) return;
    this.#fast = true;
    if (claims.filter(({ lane }) => lane === "slow").length >= room.slow) this.#slow = true;
  }
}

/** A delivery that this process attempts, from its launch until it is settled. */
export interface Flight extends SlotHolder {
  claim: Claim;
  /** Monotonic time before the claim was requested: the lease cannot begin earlier. */
  claimedAt: number;
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
const MAX_AHEAD = 512;

interface WaitingClaim {
  claim: Claim;
  claimedAt: number;
}

/**
 * A FIFO queue of claims without a slot. Only for the fast lane: no delivery should wait behind
 * slow endpoints.
 */
export class ClaimsAhead {
  #clock: Clock;
  #min: number;
  #max: number;
  #waiting: WaitingClaim[] = [];
  #first = 0;
  /** How many claims were taken since a monotonic time. */
  #taken = 0;
  #since: number;

  /** @param slots the number of concurrent attempts of the lane; at first, as many claims wait. */
  constructor(slots: number, clock: Clock) {
    this.#clock = clock;
    this.#min = Math.min(FIRST_AHEAD, slots);
    this.#max = this.#min;
    this.#since = clock.monotonic();
  }

  get size(): number {
    return this.#waiting.length - this.#first;
  }

  /**
   * Returns the number of claims to add. 0 while the queue is more than half full: each call then
   * claims many.
   */
  room(): number {
    this.#measureRate();
    return this.size <= this.#max / 2 ? this.#max - this.size : 0;
  }

  add(claim: WaitingClaim): void {
    this.#waiting.push(claim);
  }

  next(): WaitingClaim | undefined {
    const claim = this.#waiting[this.#first];
    if (claim === undefined) return undefined;
    this.#first += 1;
    this.#taken += 1;
    if (this.size === 0) this.drain();
    return claim;
  }

  /** Removes and returns all claims. */
  drain(): WaitingClaim[] {
    const left = this.#waiting.slice(this.#first);
    this.#waiting = [];
    this.#first = 0;
    return left;
  }

  #measureRate(): void {
    const elapsed = this.#clock.monotonic() - this.#since;
    if (elapsed < WINDOW_MS) return;
    const rate = this.#taken / elapsed;
    this.#max = Math.max(this.#min, Math.min(MAX_AHEAD, Math.ceil(rate * AHEAD_MS)));
    this.#taken = 0;
    this.#since += elapsed;
  }
}
