/** Holds the deliveries of this process: those in flight, and claims that wait for a slot. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Claim } from "../store.js";
import type { MakeAttempt } from "./attempt.js";
import type { AttemptResult } from "./attempt-result.js";
import { createClaimsAhead } from "./claims-ahead.js";
import { createSlots, type FreeSlots } from "./concurrency-budget.js";
import { createFlight, type Flight } from "./flight.js";
import { createLauncher } from "./launcher.js";
import { createPoisonControl } from "./poison.js";
import type { Settler } from "./settler.js";

export interface FlightsContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: Pick<WebhooksSettings, "delivery" | "retry">;
  readonly attempt: MakeAttempt;
  readonly settler: Pick<Settler, "add" | "release">;
  /** Called when there may be more room to claim for than before. */
  readonly onFreed: () => void;
  /** Called when the last delivery is gone. */
  readonly onEmpty: () => void;
}

export interface Flights {
  /** The number of deliveries in flight. They stay in flight until they are settled. */
  readonly size: () => number;
  /** True if there is no delivery in flight, and no claim that waits for a slot. */
  readonly isEmpty: () => boolean;
  /** The number of deliveries to claim. */
  readonly room: () => FreeSlots;
  /**
   * Reserves slots for claims that another call carries, and returns the maximum for that call.
   * Returns `undefined` if no slot is free.
   */
  readonly reserve: () => FreeSlots | undefined;
  readonly endReservation: (room: FreeSlots) => void;
  /** The number of times that slots were freed. */
  readonly freedCount: () => number;
  /**
   * Attempts claims, at once or when a slot is free. Resolves when those that must not be attempted
   * now are released.
   */
  readonly take: (claims: readonly Claim[], claimedAt: number) => Promise<void>;
  /** Removes flights that are settled or abandoned. */
  readonly end: (ended: readonly Flight[]) => void;
  readonly open: () => void;
  /** Releases all further claims. Resolves when those that waited for a slot are released. */
  readonly close: () => Promise<void>;
  /** Resolves when nothing is in flight. */
  readonly landed: () => Promise<void>;
  /** Cancels all flights. Resolves when those that were not sent are released. */
  readonly cancel: () => Promise<void>;
}

/** The most slots of a lane that one emit reserves: an account has no more ENABLED webhooks. */
const MAX_RESERVED = 15;

const NO_ROOM: FreeSlots = Object.freeze({ fast: 0, slow: 0 });

/** A failure on a connection that a stop has destroyed proves nothing. A 2xx is always true. */
const isConclusive = ({ isCancelled }: Flight, { outcome }: AttemptResult): boolean =>
  !isCancelled || outcome.state === "delivered";

export function createFlights(context: FlightsContext): Flights {
  const { clock, logger, settings, attempt, settler, onFreed, onEmpty } = context;
  const { delivery, retry } = settings;
  const slots = createSlots({ fast: delivery.concurrency, slow: delivery.slowConcurrency });
  const flights = new Set<Flight>();
  /** Claims without a slot, not yet attempted. */
  const ahead = createClaimsAhead(delivery.concurrency, clock);
  /**
   * Flights that wait for their settlement hold no slot. This limits them while the storage is
   * slow.
   */
  const maxFlights = 2 * (delivery.concurrency + delivery.slowConcurrency);
  const landing: (() => void)[] = [];
  let isOpen = false;
  let freedCount = 0;

  const isEmpty = (): boolean => flights.size === 0 && ahead.size() === 0;

  const freeSlot = (): void => {
    freedCount += 1;
    startWaiting();
    onFreed();
  };

  const start = createLauncher({
    clock,
    logger,
    attempt,
    slots,
    slowAfterMs: delivery.slowAfterMs,
    onLanded(flight, result) {
      if (result !== null && isConclusive(flight, result)) settler.add(flight, result);
      else end([flight]);
    },
    onFreed: freeSlot,
  });

  const launch = (claim: Claim, claimedAt: number): void => {
    const flight = createFlight(claim, claimedAt);
    flights.add(flight);
    start(flight);
  };

  const launchOrKeep = (claim: Claim, claimedAt: number): void => {
    if (claim.lane === "slow" || (ahead.size() === 0 && slots.free("fast") > 0)) launch(claim, claimedAt);
    else ahead.add({ claim, claimedAt });
  };

  /**
   * Gives free slots to waiting claims. After half its lease a claim is released instead of sent.
   */
  const startWaiting = (): void => {
    while (isOpen && ahead.size() > 0 && flights.size < maxFlights && slots.free("fast") > 0) {
      const waiting = ahead.next();
      if (waiting === undefined) return;
      if (clock.monotonic() - waiting.claimedAt > delivery.leaseMs / 2) void settler.release([waiting.claim]);
      else launch(waiting.claim, waiting.claimedAt);
    }
  };

  const end = (ended: readonly Flight[]): void => {
    for (const flight of ended) flights.delete(flight);
    startWaiting();
    if (flights.size === 0) for (const resolve of landing.splice(0)) resolve();
    if (isEmpty()) onEmpty();
    onFreed();
  };

  const poisonControl = createPoisonControl({
    retry,
    clock,
    settler,
    flights,
    hasFreeSlot: (lane) => slots.free(lane) > 0,
    isOpen: () => isOpen,
    launch,
  });

  return Object.freeze<Flights>({
    size: () => flights.size,
    isEmpty,
    room: () =>
      flights.size >= maxFlights
        ? NO_ROOM
        : { fast: slots.free("fast") + ahead.room(), slow: slots.free("slow") },
    reserve: () =>
      isOpen && ahead.size() === 0 && flights.size < maxFlights ? slots.reserve(MAX_RESERVED) : undefined,
    endReservation(reserved) {
      slots.endReservation(reserved);
      freedCount += 1;
      startWaiting();
    },
    freedCount: () => freedCount,
    async take(claims, claimedAt) {
      if (!isOpen) {
        await settler.release(claims);
        return;
      }
      const poison = claims.filter(poisonControl.isPoison);
      for (const claim of claims) if (!poison.includes(claim)) launchOrKeep(claim, claimedAt);
      if (poison.length > 0) await poisonControl.take(poison, claimedAt);
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
