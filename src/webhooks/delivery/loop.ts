/** Decides when to claim: while slots are free and something is due; then it sleeps until something is, or the store notifies it. */

import { randomBytes } from "node:crypto";
import type { Timer } from "../../core/clock.js";
import type { ClaimRequest, WebhookStore } from "../store.js";
import type { DeliveryContext } from "./context.js";
import type { Flights } from "./flights.js";
import type { FreeSlots } from "./slots.js";
import { MAX_RETRY_MS, storageRetryDelayMs } from "./storage-outage.js";

type ClaimAnswer = Awaited<ReturnType<WebhookStore["claim"]>>;

/** Slots kept free for a claim that another call of the store carries. */
export interface Reservation {
  readonly request: ClaimRequest;
  /** Has to be called once the other call has ended, with what it leased, if anything. */
  end(claimed: ClaimAnswer | undefined): void;
}

/** How the loop is doing. */
export interface LoopStats {
  readonly isRunning: boolean;
  /** Milliseconds since the current turn began, or should have begun: close to 0 while all is well. */
  readonly overdueMs: number;
  /** Whether it is freed slots that the next turn waits for: then `overdueMs` counts from the last one. */
  readonly isFull: boolean;
  /** Milliseconds for which every claim and every settlement has failed; 0 if the last one did not. */
  readonly storageDownMs: number;
}

export interface LoopContext extends DeliveryContext {
  readonly flights: Flights;
  /** Takes the health steps that are due; resolves with when the next one is, `null` where none waits. */
  readonly takeNotices: () => Promise<number | null>;
  /** Called when the current health steps have ended. */
  readonly onNoticesTaken: () => void;
}

export interface Loop {
  start(): void;
  /** Claims nothing more. Resolves when the current pass and the current health steps have ended. */
  stop(): Promise<void>;
  /** Something may be due. */
  wake(): void;
  /** A slot was freed: reason to claim only where there were too few. */
  wakeIfBacklogged(): void;
  /** An endpoint failed, whose next health step is due then. */
  noteFailure(noticeAt: number): void;
  /** For a call that makes deliveries, so that the first of them need no call of their own. `undefined` where no slot is free for them. */
  reserve(): Reservation | undefined;
  isRunning(): boolean;
  isTakingNotices(): boolean;
  isPassing(): boolean;
  /** Passes begun so far. */
  passCount(): number;
  /** Resolves when no pass is running or wanted. Rejects with the error of the last one. */
  passes(): Promise<void>;
  stats(): LoopStats;
}

/** How things stood when a claim was asked for. */
interface Asked {
  readonly request: ClaimRequest;
  readonly claimedAt: number;
  readonly freedBefore: number;
}

export function createLoop({
  store,
  clock,
  logger,
  telemetry,
  outage,
  leaseMs,
  flights,
  takeNotices,
  onNoticesTaken,
}: LoopContext): Loop {
  const worker = randomBytes(8).toString("hex");
  let isRunning = false;
  let unwatch = (): void => {};
  let tokenCount = 0;
  let passCount = 0;
  let failures = 0;
  let lastError: Error | undefined;
  /** When the last pass began or ended. Monotonic. */
  let turnAt = 0;
  /** When to look for due health steps next. */
  let noticesAt = 0;
  let notices: Promise<void> | undefined;
  let sleeping: { readonly timer: Timer; readonly until: number } | undefined;
  /** Whether the last claim left something that is due, for want of a slot: then a freed slot is reason to ask again. What becomes due otherwise, the store notifies of. */
  let hasBacklog = false;
  /** Whether something may be due that no pass has asked for yet. */
  let isWanted = false;
  let turning: Promise<void> | undefined;

  const wake = (): void => {
    isWanted = true;
    if (isRunning) turning ??= runPasses();
  };

  const wakeIfBacklogged = (): void => {
    if (hasBacklog && flights.hasRoom()) wake();
  };

  const sleepUntil = (at: number): void => {
    if (!isRunning || (sleeping && sleeping.until <= at)) return;
    clock.clearTimeout(sleeping?.timer);
    const timer = clock.setTimeout(() => {
      sleeping = undefined;
      wake();
    }, at - store.now());
    sleeping = { timer, until: at };
  };

  const notify = (at: number): void => {
    if (at <= store.now()) wake();
    else sleepUntil(at);
  };

  /** Runs beside the deliveries: a hook of the host that hangs holds up no claim. */
  const startNotices = (): void => {
    if (notices !== undefined) return;
    // What a failure reports while the storage is being asked counts too.
    noticesAt = Number.POSITIVE_INFINITY;
    notices = takeNotices()
      .catch((error: unknown) => {
        logger.error({ error }, "the storage could not be asked for due notices");
        return store.now() + MAX_RETRY_MS;
      })
      .then((nextAt) => {
        notices = undefined;
        onNoticesTaken();
        // Another process may have seen failures that this one never hears of.
        noticesAt = Math.min(noticesAt, nextAt ?? Number.POSITIVE_INFINITY, store.now() + store.maxSleepMs);
        notify(noticesAt);
      });
  };

  const ask = (room: FreeSlots): Asked => {
    const now = store.now();
    const request = { now, token: `${worker}.${++tokenCount}`, leaseUntil: now + leaseMs, room };
    return { request, claimedAt: clock.monotonic(), freedBefore: flights.freedCount() };
  };

  /** Takes over what was leased, and goes on where there was too little room, or sleeps. */
  const accept = async ({ claims, nextAt }: ClaimAnswer, asked: Asked): Promise<void> => {
    await flights.take(claims, asked.claimedAt);
    if (!isRunning) return;
    const { now } = asked.request;
    // Due by now, though perhaps not yet when it was asked for: settlements that were stored meanwhile count from a later time.
    hasBacklog = nextAt !== null && nextAt <= store.now();
    // A slot that was freed while the answer was on its way could not ask for itself: nobody knew yet that slots are short.
    if (claims.length > 0 || (nextAt ?? 0) > now || flights.freedCount() > asked.freedBefore)
      wakeIfBacklogged();
    const later = [nextAt, noticesAt].filter((at): at is number => at !== null && at > now);
    sleepUntil(Math.min(...later, now + store.maxSleepMs));
  };

  /** A claim that gave something is a span; thousands that found nothing are not. */
  const claim = async (request: ClaimRequest): Promise<ClaimAnswer> => {
    const at = telemetry === undefined ? 0 : clock.now();
    const answer = await store.claim(request);
    const { length } = answer.claims;
    if (telemetry === undefined || length === 0) return answer;
    const attributes = {
      "messaging.system": "postbell",
      "messaging.operation.name": "claim",
      "messaging.operation.type": "receive",
      "messaging.batch.message_count": length,
    };
    telemetry.begin?.({ name: "claim", kind: "consumer", at, attributes })?.end({ at: clock.now() });
    return answer;
  };

  /** One pass: everything that is due and has a slot is in flight after it. */
  const pass = async (): Promise<void> => {
    passCount += 1;
    if (noticesAt <= store.now()) startNotices();
    const room = flights.room();
    // Without room there is nothing to ask for: the flight that frees a slot wakes the loop.
    hasBacklog = room.fast + room.slow === 0;
    if (hasBacklog) return;
    const asked = ask(room);
    const answer = await claim(asked.request);
    outage.ended();
    await accept(answer, asked);
  };

  const runPasses = async (): Promise<void> => {
    turnAt = clock.monotonic();
    while (isWanted && isRunning) {
      // In a turn of the event loop of its own, so that all slots freed in this one are filled by one claim.
      await new Promise((resolve) => setImmediate(resolve));
      isWanted = false;
      if (!isRunning) break;
      try {
        await pass();
        failures = 0;
        lastError = undefined;
      } catch (error) {
        lastError = error instanceof Error ? error : new Error(String(error));
        logger.error({ error }, "the storage could not be asked for due deliveries");
        outage.failed();
        sleepUntil(store.now() + storageRetryDelayMs(failures++));
      }
      turnAt = clock.monotonic();
    }
    turning = undefined;
  };

  return Object.freeze<Loop>({
    wake,
    wakeIfBacklogged,

    start() {
      isRunning = true;
      turnAt = clock.monotonic();
      outage.ended();
      noticesAt = 0;
      unwatch = store.watch(notify);
      wake();
    },

    async stop() {
      isRunning = false;
      unwatch();
      clock.clearTimeout(sleeping?.timer);
      sleeping = undefined;
      await turning;
      await notices;
    },

    noteFailure(noticeAt) {
      noticesAt = Math.min(noticesAt, noticeAt);
    },

    reserve() {
      if (!isRunning || hasBacklog) return undefined;
      const room = flights.reserve();
      if (room === undefined) return undefined;
      const asked = ask(room);
      return {
        request: asked.request,
        end(claimed) {
          flights.endReservation(room);
          if (claimed) void accept(claimed, asked);
          // What is due and found no room here finds it in a pass.
          wakeIfBacklogged();
        },
      };
    },

    isRunning: () => isRunning,
    isTakingNotices: () => notices !== undefined,
    isPassing: () => turning !== undefined,
    passCount: () => passCount,

    async passes() {
      await turning;
      if (lastError !== undefined) throw lastError;
    },

    stats() {
      const until = turning === undefined ? sleeping?.until : undefined;
      return {
        isRunning,
        overdueMs: until === undefined ? clock.monotonic() - turnAt : Math.max(0, store.now() - until),
        isFull: turning === undefined && until === undefined,
        storageDownMs: outage.ms(),
      };
    },
  });
}
