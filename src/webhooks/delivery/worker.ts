/**
 * Delivers what is due. The life of a delivery, from its claim to its settlement, is:
 *
 * - `claim` leases what is due while slots are free, and `admit` takes the claims over.
 * - `launch` attempts a delivery in a slot. A claim without a slot waits for one.
 * - `land` gets the result, frees the slot and passes the result to the settler.
 * - `end` forgets the delivery once it is settled.
 *
 * A freed slot goes to a claim that waits here. If the storage has more that is due, it starts the
 * next claim.
 */

import { randomBytes } from "node:crypto";
import type { Timer } from "../../core/clock.js";
import { createDeadlines } from "../../core/deadlines.js";
import { PostbellError } from "../../core/errors.js";
import type { ServiceBase } from "../config/config.js";
import type { Claim, ClaimRequest, ClaimResponse } from "../store.js";
import { type MakeAttempt, traceClaim } from "./attempt.js";
import type { HealthSteps } from "./health-steps.js";
import { type AttemptResult, isPoisonClaim } from "./outcome.js";
import { createPasses, type LoopStats } from "./passes.js";
import { createOutage, createSettler } from "./settler.js";
import {
  addBacklog,
  createClaimsAhead,
  createFlight,
  createSlots,
  type Flight,
  type FreeSlots,
  NO_BACKLOG,
} from "./slots.js";

/** Slots that are reserved for a claim which another call of the storage carries. */
export interface Reservation {
  readonly request: ClaimRequest;
  /** Call it when the other call has ended, with what it claimed, if anything. */
  end(claimed: ClaimResponse | undefined): void;
}

export interface DeliveryWorker {
  /**
   * Reserves slots for a call that creates deliveries, which can then also claim the first of them.
   * Returns `undefined` if no slot is free.
   */
  reserve(): Reservation | undefined;
  start(): void;
  isRunning(): boolean;
  /**
   * Stops claiming, gives deliveries in flight `graceMs` to end, and gives the rest back. An
   * attempt that was sent may then be repeated. Never rejects.
   */
  stop(graceMs: number): Promise<void>;
  /**
   * Resolves when nothing is due and nothing is in flight. Rejects with `not_started`, or with the
   * error of an unavailable storage.
   */
  idle(): Promise<void>;
  /** The number of deliveries in flight. They stay in flight until they are settled. */
  inFlight(): number;
  stats(): LoopStats;
}

/** A claim request, with the state of the worker when it was built. */
interface PendingClaim {
  readonly request: ClaimRequest;
  /** Monotonic time: no lease of this claim begins earlier. */
  readonly claimedAt: number;
  readonly freedBefore: number;
  /** True if another call carries the claim, for what that call has created. */
  readonly isCarried: boolean;
}

/** The most slots of a lane that one event reserves: an account has no more ENABLED webhooks. */
const MAX_RESERVED = 15;
const POISON_DELAY_MS = 1_000;

export function createWorker(base: ServiceBase, attempt: MakeAttempt, health: HealthSteps): DeliveryWorker {
  const { store, config, logger } = base;
  const { clock, delivery, retry } = config;
  const { concurrency, slowConcurrency, leaseMs, slowAfterMs } = delivery;
  const name = randomBytes(8).toString("hex");
  const slots = createSlots({ fast: concurrency, slow: slowConcurrency });
  const slowMarks = createDeadlines(clock);
  /** Claims without a slot, not yet attempted. */
  const ahead = createClaimsAhead(concurrency, clock);
  const flights = new Set<Flight>();
  /** Flights that wait for their settlement hold no slot. This limits them in a slow storage. */
  const maxFlights = 2 * (concurrency + slowConcurrency);
  const outage = createOutage(clock);
  const settler = createSettler(base, outage, health, end);
  const passes = createPasses(clock, () => store.now(), claim);
  /** Callers that wait until nothing is in flight. */
  const waiting: (() => void)[] = [];

  let unwatch = (): void => {};
  /** The lanes in which more may be due than the last claim returned, because no slot was free. */
  let backlog = NO_BACKLOG;
  let claimCount = 0;
  /** The number of times that slots were freed. */
  let freedCount = 0;
  /** True while a poison delivery waits for the release of the others. */
  let isPoisonChosen = false;

  /** The number of deliveries to claim. */
  function getRoom(): FreeSlots {
    if (flights.size >= maxFlights) return { fast: 0, slow: 0 };
    return { fast: slots.free("fast") + ahead.room(), slow: slots.free("slow") };
  }

  function prepareClaim(room: FreeSlots, isCarried: boolean): PendingClaim {
    const now = store.now();
    const request = { now, token: `${name}.${++claimCount}`, leaseUntil: now + leaseMs, room };
    return { request, claimedAt: clock.monotonic(), freedBefore: freedCount, isCarried };
  }

  /** The pass: after it, every delivery that is due and has a slot is in flight. */
  async function claim(): Promise<void> {
    void health.startIfDue()?.then((nextAt) => {
      notifyIdle();
      passes.requestAt(nextAt);
    });
    const room = getRoom();
    // Without room there is nothing to claim: the flight that frees a slot requests a pass.
    if (room.fast + room.slow === 0) {
      backlog = { fast: true, slow: true };
      return;
    }
    const pending = prepareClaim(room, false);
    const at = clock.now();
    const claimed = await store.claim(pending.request).catch((error: unknown) => {
      logger.error({ error }, "the storage could not be asked for due deliveries");
      outage.failed();
      throw error;
    });
    traceClaim(base, at, claimed.claims.length);
    outage.ended();
    await admit(claimed, pending);
  }

  /** Takes claims over. Then claims again if there was too little room, or sleeps. */
  async function admit({ claims, nextAt }: ClaimResponse, pending: PendingClaim): Promise<void> {
    if (!passes.isRunning()) {
      await settler.release(claims);
      return;
    }
    const poison = claims.filter((claimed) => isPoisonClaim(claimed, retry));
    for (const claimed of claims) if (!poison.includes(claimed)) launchOrKeep(claimed, pending.claimedAt);
    if (poison.length > 0) await admitPoison(poison, pending.claimedAt);
    if (!passes.isRunning()) return;
    const { now } = pending.request;
    noteBacklog({ claims, nextAt }, pending);
    // A slot that was freed during the claim requested no pass: the backlog was unknown then.
    if (claims.length > 0 || (nextAt ?? 0) > now || freedCount > pending.freedBefore) claimIfBacklogged();
    const later = [nextAt, health.dueAt()].filter((at): at is number => at !== null && at > now);
    passes.requestAt(Math.min(...later, now + store.maxSleepMs));
  }

  /** Notes the lanes in which more is due. A carried claim clears none: it saw one partition. */
  function noteBacklog({ claims, nextAt }: ClaimResponse, { request, isCarried }: PendingClaim): void {
    const known = isCarried ? backlog : NO_BACKLOG;
    // Due by now, maybe not yet when the request was built: settlements since then count later.
    const isMoreDue = nextAt !== null && nextAt <= store.now();
    backlog = isMoreDue ? addBacklog(known, claims, request.room) : known;
  }

  /**
   * Attempts at most one poison delivery at a time and releases the others, so that only the guilty
   * one is in flight if the process dies.
   */
  async function admitPoison(poison: readonly Claim[], claimedAt: number): Promise<void> {
    const [first] = poison;
    const isInFlight = [...flights].some((flight) => !flight.isOver && isPoisonClaim(flight.claim, retry));
    const isFree = first !== undefined && slots.free(first.lane) > 0 && !isPoisonChosen && !isInFlight;
    const chosen = isFree ? first : undefined;
    if (chosen !== undefined) isPoisonChosen = true;
    const delayMs = (): number => POISON_DELAY_MS * (1 + clock.random());
    const others = poison.filter((claimed) => claimed !== chosen);
    // The others first: if the chosen one ends the process, it must not count as their crash.
    await Promise.all(others.map((claimed) => settler.release([claimed], delayMs())));
    if (chosen === undefined) return;
    isPoisonChosen = false;
    if (passes.isRunning()) launch(chosen, claimedAt);
    else await settler.release([chosen]);
  }

  /** Only claims of the fast lane wait: no delivery should wait behind slow endpoints. */
  function launchOrKeep(claimed: Claim, claimedAt: number): void {
    const hasSlot = claimed.lane === "slow" || (ahead.size() === 0 && slots.free("fast") > 0);
    if (hasSlot) launch(claimed, claimedAt);
    else ahead.add({ claim: claimed, claimedAt });
  }

  function launch(claimed: Claim, claimedAt: number): void {
    const flight = createFlight(claimed, claimedAt);
    flights.add(flight);
    slots.enter(flight, claimed.lane);
    if (claimed.lane === "fast")
      flight.slowMark = slowMarks.add(clock.monotonic() + slowAfterMs, () => {
        slots.slowDown(flight);
        freeSlot();
      });
    let result: ReturnType<MakeAttempt>;
    try {
      result = attempt(flight);
    } catch (error) {
      crash(flight, error);
      return;
    }
    if (!(result instanceof Promise)) land(flight, result);
    else
      result.then(
        (known) => land(flight, known),
        (error: unknown) => crash(flight, error),
      );
  }

  /** A defect of Postbell: the lease expires, and the rules for crashes delay the delivery. */
  function crash(flight: Flight, error: unknown): void {
    logger.error({ delivery: flight.claim.id, error }, "an attempt failed unexpectedly");
    land(flight, null);
  }

  /** @param result `null` leaves the delivery to its lease. */
  function land(flight: Flight, result: AttemptResult | null): void {
    flight.isOver = true;
    slowMarks.remove(flight.slowMark);
    // The connection is free: settling the delivery needs no slot.
    slots.leave(flight);
    // A failure on a connection that a stop has destroyed proves nothing. A 2xx is always true.
    if (result !== null && (!flight.isCancelled || result.outcome.state === "delivered"))
      settler.add(flight, result);
    else end([flight]);
    freeSlot();
  }

  function freeSlot(): void {
    freedCount += 1;
    launchWaiting();
    claimIfBacklogged();
  }

  /** Gives free slots to waiting claims. After half its lease a claim is released instead. */
  function launchWaiting(): void {
    while (passes.isRunning() && flights.size < maxFlights && slots.free("fast") > 0) {
      const next = ahead.next();
      if (next === undefined) return;
      if (clock.monotonic() - next.claimedAt > leaseMs / 2) void settler.release([next.claim]);
      else launch(next.claim, next.claimedAt);
    }
  }

  /** A freed slot starts a claim only if the last one was short of slots. */
  function claimIfBacklogged(): void {
    if (!backlog.fast && !backlog.slow) return;
    const { fast, slow } = getRoom();
    if ((backlog.fast && fast > 0) || (backlog.slow && slow > 0)) passes.request();
  }

  /** Forgets flights that are settled or abandoned. */
  function end(ended: readonly Flight[]): void {
    for (const flight of ended) flights.delete(flight);
    launchWaiting();
    notifyIdle();
    claimIfBacklogged();
  }

  const isBusy = (): boolean => flights.size > 0 || ahead.size() > 0 || health.isRunning();

  function notifyIdle(): void {
    if (waiting.length > 0 && !isBusy()) for (const resolve of waiting.splice(0)) resolve();
  }

  const becomesIdle = async (): Promise<void> => {
    if (isBusy()) await new Promise<void>((resolve) => waiting.push(resolve));
  };

  return Object.freeze<DeliveryWorker>({
    reserve() {
      const isFull = backlog.fast || backlog.slow || ahead.size() > 0 || flights.size >= maxFlights;
      const room = !isFull && passes.isRunning() ? slots.reserve(MAX_RESERVED) : undefined;
      if (room === undefined) return undefined;
      const pending = prepareClaim(room, true);
      return {
        request: pending.request,
        end: (claimed) =>
          passes.inContext(() => {
            slots.endReservation(room);
            freedCount += 1;
            launchWaiting();
            if (claimed) void admit(claimed, pending);
            // A pass claims the deliveries that found no room here.
            claimIfBacklogged();
          }),
      };
    },

    start() {
      if (passes.isRunning()) return;
      outage.ended();
      health.expect(0);
      unwatch = store.watch(passes.requestAt);
      passes.start();
    },

    isRunning: passes.isRunning,

    async stop(graceMs) {
      if (!passes.isRunning()) return;
      unwatch();
      const stopped = passes.stop();
      const released = settler.release(ahead.drain().map((kept) => kept.claim));
      const landed = Promise.all([stopped, released]).then(becomesIdle);
      let timer: Timer | undefined;
      const grace = new Promise<void>((resolve) => {
        timer = clock.setTimeout(resolve, graceMs);
      });
      await Promise.race([landed, grace]);
      clock.clearTimeout(timer);
      const left = [...flights].filter(({ isOver }) => !isOver);
      for (const flight of left) flight.isCancelled = true;
      // Known results get a last try. If it fails, releasing would fail too: the lease expires.
      await Promise.all([settler.settlePaused(), settler.release(left.map((flight) => flight.claim))]);
      for (const flight of flights) flight.isCancelled = true;
      settler.dropPaused();
    },

    async idle() {
      for (;;) {
        if (!passes.isRunning()) {
          throw new PostbellError(
            "not_started",
            "idle() waits for deliveries, but the service is not started: call start() first.",
          );
        }
        const hasPassed = await passes.finish();
        if (isBusy()) await becomesIdle();
        else if (hasPassed) return;
      }
    },

    inFlight: () => flights.size,
    stats: () => ({ ...passes.stats(), storageDownMs: outage.ms() }),
  });
}
