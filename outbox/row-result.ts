/** What becomes of a row: decided from how often it was tried and how the last try ended, before anything is done about it. */

import { type ErrorCode, isPostbellError } from "../src/core/errors.js";
import { REMEMBER_MS } from "../src/webhooks/store.js";
import type { OutboxClaim } from "./outbox-source.js";

export type RowResult =
  | { readonly kind: "remove" }
  | { readonly kind: "retry"; readonly delayMs: number; readonly isUnsure: boolean; readonly error?: unknown }
  | { readonly kind: "park"; readonly reason: string };

const RETRY_MS = 1_000;
const MAX_RETRY_MS = 300_000;

/** A process that dies takes whatever it had under lease; this often in a row is no accident any more. */
const SUSPECT_CRASHES = 3;
const MAX_CRASHES = 20;

/**
 * An event that may have been emitted is emitted again only while the id is sure to be remembered, counted from before the first try. The hour is
 * more than a claim is old when it is emitted and more than the clocks of database and storage differ.
 */
const REPEATABLE_MS = REMEMBER_MS - 3_600_000;

/** Emitting this event again would end in the same way. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  "invalid_argument",
  "unknown_event_type",
  "event_too_large",
  "event_conflict",
]);

const MAX_REASON_CHARACTERS = 500;

/** Milliseconds until the next try after `failures` in a row: 1 s, doubling up to 5 minutes. */
export const rowRetryDelayMs = (failures: number): number => Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);

/** Claims before this one that ended without a word. */
const crashesOf = ({ claims, retries }: OutboxClaim): number => claims - 1 - retries;

/** Whether this row may be what kills the process: such rows are emitted one at a time. */
export const isPoison = (claim: OutboxClaim): boolean => crashesOf(claim) >= SUSPECT_CRASHES;

/** What becomes of a row without a try: `undefined` where it is to be emitted. */
export function beforeEmit(claim: OutboxClaim): RowResult | undefined {
  if (claim.unsureMs !== null && claim.unsureMs >= REPEATABLE_MS)
    return {
      kind: "park",
      reason: "unsure: it may have been emitted, so long ago that emitting it again could add a second event",
    };
  if (crashesOf(claim) >= MAX_CRASHES)
    return { kind: "park", reason: `crashed: ${MAX_CRASHES} claims in a row ended without a word` };
  return undefined;
}

/** What becomes of a row whose emit was refused, or failed. */
export function afterFailure(claim: OutboxClaim, error: unknown): RowResult {
  if (isPostbellError(error) && REFUSALS.has(error.code)) {
    // A message may quote what the host gave, and not every database takes every character.
    const reason = `${error.code}: ${error.message}`.replace(/[^ -~]/g, "?");
    return { kind: "park", reason: reason.slice(0, MAX_REASON_CHARACTERS) };
  }
  // A full storage has stored nothing; of every other failure that is not known.
  const isUnsure = !isPostbellError(error, "storage_full") || claim.unsureMs !== null;
  return { kind: "retry", delayMs: rowRetryDelayMs(claim.retries), isUnsure, error };
}
