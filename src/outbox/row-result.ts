/** Decides if a row is emitted, retried, parked or removed. Pure. */

import { type ErrorCode, isPostbellError } from "../core/errors.js";
import { REMEMBER_MS } from "../webhooks/store.js";
import type { OutboxClaim } from "./outbox-source.js";

export type RowResult =
  | { readonly kind: "remove" }
  | { readonly kind: "retry"; readonly delayMs: number; readonly isUnsure: boolean; readonly error?: unknown }
  | { readonly kind: "park"; readonly reason: string };

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
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  "invalid_argument",
  "unknown_event_type",
  "event_too_large",
  "event_conflict",
]);

const MAX_REASON_CHARACTERS = 500;

/** Returns the delay before the next try: 1 s after the first failure, doubled up to 5 minutes. */
export const rowRetryDelayMs = (failures: number): number => Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);

/** Counts earlier claims without a result, because their process crashed. */
const countCrashes = ({ claims, retries }: OutboxClaim): number => claims - 1 - retries;

/** True if this row may crash the process. Such rows are emitted one at a time. */
export const isPoison = (claim: OutboxClaim): boolean => countCrashes(claim) >= POISON_CRASHES;

/** Decides about a row before a try. Returns `undefined` if its event is to be emitted. */
export function beforeEmit(claim: OutboxClaim): RowResult | undefined {
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
export function afterFailure(claim: OutboxClaim, error: unknown): RowResult {
  if (isPostbellError(error) && REFUSALS.has(error.code)) {
    // A message may quote the event, and not every database accepts every character.
    const reason = `${error.code}: ${error.message}`.replace(/[^ -~]/g, "?");
    return { kind: "park", reason: reason.slice(0, MAX_REASON_CHARACTERS) };
  }
  // A full storage has stored nothing. After any other failure, the result is unknown.
  const isUnsure = !isPostbellError(error, "storage_full") || claim.unsureMs !== null;
  return { kind: "retry", delayMs: rowRetryDelayMs(claim.retries), isUnsure, error };
}
