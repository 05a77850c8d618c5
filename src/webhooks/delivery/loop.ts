/**
 * Decides when to claim deliveries: while slots are free and something is due. Sleeps otherwise.
 */

import { storageRetryDelayMs } from "../../core/storage-circuit.js";
import type { Claim, ClaimRequest, Lane } from "../store.js";
import { type ClaimedBatch, createClaimer, type PendingClaim } from "./claimer.js";
import type { DeliveryContext } from "./context.js";
import type { Flights } from "./flights.js";
import { createHealthNotificationTimer } from "./health-notification-timer.js";
import { createPassRunner, type PassRunner } from "./pass-runner.js";
import { createSleepTimer } from "./sleep-timer.js";

/** Slots that are reserved for a claim which another call of the storage carries. */
export interface Reservation {
  readonly request: ClaimRequest;
  /** Call it when the other call has ended, with the deliveries that it claimed, if any. */
  end(claimed: ClaimedBatch | undefined): void;
}

/** The state of the loop, for health checks. */
export interface LoopStats {
  readonly isRunning: boolean;
  /** Milliseconds since the current pass began or should have begun: near 0 while all is well. */
  readonly overdueMs: number;
  /** True if the next pass waits for a free slot. `overdueMs` then counts from the last pass. */
  readonly isFull: boolean;
  /** Milliseconds since every claim and settlement has failed; 0 if the last one succeeded. */
  readonly storageDownMs: number;
}

export interface LoopContext extends DeliveryContext {
  readonly flights: Flights;
  /**
   * Sends what is due. Resolves with the next due time, or `null` if no health step is scheduled.
   */
  readonly sendHealthNotifications: () => Promise<number | null>;
  /** Called when a round of health notifications has ended. */
  readonly onHealthNotificationsSent: () => void;
}

export interface Loop {
  start(): void;
  /**
   * Stops claiming. Resolves when the current pass and the current health notifications have ended.
   */
  stop(): Promise<void>;
  /** Tells the loop that something may be due. */
  wake(): void;
  /** Tells the loop that a slot is free. It claims only if a claim was short of slots. */
  wakeIfBacklogged(): void;
  /** Tells the loop that an endpoint failed, with the due time of its next health step. */
  expectHealthStep(dueAt: number): void;
  /**
   * Reserves slots for a call that creates deliveries, which can then also claim the first of them.
   * Returns `undefined` if no slot is free.
   */
  reserve(): Reservation | undefined;
  isRunning(): boolean;
  isSendingHealthNotifications(): boolean;
  isPassing(): boolean;
  /** The number of passes begun so far. */
  passCount(): number;
  /** Resolves when no pass is running or requested. Rejects with the error of the last pass. */
  passes(): Promise<void>;
  stats(): LoopStats;
}

/** The lanes that may have more due than a claim returned. */
type Backlog = Readonly<Record<Lane, boolean>>;

const NO_BACKLOG: Backlog = { fast: false, slow: false };

/**
 * Finds the lanes that may have more, after a claim that left something due. A slow lane that did
 * not use up its room has nothing more: its free slots would have the store called for nothing
 * while the fast lane is busy.
 */
function findBacklog(claims: readonly Claim[], { room }: ClaimRequest): Backlog {
  const slow = claims.reduce((count, { lane }) => count + (lane === "slow" ? 1 : 0), 0);
  return { fast: true, slow: slow >= room.slow };
}

function hasRoomFor(backlog: Backlog, flights: Pick<Flights, "room">): boolean {
  if (!backlog.fast && !backlog.slow) return false;
  const { fast, slow } = flights.room();
  return (backlog.fast && fast > 0) || (backlog.slow && slow > 0);
}

function readLoopStats(
  { clock, store, outage }: LoopContext,
  passes: PassRunner,
  sleepsUntil: number | undefined,
): LoopStats {
  const isPassing = passes.isPassing();
  const until = isPassing ? undefined : sleepsUntil;
  return {
    isRunning: passes.isRunning(),
    overdueMs: until === undefined ? clock.monotonic() - passes.passedAt() : Math.max(0, store.now() - until),
    isFull: !isPassing && until === undefined,
    storageDownMs: outage.ms(),
  };
}

export function createLoop(context: LoopContext): Loop {
  const { store, clock, logger, outage, flights } = context;
  const claimer = createClaimer(context);
  let unwatch = (): void => {};
  /**
   * The lanes in which more may be due than the last claim returned, because no slot was free. Then
   * a freed slot wakes the loop. The store notifies the loop of everything that becomes due later.
   */
  let backlog: Backlog = NO_BACKLOG;

  /** After a pass, every delivery that is due and has a slot is in flight. */
  const pass = async (): Promise<void> => {
    healthTimer.startIfDue();
    const room = flights.room();
    // Without room there is nothing to claim: the flight that frees a slot wakes the loop.
    if (room.fast + room.slow === 0) {
      backlog = { fast: true, slow: true };
      return;
    }
    const pending = claimer.prepare(room, flights.freedCount());
    const result = await claimer.send(pending.request);
    outage.ended();
    await accept(result, pending);
  };

  const passes = createPassRunner({
    clock,
    pass,
    onFailure(error, failures) {
      logger.error({ error }, "the storage could not be asked for due deliveries");
      outage.failed();
      sleepUntil(store.now() + storageRetryDelayMs(failures));
    },
  });
  const sleepTimer = createSleepTimer(clock, () => store.now(), passes.request);

  const sleepUntil = (at: number): void => {
    if (passes.isRunning()) sleepTimer.wakeAt(at);
  };

  const wakeIfBacklogged = (): void => {
    if (hasRoomFor(backlog, flights)) passes.request();
  };

  const notifyDue = (at: number): void => {
    if (at <= store.now()) passes.request();
    else sleepUntil(at);
  };

  const healthTimer = createHealthNotificationTimer({
    store,
    logger,
    sendHealthNotifications: context.sendHealthNotifications,
    onSent(nextAt) {
      context.onHealthNotificationsSent();
      notifyDue(nextAt);
    },
  });

  /**
   * Takes over the claimed deliveries. Then claims again if there was too little room, or sleeps.
   */
  const accept = async (claimed: ClaimedBatch, pending: PendingClaim): Promise<void> => {
    const { claims, nextAt } = claimed;
    await flights.take(claims, pending.claimedAt);
    if (!passes.isRunning()) return;
    const { now } = pending.request;
    // Due by now, maybe not yet when the request was built: settlements since then count later.
    backlog = nextAt !== null && nextAt <= store.now() ? findBacklog(claims, pending.request) : NO_BACKLOG;
    // A slot that was freed during the claim could not wake the loop: the backlog was unknown then.
    if (claims.length > 0 || (nextAt ?? 0) > now || flights.freedCount() > pending.freedBefore)
      wakeIfBacklogged();
    const later = [nextAt, healthTimer.dueAt()].filter((at): at is number => at !== null && at > now);
    sleepUntil(Math.min(...later, now + store.maxSleepMs));
  };

  const reserve = (): Reservation | undefined => {
    if (!passes.isRunning() || backlog.fast || backlog.slow) return undefined;
    const room = flights.reserve();
    if (room === undefined) return undefined;
    const pending = claimer.prepare(room, flights.freedCount());
    return {
      request: pending.request,
      end(claimed) {
        flights.endReservation(room);
        if (claimed) void accept(claimed, pending);
        // A pass claims the deliveries that found no room here.
        wakeIfBacklogged();
      },
    };
  };

  return Object.freeze<Loop>({
    wake: passes.request,
    wakeIfBacklogged,
    reserve,
    expectHealthStep: healthTimer.expect,
    start() {
      passes.start();
      outage.ended();
      healthTimer.expect(0);
      unwatch = store.watch(notifyDue);
      passes.request();
    },
    async stop() {
      const stopped = passes.stop();
      unwatch();
      sleepTimer.cancel();
      await stopped;
      await healthTimer.settled();
    },
    isRunning: passes.isRunning,
    isSendingHealthNotifications: healthTimer.isRunning,
    isPassing: passes.isPassing,
    passCount: passes.count,
    passes: passes.finished,
    stats: () => readLoopStats(context, passes, sleepTimer.dueAt()),
  });
}
