/** The deliveries that this process holds: those in flight, and those that wait here for a slot. */

import type { Clock } from "../../core/clock.js";
import { createDeadlines } from "../../core/deadlines.js";
import type { Logger } from "../../core/logger.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Claim } from "../store.js";
import type { AttemptResult } from "./attempt-result.js";
import { crashDelayMs } from "./back-off.js";
import { createClaimsAhead } from "./claims-ahead.js";
import { createFlight, type Flight } from "./flight.js";
import type { Settler } from "./settler.js";
import { createSlots, type FreeSlots } from "./slots.js";

export interface FlightsContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: Pick<WebhooksSettings, "delivery" | "retry">;
  /** Makes an attempt. Returns its result, or `null` if the lease has to decide. Throws or rejects only for a defect. */
  readonly attempt: (flight: Flight) => AttemptResult | null | Promise<AttemptResult | null>;
  readonly settler: Pick<Settler, "add" | "release">;
  /** Called when there may be room to claim for that was not there before. */
  readonly onFreed: () => void;
  /** Called when no delivery is held any more. */
  readonly onEmpty: () => void;
}

export interface Flights {
  /** Deliveries in flight, until they are settled. */
  readonly size: () => number;
  /** True if none is held, not even one that waits for a slot. */
  readonly isEmpty: () => boolean;
  /** How many to claim. */
  readonly room: () => FreeSlots;
  readonly hasRoom: () => boolean;
  /** Keeps slots for claims that another call carries; they may have no more than this. `undefined` where no slot is free for them. */
  readonly reserve: () => FreeSlots | undefined;
  readonly endReservation: (room: FreeSlots) => void;
  /** How often slots were freed so far. */
  readonly freedCount: () => number;
  /** Attempts claims, at once or when a slot is free. Resolves when those that must not be attempted now are released. */
  readonly take: (claims: readonly Claim[], claimedAt: number) => Promise<void>;
  /** Ends flights that are settled or given up. */
  readonly end: (ended: readonly Flight[]) => void;
  readonly open: () => void;
  /** From now on claims are released. Resolves when those that waited for a slot are. */
  readonly close: () => Promise<void>;
  /** Resolves when nothing is in flight. */
  readonly landed: () => Promise<void>;
  /** Cancels what is in flight. Resolves when those that were not sent are released. */
  readonly cancel: () => Promise<void>;
}

/**
 * A delivery whose lease expired this often without a settlement may be poison: it kills the process, and with it the deliveries that are in flight beside it.
 * A process attempts such deliveries one at a time and releases the others, so that only the guilty one is in flight when it dies.
 */
const POISON_CRASHES = 3;
const POISON_DELAY_MS = 1_000;

/** Most slots of a lane that one emit holds while it is stored: as many as an account has ENABLED webhooks. */
const MOST_RESERVED = 15;

const NO_ROOM: FreeSlots = Object.freeze({ fast: 0, slow: 0 });

export function createFlights({
  clock,
  logger,
  settings: { delivery, retry },
  attempt,
  settler,
  onFreed,
  onEmpty,
}: FlightsContext): Flights {
  const slots = createSlots({ fast: delivery.concurrency, slow: delivery.slowConcurrency });
  const slowMarks = createDeadlines(clock);
  const flights = new Set<Flight>();
  /** Leased and not attempted yet, for want of a slot. */
  const ahead = createClaimsAhead(delivery.concurrency);
  /** Attempts that are over and not settled yet hold no slot, and must stay few while the storage is slow. */
  const most = 2 * (delivery.concurrency + delivery.slowConcurrency);
  let isOpen = false;
  let freed = 0;
  /** Whether one was chosen that is attempted once the others are released. */
  let isPoisonChosen = false;
  const landing: (() => void)[] = [];

  const isEmpty = (): boolean => flights.size === 0 && ahead.size() === 0;

  const notifyEmpty = (): void => {
    if (flights.size === 0) for (const resolve of landing.splice(0)) resolve();
    if (isEmpty()) onEmpty();
  };

  const freeSlot = (): void => {
    freed += 1;
    startWaiting();
    onFreed();
  };

  const land = (flight: Flight, result: AttemptResult | null): void => {
    flight.isOver = true;
    slowMarks.remove(flight.slowMark);
    // The connection is free; settling may take a while and needs no slot.
    slots.leave(flight);
    // Cancelled by a stop: the lease decides, since a failure of a destroyed connection proves nothing. A 2xx is true all the same.
    const isKept = result !== null && (!flight.isCancelled || result.outcome.state === "delivered");
    if (isKept) settler.add(flight, result);
    else end([flight]);
    freeSlot();
  };

  const fail = (flight: Flight, error: unknown): void => {
    // A defect, not an outcome: the lease expires, and the crash rules delay the delivery.
    logger.error({ delivery: flight.claim.id, error }, "an attempt failed unexpectedly");
    land(flight, null);
  };

  const carryOut = (flight: Flight): void => {
    let result: AttemptResult | null | Promise<AttemptResult | null>;
    try {
      result = attempt(flight);
    } catch (error) {
      fail(flight, error);
      return;
    }
    if (result instanceof Promise)
      result.then(
        (known) => land(flight, known),
        (error: unknown) => fail(flight, error),
      );
    else land(flight, result);
  };

  const launch = (claim: Claim, claimedAt: number): void => {
    const flight = createFlight(claim, claimedAt);
    flights.add(flight);
    slots.enter(flight, claim.lane);
    if (claim.lane === "fast")
      flight.slowMark = slowMarks.add(clock.monotonic() + delivery.slowAfterMs, () => {
        slots.slowDown(flight);
        freeSlot();
      });
    carryOut(flight);
  };

  const launchOrKeep = (claim: Claim, claimedAt: number): void => {
    const hasSlot = claim.lane === "slow" || (ahead.size() === 0 && slots.free("fast") > 0);
    if (hasSlot) launch(claim, claimedAt);
    else ahead.add({ claim, claimedAt });
  };

  /** Fills freed slots with claims that wait. One that has waited for half its lease is released, so that it is not sent after it. */
  const startWaiting = (): void => {
    while (isOpen && ahead.size() > 0 && flights.size < most && slots.free("fast") > 0) {
      const waiting = ahead.next();
      if (waiting === undefined) return;
      if (clock.monotonic() - waiting.claimedAt > delivery.leaseMs / 2) void settler.release([waiting.claim]);
      else launch(waiting.claim, waiting.claimedAt);
    }
  };

  const end = (ended: readonly Flight[]): void => {
    for (const flight of ended) flights.delete(flight);
    startWaiting();
    notifyEmpty();
    onFreed();
  };

  /** One that is quarantined for its crashes is not attempted now, and can do no harm. */
  const isPoison = ({ crashes, isRecovered }: Claim): boolean =>
    crashes >= POISON_CRASHES && !(isRecovered && crashDelayMs(crashes, retry) > 0);
  const isPoisonInFlight = (): boolean =>
    isPoisonChosen || [...flights].some(({ claim, isOver }) => !isOver && isPoison(claim));

  const takePoison = async (poison: readonly Claim[], claimedAt: number): Promise<void> => {
    const [first] = poison;
    const isFree = first !== undefined && slots.free(first.lane) > 0 && !isPoisonInFlight();
    const chosen = isFree ? first : undefined;
    const others = poison.filter((claim) => claim !== chosen);
    if (chosen !== undefined) isPoisonChosen = true;
    // Released before the chosen one is attempted: if that ends the process, the others must not count it as their crash again and again.
    await Promise.all(
      others.map((claim) => settler.release([claim], POISON_DELAY_MS * (1 + clock.random()))),
    );
    if (chosen === undefined) return;
    isPoisonChosen = false;
    if (isOpen) launch(chosen, claimedAt);
    else await settler.release([chosen]);
  };

  return Object.freeze<Flights>({
    size: () => flights.size,
    isEmpty,
    room: () =>
      flights.size >= most ? NO_ROOM : { fast: slots.free("fast") + ahead.room(), slow: slots.free("slow") },
    hasRoom: () => flights.size < most && slots.free("fast") + slots.free("slow") + ahead.room() > 0,

    reserve() {
      if (!isOpen || ahead.size() > 0 || flights.size >= most) return undefined;
      const fast = Math.min(slots.free("fast"), MOST_RESERVED);
      const slow = Math.min(slots.free("slow"), MOST_RESERVED);
      if (fast + slow === 0) return undefined;
      const reserved = { fast, slow };
      slots.reserve(reserved);
      return reserved;
    },

    endReservation(reserved) {
      slots.endReservation(reserved);
      freed += 1;
      startWaiting();
    },

    freedCount: () => freed,

    async take(claims, claimedAt) {
      if (!isOpen) {
        await settler.release(claims);
        return;
      }
      const poison = claims.filter(isPoison);
      for (const claim of claims) if (!poison.includes(claim)) launchOrKeep(claim, claimedAt);
      if (poison.length > 0) await takePoison(poison, claimedAt);
    },

    end,

    open() {
      isOpen = true;
    },

    async close() {
      isOpen = false;
      await settler.release(ahead.drain().map(({ claim }) => claim));
    },

    landed: () => (flights.size === 0 ? Promise.resolve() : new Promise((resolve) => landing.push(resolve))),

    async cancel() {
      const left = [...flights];
      for (const flight of left) flight.isCancelled = true;
      await settler.release(left.filter(({ isSent }) => !isSent).map(({ claim }) => claim));
    },
  });
}
