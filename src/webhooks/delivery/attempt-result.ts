/** Builds the result of an attempt, or of a skipped attempt, in the form that is settled. Pure. */

import type { OutboundResult } from "../../outbound/types.js";
import type { Attempt, Claim, Settlement } from "../store.js";
import type { NextStep } from "./retry-schedule.js";

/** `now` is set when it is settled. */
export type AttemptResult = Omit<Settlement, "now"> & { now: number };

type Outcome = AttemptResult["outcome"];

export const DELIVERED: Outcome = Object.freeze({ state: "delivered" });

const NOT_ATTEMPTED = Object.freeze({ attempt: null, endpoint: null });

export const buildAttemptResult = (
  { id, webhook, token }: Claim,
  outcome: Outcome,
  startedAt: number | null,
  { attempt, endpoint }: Pick<Settlement, "attempt" | "endpoint"> = NOT_ATTEMPTED,
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

/** Pending until `next`, or failed if the schedule has no step left. */
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

/** Returns the first characters of a response, on one line. */
function toExcerpt(body: Uint8Array, characters: number): string | null {
  if (characters === 0) return null;
  const text = new TextDecoder().decode(body.subarray(0, 4 * characters));
  const line = text.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return line.slice(0, characters) || null;
}

/** Classifies the response of an endpoint: only a 2xx means that the delivery was received. */
export function classifyResponse(
  result: OutboundResult,
  excerptCharacters: number,
): Pick<Attempt, "kind" | "status" | "code" | "excerpt"> {
  if (result.kind !== "response")
    return { kind: result.kind, status: null, code: result.code, excerpt: null };
  const { status, body } = result;
  if (status >= 200 && status <= 299)
    return { kind: "delivered", status, code: `HTTP_${status}`, excerpt: null };
  return { kind: "http", status, code: `HTTP_${status}`, excerpt: toExcerpt(body, excerptCharacters) };
}
