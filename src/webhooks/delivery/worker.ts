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
import { createDeadlines, whenAborted, withTimeout } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import type { ServiceBase } from "../config/config.js";
import type { Claim, ClaimResponse } from "../store.js";
import type { MakeAttempt } from "./attempt.js";
import type { HealthSteps } from "./endpoint-health.js";
import { type AttemptResult, isPoisonClaim } from "./outcome.js";
import { type LoopStats, Passes } from "./passes.js";
import { createOutage, createSettler, type Settler, type StorageOutage } from "./settler.js";
import {
  Backlog,
  ClaimsAhead,
  createFlight,
  type DrainLimit,
  type Flight,
  type FreeSlots,
  type PendingClaim,
  type Reservation,
  Slots,
} from "./slots.js";
import { traceClaim } from "./spans.js";

/** The most slots of a lane that one event reserves: an account has no more ENABLED webhooks. */
const MAX_RESERVED = 15;
const POISON_DELAY_MS = 1_000;

export class DeliveryWorker {
  #base: ServiceBase;
  #attempt: MakeAttempt;
  #health: HealthSteps;
  #name = randomBytes(8).toString("hex");
  #slots: Slots;
  #slowMarks: ReturnType<typeof createDeadlines>;
  /** Claims without a slot, not yet attempted. */
  #ahead: ClaimsAhead;
  #backlog = new Backlog();
  #flights = new Set<Flight>();
  /** Flights that wait for their settlement hold no slot. This limits them in a slow storage. */
  #maxFlights: number;
  #outage: StorageOutage;
  #settler: Settler;
  #passes: Passes;
  #claimCount = 0;
  /** The number of times that slots were freed. */
  #freedCount = 0;
  /** Calls that create deliveries and may return with claims. */
  #carrying = 0;
  #returned = (): void => {
    this.#carrying -= 1;
    this.#notifyIdle();
  };
  /** True while a poison delivery waits for the release of the others. */
  #isPoisonChosen = false;
  /** Callers that wait until nothing is in flight. */
  #waiting: (() => void)[] = [];
  #unwatch = (): void => {};
  /** Set while the worker runs for one drain only. */
  #limit: DrainLimit | undefined;

  constructor(base: ServiceBase, attempt: MakeAttempt, health: HealthSteps) {
    const { clock, delivery } = base.config;
    const { concurrency, slowConcurrency } = delivery;
    this.#base = base;
    this.#attempt = attempt;
    this.#health = health;
    this.#slots = new Slots({ fast: concurrency, slow: slowConcurrency });
    this.#slowMarks = createDeadlines(clock);
    this.#ahead = new ClaimsAhead(concurrency, clock);
    this.#maxFlights = 2 * (concurrency + slowConcurrency);
    this.#outage = createOutage(clock);
    this.#settler = createSettler(base, this.#outage, health, (flights) => this.#end(flights));
    this.#passes = new Passes(clock, base.store, () => this.#claim());
  }

  isRunning(): boolean {
    return this.#passes.isRunning;
  }

  /** The number of deliveries in flight. They stay in flight until they are settled. */
  inFlight(): number {
    return this.#flights.size;
  }

  stats(): LoopStats {
    return { ...this.#passes.stats(), storageDownMs: this.#outage.ms() };
  }

  /** @param limit for a run that takes a limited number of deliveries. */
  start(limit?: DrainLimit): void {
    if (this.isRunning()) return;
    this.#limit = limit;
    this.#outage.ended();
    this.#health.expect(0);
    this.#unwatch = this.#base.store.watch((at) => this.#passes.requestAt(at));
    this.#passes.start();
  }

  /**
   * Stops claiming, gives deliveries in flight `graceMs` to end, and gives the rest back. An
   * attempt that was sent may then be repeated. Never rejects.
   */
  async stop(graceMs: number, signal?: AbortSignal): Promise<void> {
    if (!this.isRunning()) return;
    this.#unwatch();
    const stopped = this.#passes.stop();
    const released = this.#settler.release(this.#ahead.drain().map(({ claim }) => claim));
    const landed = Promise.all([stopped, released]).then(() => this.#becomesIdle());
    const late = (): Error => new Error("the grace period is over");
    const over = signal === undefined ? landed : Promise.race([landed, whenAborted(signal)]);
    await withTimeout(this.#base.config.clock, graceMs, over, late).catch(() => {});
    const left = [...this.#flights].filter(({ isOver }) => !isOver);
    for (const flight of left) flight.isCancelled = true;
    // Known results get a last try. If it fails, releasing would fail too: the lease expires.
    const claims = left.map(({ claim }) => claim);
    await Promise.all([this.#settler.settlePaused(), this.#settler.release(claims)]);
    for (const flight of this.#flights) flight.isCancelled = true;
    this.#settler.dropPaused();
    // An attempt that hangs must not keep those who wait for a service that is stopped.
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /**
   * Resolves when nothing is due and nothing is in flight. Rejects with `not_started`, or with the
   * error of an unavailable storage.
   */
  async idle(): Promise<void> {
    for (;;) {
      if (!this.isRunning()) {
        throw new PostbellError(
          "not_started",
          "idle() waits for deliveries, but the service is not started: call start() first.",
        );
      }
      const hasPassed = await this.#passes.finish();
      if (this.#isBusy()) await this.#becomesIdle();
      else if (hasPassed) return;
    }
  }

  /**
   * Reserves slots for a call that creates deliveries, which can then also claim the first of them.
   * Returns `undefined` if no slot is free.
   */
  reserve(): Reservation | undefined {
    const isFull = !this.#backlog.isEmpty() || this.#ahead.size > 0 || this.#flights.size >= this.#maxFlights;
    const mayReserve = !isFull && this.#limit === undefined && this.isRunning();
    const room = mayReserve ? this.#slots.reserve(MAX_RESERVED) : undefined;
    if (room === undefined) return undefined;
    const pending = this.#prepareClaim(room, true);
    this.#carrying += 1;
    return {
      request: pending.request,
      end: (claimed) =>
        this.#passes.inContext(() => {
          this.#slots.endReservation(room);
          this.#freedCount += 1;
          this.#launchWaiting();
          // A service that stops waits until the claims are given back.
          if (claimed) void this.#admit(claimed, pending).finally(this.#returned);
          else this.#returned();
          // A pass claims the deliveries that found no room here.
          this.#claimIfBacklogged();
        }),
    };
  }

  #prepareClaim(room: FreeSlots, isCarried: boolean): PendingClaim {
    const { store, config } = this.#base;
    const now = store.now();
    const token = `${this.#name}.${++this.#claimCount}`;
    const request = { now, token, leaseUntil: now + config.delivery.leaseMs, room };
    return { request, claimedAt: config.clock.monotonic(), freedBefore: this.#freedCount, isCarried };
  }

  /** The number of deliveries to claim. */
  #room(): FreeSlots {
    if (this.#flights.size >= this.#maxFlights) return { fast: 0, slow: 0 };
    const room = { fast: this.#slots.free("fast") + this.#ahead.room(), slow: this.#slots.free("slow") };
    return this.#limit?.limit(room) ?? room;
  }

  /** The pass: after it, every delivery that is due and has a slot is in flight. */
  async #claim(): Promise<void> {
    const { store, config, logger, telemetry } = this.#base;
    void this.#health.startIfDue()?.then((nextAt) => {
      this.#notifyIdle();
      this.#passes.requestAt(nextAt);
    });
    const room = this.#room();
    // Without room there is nothing to claim: the flight that frees a slot requests a pass.
    if (room.fast + room.slow === 0) {
      this.#backlog.fill();
      return;
    }
    const pending = this.#prepareClaim(room, false);
    const at = config.clock.now();
    let claimed: ClaimResponse;
    try {
      claimed = await store.claim(pending.request);
    } catch (error) {
      logger.error({ error }, "the storage could not be asked for due deliveries");
      this.#outage.failed();
      throw error;
    }
    if (telemetry !== undefined) traceClaim(telemetry, config.clock, at, claimed.claims.length);
    this.#outage.ended();
    await this.#admit(claimed, pending);
  }

  /** Takes claims over. Then claims again if there was too little room, or sleeps. */
  async #admit(claimed: ClaimResponse, pending: PendingClaim): Promise<void> {
    const { nextAt } = claimed;
    if (!this.isRunning()) return this.#settler.release(claimed.claims);
    const claims = this.#limit?.take(claimed.claims) ?? claimed.claims;
    if (claims.length < claimed.claims.length)
      await this.#settler.release(claimed.claims.slice(claims.length));
    const { store, config } = this.#base;
    const { now, room } = pending.request;
    const poison = claims.filter((claim) => isPoisonClaim(claim, config.retry));
    for (const claim of claims) if (!poison.includes(claim)) this.#launchOrWait(claim, pending.claimedAt);
    if (poison.length > 0) await this.#admitPoison(poison, pending.claimedAt);
    if (!this.isRunning()) return;
    // Due by now, maybe not yet when the request was built: settlements since then count later.
    const isMoreDue = nextAt !== null && nextAt <= store.now();
    this.#backlog.note(claimed, room, isMoreDue, pending.isCarried);
    // A slot that was freed during the claim requested no pass: the backlog was unknown then.
    const isFreed = this.#freedCount > pending.freedBefore;
    if (claims.length > 0 || (nextAt ?? 0) > now || isFreed) this.#claimIfBacklogged();
    const later = [nextAt, this.#health.dueAt()].filter((at): at is number => at !== null && at > now);
    this.#passes.requestAt(Math.min(...later, now + store.maxSleepMs));
  }

  /**
   * Attempts at most one poison delivery at a time and releases the others, so that only the guilty
   * one is in flight if the process dies.
   */
  async #admitPoison(poison: Claim[], claimedAt: number): Promise<void> {
    const { clock, retry } = this.#base.config;
    const [first] = poison;
    const isInFlight = [...this.#flights].some(({ isOver, claim }) => !isOver && isPoisonClaim(claim, retry));
    const isFree = first !== undefined && this.#slots.free(first.lane) > 0;
    const chosen = isFree && !this.#isPoisonChosen && !isInFlight ? first : undefined;
    if (chosen !== undefined) this.#isPoisonChosen = true;
    const delayMs = (): number => POISON_DELAY_MS * (1 + clock.random());
    const others = poison.filter((claim) => claim !== chosen);
    // The others first: if the chosen one ends the process, it must not count as their crash.
    await Promise.all(others.map((claim) => this.#settler.release([claim], delayMs())));
    if (chosen === undefined) return;
    this.#isPoisonChosen = false;
    if (this.isRunning()) this.#launch(chosen, claimedAt);
    else await this.#settler.release([chosen]);
  }

  /** Only claims of the fast lane wait: no delivery should wait behind slow endpoints. */
  #launchOrWait(claim: Claim, claimedAt: number): void {
    const hasSlot = claim.lane === "slow" || (this.#ahead.size === 0 && this.#slots.free("fast") > 0);
    if (hasSlot) this.#launch(claim, claimedAt);
    else this.#ahead.add({ claim, claimedAt });
  }

  #launch(claim: Claim, claimedAt: number): void {
    const { clock, delivery } = this.#base.config;
    const flight = createFlight(claim, claimedAt);
    this.#flights.add(flight);
    this.#slots.enter(flight, claim.lane);
    if (claim.lane === "fast")
      flight.slowMark = this.#slowMarks.add(clock.monotonic() + delivery.slowAfterMs, () => {
        this.#slots.slowDown(flight);
        this.#freeSlot();
      });
    let result: ReturnType<MakeAttempt>;
    try {
      result = this.#attempt(flight);
    } catch (error) {
      this.#crash(flight, error);
      return;
    }
    if (!(result instanceof Promise)) this.#land(flight, result);
    else
      result.then(
        (settled) => this.#land(flight, settled),
        (error: unknown) => this.#crash(flight, error),
      );
  }

  /** A defect of Postbell: the lease expires, and the rules for crashes delay the delivery. */
  #crash(flight: Flight, error: unknown): void {
    this.#base.logger.error({ delivery: flight.claim.id, error }, "an attempt failed unexpectedly");
    this.#land(flight, null);
  }

  /** @param result `null` leaves the delivery to its lease. */
  #land(flight: Flight, result: AttemptResult | null): void {
    flight.isOver = true;
    if (this.#limit !== undefined && result?.attempt) this.#limit.attempts += 1;
    this.#slowMarks.remove(flight.slowMark);
    // The connection is free: settling the delivery needs no slot.
    this.#slots.leave(flight);
    // A failure on a connection that a stop has destroyed proves nothing. A 2xx is always true.
    if (result !== null && (!flight.isCancelled || result.outcome.state === "delivered"))
      this.#settler.add(flight, result);
    else this.#end([flight]);
    this.#freeSlot();
  }

  #freeSlot(): void {
    this.#freedCount += 1;
    this.#launchWaiting();
    this.#claimIfBacklogged();
  }

  /** Gives free slots to waiting claims. After half its lease a claim is released instead. */
  #launchWaiting(): void {
    const { clock, delivery } = this.#base.config;
    while (this.isRunning() && this.#flights.size < this.#maxFlights && this.#slots.free("fast") > 0) {
      const next = this.#ahead.next();
      if (next === undefined) return;
      if (clock.monotonic() - next.claimedAt > delivery.leaseMs / 2) void this.#settler.release([next.claim]);
      else this.#launch(next.claim, next.claimedAt);
    }
  }

  /** A freed slot starts a claim only if the last one was short of slots. */
  #claimIfBacklogged(): void {
    if (!this.#backlog.isEmpty() && this.#backlog.hasRoom(this.#room())) this.#passes.request();
  }

  /** Forgets flights that are settled or abandoned. */
  #end(ended: readonly Flight[]): void {
    for (const flight of ended) this.#flights.delete(flight);
    this.#launchWaiting();
    this.#notifyIdle();
    this.#claimIfBacklogged();
  }

  #isBusy(): boolean {
    return this.#flights.size > 0 || this.#ahead.size > 0 || this.#carrying > 0 || this.#health.isRunning();
  }

  #notifyIdle(): void {
    if (this.#waiting.length > 0 && !this.#isBusy()) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #becomesIdle(): Promise<void> {
    if (this.#isBusy()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
