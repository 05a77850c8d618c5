/** The loop that keeps deliveries moving: claim what is due while there are free slots, attempt it, settle it, sleep until more is due. */

import { randomBytes } from "node:crypto";
import type { Clock, Timer } from "../../clock.js";
import { createDeadlines } from "../../deadlines.js";
import { PostbellError } from "../../errors.js";
import type { Logger } from "../../logger.js";
import type { Telemetry } from "../../telemetry.js";
import type { ReadSettings } from "../options.js";
import type { Claim, ClaimRequest, Lane, WebhookStore } from "../store.js";
import { type AttemptControl, putOff, type Verdict } from "./attempt.js";
import { crashDelayMs } from "./back-off.js";
import { createClaimsAhead } from "./claims-ahead.js";
import { createSlots, type Slot } from "./slots.js";

export interface DispatcherContext {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: ReadSettings;
  readonly attempt: (claim: Claim, control: AttemptControl) => Verdict | null | Promise<Verdict | null>;
  /** Called when nothing is under way any more. */
  readonly onQuiet: () => void;
  /** Takes the health steps that are due; resolves with when the next one is, `null` where none waits. */
  readonly takeNotices: () => Promise<number | null>;
  readonly telemetry: Telemetry | undefined;
}

/** Slots kept free for a claim that another call of the store carries. */
export interface Reservation {
  readonly request: ClaimRequest;
  /** Has to be called once the other call has ended, with what it leased, if anything. */
  end(claimed: ClaimAnswer | undefined): void;
}

type ClaimAnswer = Awaited<ReturnType<WebhookStore["claim"]>>;

export interface Dispatcher {
  /** For a call that makes deliveries, so that the first of them need no call of their own. `undefined` where no slot is free for them. */
  reserve(): Reservation | undefined;
  start(): void;
  /** Claims nothing more, lets what is under way end within `graceMs`, then gives the rest up to its lease. Resolves in every case. */
  stop(graceMs: number): Promise<void>;
  /** Resolves once nothing is due and nothing under way. Rejects with `not_started`, or with the error of a storage that is away. */
  idle(): Promise<void>;
  /** How many deliveries are under way. */
  inFlight(): number;
  vitals(): Vitals;
}

/** How the loop is doing. */
export interface Vitals {
  readonly isRunning: boolean;
  /** Milliseconds since the turn began that is under way, or should have begun: next to nothing while all is well. */
  readonly overdueMs: number;
  /** Whether it is freed slots that the next turn waits for: then `overdueMs` counts from the last one. */
  readonly isFull: boolean;
  /** Milliseconds for which every claim and every report has failed; 0 where the last one did not. */
  readonly storageAwayMs: number;
}

/** How things stood when a claim was asked for. */
interface Asked {
  readonly now: number;
  readonly claimedAt: number;
  readonly freedBefore: number;
}

interface Flight {
  readonly claim: Claim;
  readonly control: AttemptControl;
  readonly done: Promise<void>;
}

/** After a failed call of the storage the loop asks again after this, doubling up to the second figure: a healed storage is noticed within it. */
const RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/**
 * A delivery whose lease ran out this often without a word may be what kills the process, and takes those with it that are under way beside it.
 * Of such ones a process attempts one at a time and gives the others back, so that only the guilty one is there when it dies.
 */
const SUSPECT_CRASHES = 3;
const SUSPECT_DELAY_MS = 1_000;

/** Most slots of a lane that one emit holds while it is stored: as many as an account has ENABLED webhooks. */
const MOST_RESERVED = 15;

const retryDelayMs = (failures: number): number => Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);

export function createDispatcher({
  store,
  clock,
  logger,
  settings: { delivery, retry },
  attempt,
  onQuiet,
  takeNotices,
  telemetry,
}: DispatcherContext): Dispatcher {
  const worker = randomBytes(8).toString("hex");
  const slowMarks = createDeadlines(clock);
  const slots = createSlots({ fast: delivery.concurrency, slow: delivery.slowConcurrency });
  const flights = new Set<Flight>();
  /** Leased and not attempted yet, for want of a slot. */
  const ahead = createClaimsAhead(delivery.concurrency);
  /** Attempts that are over and not recorded yet hold no slot, and must stay few where the storage is slow. */
  const mostFlights = 2 * (delivery.concurrency + delivery.slowConcurrency);

  let isRunning = false;
  let unwatch = (): void => {};
  /** Slots that were freed so far. */
  let freed = 0;
  let tokenCount = 0;
  let passCount = 0;
  /** Slots that reservations hold. */
  const reserved: Record<Lane, number> = { fast: 0, slow: 0 };
  let failures = 0;
  /** When the last pass began or ended. Monotonic, as the next. */
  let turnAt = 0;
  /** Of the first claim or report that failed after the last one that did not: a loop that is full asks for nothing by itself. */
  let awaySince: number | undefined;
  let lastError: Error | undefined;
  /** When to look for due health steps next. */
  let noticesAt = 0;
  let notices: Promise<void> | undefined;
  let sleeping: { readonly timer: Timer; readonly until: number } | undefined;
  /** Whether the last claim left something that is due, for want of a slot: then a freed slot is reason to ask again. What becomes due otherwise, the store hints at. */
  let isShort = false;
  /** Whether something may be due that no pass has asked for yet. */
  let isWanted = false;
  /** The passes under way, one after another while another one is wanted. */
  let loop: Promise<void> | undefined;
  /** Callers of idle() that wait for everything under way to end. */
  const waiting: (() => void)[] = [];

  const isBusy = (): boolean => flights.size > 0 || ahead.size() > 0 || notices !== undefined;

  const tellIfQuiet = (): void => {
    if (flights.size === 0 && ahead.size() === 0) onQuiet();
    if (!isBusy()) for (const resolve of waiting.splice(0)) resolve();
  };

  /** True where a pass has room to claim for: of a freed slot that a waiting claim takes, the storage need not hear. */
  const hasRoom = (): boolean => {
    if (flights.size >= mostFlights) return false;
    const { fast, slow } = freeRoom();
    return fast + slow + ahead.room() > 0;
  };

  const wakeIfShort = (): void => {
    if (isShort && hasRoom()) wake();
  };

  const wake = (): void => {
    isWanted = true;
    if (isRunning) loop ??= runPasses();
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

  const hint = (at: number): void => {
    if (at <= store.now()) wake();
    else sleepUntil(at);
  };

  /** Ends of the pauses under way: a process that stops does not wait for them. */
  const pauses = new Set<() => void>();
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clock.clearTimeout(timer);
        pauses.delete(end);
        resolve();
      };
      const timer = clock.setTimeout(end, ms);
      pauses.add(end);
    });

  /** Settles, trying again while the storage is away. */
  const settle = async (verdict: Verdict, control: AttemptControl): Promise<void> => {
    for (let tries = 0; ; tries++) {
      try {
        const result = await store.settle(Object.assign(verdict, { now: store.now() }));
        awaySince = undefined;
        if (result === "stale")
          logger.warn({ delivery: verdict.id }, "a report came after its lease and was dropped");
        const { endpoint, outcome } = verdict;
        if (telemetry !== undefined && result === "settled" && outcome.state !== "pending") {
          const reason = "reason" in outcome ? outcome.reason : "";
          telemetry.record("deliveriesEnded", 1, { state: outcome.state, reason });
        }
        if (endpoint && !endpoint.ok) noticesAt = Math.min(noticesAt, endpoint.noticeAt);
        return;
      } catch (error) {
        logger.warn({ delivery: verdict.id, error }, "an outcome could not be stored");
        awaySince ??= clock.monotonic();
        // A 2xx stays true after the lease, so it goes on trying; what failed is for the next claim to find out.
        const isOver = clock.monotonic() - control.claimedAt > delivery.leaseMs;
        if (control.isCancelled || (isOver && verdict.outcome.state !== "delivered")) return;
        await pause(retryDelayMs(tries));
        if (control.isCancelled) return;
      }
    }
  };

  const carryOut = async (claim: Claim, control: AttemptControl, slot: Slot): Promise<void> => {
    const slowMark =
      claim.lane === "fast"
        ? slowMarks.add(clock.monotonic() + delivery.slowAfterMs, () => {
            slot.slowDown();
            startWaiting();
            wake();
          })
        : undefined;
    try {
      const verdict = await attempt(claim, control);
      control.isOver = true;
      // The connection is free; recording what came of it may take a while and needs no slot.
      slot.leave();
      freed += 1;
      startWaiting();
      wakeIfShort();
      // Given up by stop(): the lease decides, since a failure of a destroyed connection proves nothing. A 2xx is true all the same.
      if (verdict && (!control.isCancelled || verdict.outcome.state === "delivered"))
        await settle(verdict, control);
    } catch (error) {
      // A defect, not an outcome: the lease runs out, and the crash rules hold the delivery back.
      logger.error({ delivery: claim.id, error }, "an attempt failed unexpectedly");
    } finally {
      slowMarks.remove(slowMark);
      slot.leave();
    }
  };

  /** One that is held back for its crashes is not attempted now, and can do no harm. */
  const isSuspect = ({ crashes, isRecovered }: Claim): boolean =>
    crashes >= SUSPECT_CRASHES && !(isRecovered && crashDelayMs(crashes, retry) > 0);
  const isSuspectUnderWay = ({ claim, control }: Flight): boolean => !control.isOver && isSuspect(claim);

  const freeRoom = (): Record<Lane, number> => {
    const { fast, slow } = slots.room();
    return { fast: Math.max(0, fast - reserved.fast), slow: Math.max(0, slow - reserved.slow) };
  };

  const claimRequest = (room: Readonly<Record<Lane, number>>): ClaimRequest => {
    const now = store.now();
    return { now, token: `${worker}.${++tokenCount}`, leaseUntil: now + delivery.leaseMs, room };
  };

  const launch = (claim: Claim, claimedAt: number): void => {
    const control: AttemptControl = { claimedAt, isCancelled: false, isSent: false, isOver: false };
    const flight: Flight = {
      claim,
      control,
      done: carryOut(claim, control, slots.enter(claim.lane)).then(() => {
        flights.delete(flight);
        startWaiting();
        tellIfQuiet();
        wakeIfShort();
      }),
    };
    flights.add(flight);
  };

  const launchOrKeep = (claim: Claim, claimedAt: number): void => {
    const hasSlot = claim.lane === "slow" || (ahead.size() === 0 && freeRoom().fast > 0);
    if (hasSlot) launch(claim, claimedAt);
    else ahead.add({ claim, claimedAt });
  };

  /** Fills freed slots with claims that wait. One that has waited for half its lease is released, so that it is not sent after it. */
  const startWaiting = (): void => {
    while (isRunning && flights.size < mostFlights && freeRoom().fast > 0) {
      const waiting = ahead.next();
      if (waiting === undefined) return;
      if (clock.monotonic() - waiting.claimedAt > delivery.leaseMs / 2) void release(waiting.claim);
      else launch(waiting.claim, waiting.claimedAt);
    }
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
        tellIfQuiet();
        // Another process may have seen failures that this one never hears of.
        noticesAt = Math.min(noticesAt, nextAt ?? Number.POSITIVE_INFINITY, store.now() + store.maxSleepMs);
        hint(noticesAt);
      });
  };

  /** Gives a claim back that no attempt was made for: due again at once, or after `delayMs`. */
  const release = async (claim: Claim, delayMs = 0): Promise<void> => {
    const now = store.now();
    const { id, token, startedAt } = claim;
    const settlement = {
      id,
      webhookId: claim.webhook.id,
      account: claim.webhook.account,
      token,
      now,
      outcome: putOff(claim, now + Math.round(delayMs)),
      startedAt,
      attempt: null,
      endpoint: null,
    };
    await store.settle(settlement).catch((error: unknown) => {
      logger.warn({ delivery: id, error }, "a claim could not be released; its lease will end it");
    });
  };

  /** Takes over what was leased: all of it is under way after this, and the loop goes on where there was too little room, or sleeps. */
  const accept = async (
    { claims, nextAt }: ClaimAnswer,
    { now, claimedAt, freedBefore }: Asked,
  ): Promise<void> => {
    if (!isRunning) {
      await Promise.all(claims.map((claim) => release(claim)));
      return;
    }
    const suspects = claims.filter(isSuspect);
    for (const claim of claims) if (!suspects.includes(claim)) launchOrKeep(claim, claimedAt);
    const isFree = suspects[0] !== undefined && freeRoom()[suspects[0].lane] > 0;
    const chosen = !isFree || [...flights].some(isSuspectUnderWay) ? undefined : suspects[0];
    const others = suspects.filter((claim) => claim !== chosen);
    // Stored before the chosen one is attempted: if that ends the process, the others must not count it as their crash again and again.
    await Promise.all(others.map((claim) => release(claim, SUSPECT_DELAY_MS * (1 + clock.random()))));
    if (chosen !== undefined && isRunning) launch(chosen, claimedAt);
    else if (chosen !== undefined) await release(chosen);
    // Due by now, though perhaps not yet when it was asked for: reports that were stored meanwhile count from a later time.
    isShort = nextAt !== null && nextAt <= store.now();
    // A slot that was freed while the answer was on its way could not ask for itself: nobody knew yet that slots are short.
    if (claims.length > 0 || (nextAt ?? 0) > now || freed > freedBefore) wakeIfShort();
    const later = [nextAt, noticesAt].filter((at): at is number => at !== null && at > now);
    sleepUntil(Math.min(...later, now + store.maxSleepMs));
  };

  /** One pass: everything that is due and has a slot is under way after it. */
  const pass = async (): Promise<void> => {
    passCount += 1;
    if (noticesAt <= store.now()) startNotices();
    const free = freeRoom();
    const room = { fast: free.fast + ahead.room(), slow: free.slow };
    // Without room there is nothing to ask for: the flight that frees a slot wakes the loop.
    isShort = room.fast + room.slow === 0 || flights.size >= mostFlights;
    if (isShort) return;
    const request = claimRequest(room);
    const asked = { now: request.now, claimedAt: clock.monotonic(), freedBefore: freed };
    const answer = telemetry === undefined ? await store.claim(request) : await claimTold(request);
    awaySince = undefined;
    await accept(answer, asked);
  };

  /** A claim that gave something is a span; thousands that found nothing are not. */
  const claimTold = async (request: ClaimRequest): Promise<ClaimAnswer> => {
    const at = clock.now();
    const answer = await store.claim(request);
    const { length } = answer.claims;
    if (length === 0) return answer;
    const attributes = {
      "messaging.system": "postbell",
      "messaging.operation.name": "claim",
      "messaging.operation.type": "receive",
      "messaging.batch.message_count": length,
    };
    telemetry?.begin?.({ name: "claim", kind: "consumer", at, attributes })?.end({ at: clock.now() });
    return answer;
  };

  const reserve = (): Reservation | undefined => {
    if (!isRunning || isShort || ahead.size() > 0 || flights.size >= mostFlights) return undefined;
    const { fast, slow } = freeRoom();
    const room = { fast: Math.min(fast, MOST_RESERVED), slow: Math.min(slow, MOST_RESERVED) };
    if (room.fast + room.slow === 0) return undefined;
    reserved.fast += room.fast;
    reserved.slow += room.slow;
    const request = claimRequest(room);
    const asked = { now: request.now, claimedAt: clock.monotonic(), freedBefore: freed };
    return {
      request,
      end(claimed) {
        reserved.fast -= room.fast;
        reserved.slow -= room.slow;
        if (claimed) void accept(claimed, asked);
        startWaiting();
        // What is due and found no room here finds it in a pass.
        wakeIfShort();
      },
    };
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
        awaySince ??= clock.monotonic();
        sleepUntil(store.now() + retryDelayMs(failures++));
      }
      turnAt = clock.monotonic();
    }
    loop = undefined;
  };

  return Object.freeze<Dispatcher>({
    reserve,

    start() {
      if (isRunning) return;
      isRunning = true;
      turnAt = clock.monotonic();
      awaySince = undefined;
      noticesAt = 0;
      unwatch = store.watch(hint);
      wake();
    },

    async stop(graceMs) {
      if (!isRunning) return;
      isRunning = false;
      unwatch();
      clock.clearTimeout(sleeping?.timer);
      sleeping = undefined;
      let timer: Timer | undefined;
      const grace = new Promise<void>((resolve) => {
        timer = clock.setTimeout(resolve, graceMs);
      });
      const released = ahead.drain().map(({ claim }) => release(claim));
      const landed = Promise.resolve(loop).then(() =>
        Promise.all([notices, ...released, ...[...flights].map(({ done }) => done)]),
      );
      await Promise.race([landed, grace]);
      clock.clearTimeout(timer);
      const left = [...flights];
      for (const { control } of left) control.isCancelled = true;
      for (const end of pauses) end();
      await Promise.all(left.filter(({ control }) => !control.isSent).map(({ claim }) => release(claim)));
    },

    async idle() {
      for (;;) {
        if (!isRunning) {
          throw new PostbellError(
            "not_started",
            "idle() waits for deliveries, and nobody makes any: call start() first.",
          );
        }
        const before = passCount;
        wake();
        await loop;
        if (lastError !== undefined) throw lastError;
        if (isBusy()) await new Promise<void>((resolve) => waiting.push(resolve));
        else if (loop === undefined && passCount > before) return;
      }
    },

    inFlight: () => flights.size,

    vitals() {
      const now = clock.monotonic();
      const until = loop === undefined ? sleeping?.until : undefined;
      return {
        isRunning,
        overdueMs: until === undefined ? now - turnAt : Math.max(0, store.now() - until),
        isFull: loop === undefined && until === undefined,
        storageAwayMs: awaySince === undefined ? 0 : now - awaySince,
      };
    },
  });
}
