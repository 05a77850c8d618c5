/**
 * Moves rows from the source to Postbell, one pass at a time: claims, emits, records the results.
 */

import type { Clock } from "../core/clock.js";
import { type ErrorCode, isPostbellError } from "../core/errors.js";
import type { Logger } from "../core/logger.js";
import { REMEMBER_MS } from "../webhooks/store.js";
import { toEvent } from "./event-row.js";
import type { Emitter } from "./options.js";
import type { OutboxClaim, OutboxSource } from "./outbox-source.js";

/**
 * Progress of a pass. `moved`: at least one row was finished, or no row was due. `full`: no row was
 * finished because storage is full, perhaps for one account only, so other rows need not wait.
 * `failed`: no row was finished, for unknown reasons.
 */
export type PassProgress = "moved" | "full" | "failed";

export interface PassResult {
  /** Rows that were due and are leased now. */
  count: number;
  /** True if more rows may be due. */
  isFull: boolean;
  progress: PassProgress;
  /** Set if the claim failed. */
  error?: unknown;
}

export interface RowMover {
  runPass: () => Promise<PassResult>;
  /** Number of consecutive passes that failed. */
  countFailures: () => number;
  countEmitted: () => { emitted: number; duplicates: number };
}

/** An outage of the source is logged this often. */
const LOG_EVERY_MS = 60_000;

type ClaimResult = readonly [claim: OutboxClaim, result: RowResult];

export function createRowMover({
  webhooks,
  source,
  logger,
  clock,
  batch,
  leaseMs,
}: {
  webhooks: Emitter;
  source: OutboxSource;
  logger: Logger;
  clock: Clock;
  batch: number;
  leaseMs: number;
}): RowMover {
  let emitted = 0;
  let duplicates = 0;
  let failures = 0;
  const outage = createOutageLog(logger, clock);

  const emit = async (claim: OutboxClaim): Promise<void> => {
    const { duplicate } = await webhooks.emit(toEvent(claim));
    emitted += 1;
    if (duplicate) duplicates += 1;
  };

  /** Emits a row, unless its result is known already. Never rejects. */
  const process = async (claim: OutboxClaim, until: number): Promise<RowResult> => {
    const outcome = beforeEmit(claim);
    if (outcome) return outcome;
    // The lease has ended while this process was paused or busy. Another one may have the row.
    if (clock.monotonic() >= until) return { kind: "retry", delayMs: 0, isUnsure: claim.unsureMs !== null };
    return emit(claim).then(
      () => ({ kind: "remove" }),
      (error: unknown) => afterFailure(claim, error),
    );
  };

  const settle = async (results: readonly ClaimResult[]): Promise<void> => {
    const done = results.filter(([, { kind }]) => kind === "remove").map(([{ key }]) => key);
    if (done.length > 0) await source.remove(done);
    for (const [{ key, id, claims }, result] of results) {
      if (result.kind === "retry") {
        const { delayMs, isUnsure } = result;
        await source.retry({ key, claims, delayMs, isUnsure });
      } else if (result.kind === "park") {
        const { reason } = result;
        logger.error(
          { event: id, row: key, reason },
          "an event is parked: it is not retried until release()",
        );
        await source.park({ key, claims, reason });
      }
    }
  };

  /** Emits rows concurrently and records their results. */
  const move = async (claims: OutboxClaim[], until: number): Promise<PassProgress> => {
    const results = await Promise.all(
      claims.map(async (claim) => [claim, await process(claim, until)] as const),
    );
    const errors = results.flatMap(([, result]) => (result.kind === "retry" ? [result.error] : []));
    if (errors.length > 0)
      logger.warn(
        { events: errors.length, error: errors[0] },
        "events could not be emitted; they are retried later",
      );
    try {
      await settle(results);
    } catch (error) {
      // The rows become due when their leases end. Postbell knows emitted events by their ids.
      logger.error({ error }, "the source could not record the results of its events");
      return "failed";
    }
    if (errors.length < results.length) return "moved";
    return errors.every((error) => isPostbellError(error, "storage_full")) ? "full" : "failed";
  };

  const moveAll = async (claims: OutboxClaim[], until: number): Promise<PassProgress> => {
    if (claims.length === 0) return "moved";
    const moved: PassProgress[] = [];
    const others = claims.filter((claim) => !isPoison(claim));
    if (others.length > 0) moved.push(await move(others, until));
    // One at a time, in random order. A row that crashes the process then does not take the same
    // rows with it every time.
    for (const poison of shuffle(claims.filter(isPoison), clock)) moved.push(await move([poison], until));
    return (["moved", "failed"] as const).find((one) => moved.includes(one)) ?? "full";
  };

  return {
    async runPass() {
      // After a failure, one row is enough to test the storage, and leaves only one result unsure.
      const limit = failures > 0 ? 1 : batch;
      const until = clock.monotonic() + leaseMs;
      let claims: OutboxClaim[];
      try {
        claims = await source.claim({ limit, leaseMs });
        outage.end();
      } catch (error) {
        outage.note(error);
        failures += 1;
        return { count: 0, isFull: false, progress: "failed", error };
      }
      const progress = await moveAll(claims, until);
      failures = progress === "failed" ? failures + 1 : 0;
      return { count: claims.length, isFull: claims.length === limit, progress };
    },
    countFailures: () => failures,
    countEmitted: () => ({ emitted, duplicates }),
  };
}

/** Logs an outage of the source when it begins, each minute, and when it is over. */
function createOutageLog(logger: Logger, clock: Clock) {
  let outage: { since: number; failed: number; loggedAt: number } | undefined;
  return {
    note(error: unknown): void {
      const now = clock.monotonic();
      const isFirst = outage === undefined;
      outage ??= { since: now, failed: 0, loggedAt: now };
      outage.failed += 1;
      if (!isFirst && now - outage.loggedAt < LOG_EVERY_MS) return;
      outage.loggedAt = now;
      const fields = { error, forMs: Math.round(now - outage.since), failed: outage.failed };
      logger.error(fields, "the source could not be queried for due events");
    },
    end(): void {
      if (outage === undefined) return;
      const forMs = Math.round(clock.monotonic() - outage.since);
      logger.warn({ forMs, failed: outage.failed }, "the source can be queried again");
      outage = undefined;
    },
  };
}

function shuffle<T>(items: T[], clock: Clock): T[] {
  return items
    .map((item) => ({ item, place: clock.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

// Decides if a row is emitted, retried, parked or removed. Pure.

type RowResult =
  | { kind: "remove" }
  | { kind: "retry"; delayMs: number; isUnsure: boolean; error?: unknown }
  | { kind: "park"; reason: string };

const RETRY_MS = 1_000;
const MAX_RETRY_MS = 300_000;

/** A process that dies leaves all its leased rows. So many crashes in a row are no coincidence. */
const POISON_CRASHES = 3;
const MAX_CRASHES = 20;

/**
 * An event that may have been emitted is emitted again only while Postbell remembers its id for
 * certain, counted from before the first try. The hour is longer than the age of a claim when its
 * event is emitted, plus the difference between the clocks of database and storage.
 */
const REPEATABLE_MS = REMEMBER_MS - 3_600_000;

/** Errors that every further try would cause again. */
const REFUSALS: Set<ErrorCode> = new Set([
  "invalid_argument",
  "unknown_event_type",
  "event_too_large",
  "event_conflict",
]);

/** Errors of events that were not stored, so that a later try may store them. */
const NOTHING_STORED: Set<ErrorCode> = new Set(["storage_full", "schema_unavailable"]);

const MAX_REASON_CHARACTERS = 500;

/** Returns the delay before the next try: 1 s after the first failure, doubled up to 5 minutes. */
export const rowRetryDelayMs = (failures: number): number => Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);

/** Counts earlier claims without a result, because their process crashed. */
const countCrashes = ({ claims, retries }: OutboxClaim): number => claims - 1 - retries;

/** True if this row may crash the process. Such rows are emitted one at a time. */
const isPoison = (claim: OutboxClaim): boolean => countCrashes(claim) >= POISON_CRASHES;

/** Decides about a row before a try. Returns `undefined` if its event is to be emitted. */
function beforeEmit(claim: OutboxClaim): RowResult | undefined {
  if (claim.unsureMs !== null && claim.unsureMs >= REPEATABLE_MS)
    return {
      kind: "park",
      reason:
        "unsure: it may have been emitted, but so long ago that emitting it again could add a second event",
    };
  if (countCrashes(claim) >= MAX_CRASHES)
    return { kind: "park", reason: `crashed: ${MAX_CRASHES} claims in a row had no result` };
  return undefined;
}

/** Decides about a row whose event was refused or could not be emitted. */
function afterFailure(claim: OutboxClaim, error: unknown): RowResult {
  if (isPostbellError(error) && REFUSALS.has(error.code)) {
    // A message may quote the event, and not every database accepts every character.
    const reason = `${error.code}: ${error.message}`.replace(/[^ -~]/g, "?");
    return { kind: "park", reason: reason.slice(0, MAX_REASON_CHARACTERS) };
  }
  // After any other failure, the result is unknown.
  const isRefused = isPostbellError(error) && NOTHING_STORED.has(error.code);
  const isUnsure = !isRefused || claim.unsureMs !== null;
  return { kind: "retry", delayMs: rowRetryDelayMs(claim.retries), isUnsure, error };
}
