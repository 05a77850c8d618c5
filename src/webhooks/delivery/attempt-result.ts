/** What follows from an attempt, or from its omission: the values that are settled. Pure. */

import type { OutboundResult } from "../../outbound/types.js";
import type { Attempt, Claim, Settlement } from "../store.js";
import type { NextStep } from "./back-off.js";

/** `now` is set when it is settled. */
export type AttemptResult = Omit<Settlement, "now"> & { now: number };

type Outcome = AttemptResult["outcome"];

export const DELIVERED: Outcome = Object.freeze({ state: "delivered" });

const NOTHING_SEEN = Object.freeze({ attempt: null, endpoint: null });

export const buildAttemptResult = (
  { id, webhook, token }: Claim,
  outcome: Outcome,
  startedAt: number | null,
  { attempt, endpoint }: Pick<Settlement, "attempt" | "endpoint"> = NOTHING_SEEN,
): AttemptResult => ({
  id,
  webhookId: webhook.id,
  account: webhook.account,
  token,
  now: 0,
  outcome,
  startedAt,
  attempt,
  endpoint,
});

/** Pending again at `next`, or failed where the schedule has no step left. */
export const retryOrFail = (next: NextStep | null, reason: string): Outcome =>
  next
    ? { state: "pending", step: next.step, dueAt: next.dueAt, postponed: 0, crashes: 0 }
    : { state: "failed", reason };

/**
 * Due again at `at`, with no step used up. An extra attempt that is postponed leaves the step its
 * own time. If the step is due first, the extra attempt is dropped.
 */
export const reschedule = (
  { step, isExtra, dueAt, postponed, crashes }: Claim,
  at: number,
): Extract<Outcome, { state: "pending" }> => ({
  state: "pending",
  step,
  dueAt: isExtra ? dueAt : at,
  extraAt: isExtra && at < dueAt ? at : null,
  postponed,
  crashes,
});

/** The first characters of a response, on one line. */
function excerptOf(body: Uint8Array, characters: number): string | null {
  if (characters === 0) return null;
  const text = new TextDecoder().decode(body.subarray(0, 4 * characters));
  const line = text.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return line.slice(0, characters) || null;
}

/** What an exchange says about the delivery: a 2xx, and only that, means received. */
export function toAttemptResult(
  result: OutboundResult,
  excerptCharacters: number,
): Pick<Attempt, "kind" | "status" | "code" | "excerpt"> {
  if (result.kind !== "response")
    return { kind: result.kind, status: null, code: result.code, excerpt: null };
  const { status, body } = result;
  if (status >= 200 && status <= 299)
    return { kind: "delivered", status, code: `HTTP_${status}`, excerpt: null };
  return { kind: "http", status, code: `HTTP_${status}`, excerpt: excerptOf(body, excerptCharacters) };
}
