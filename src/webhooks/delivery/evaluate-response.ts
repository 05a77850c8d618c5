/** Turns the response of an endpoint into the result of an attempt, and reports it to telemetry. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { seconds, type Telemetry } from "../../core/telemetry.js";
import { toLabel } from "../../core/telemetry-labels.js";
import type { OutboundResult } from "../../outbound/types.js";
import type { WebhooksSettings } from "../settings/settings.js";
import { type Attempt, type Claim, type EndpointReport, TEST_FAILED } from "../store.js";
import {
  type AttemptResult,
  buildAttemptResult,
  classifyResponse,
  DELIVERED,
  retryOrFail,
} from "./attempt-result.js";
import { type AttemptSchedule, isTest } from "./attempt-schedule.js";
import { spanOutcome } from "./attempt-span.js";
import { warningDueAt } from "./endpoint-health.js";
import type { Flight } from "./flight.js";
import { toLoggedAttempt } from "./logged-attempt.js";
import { parseRetryAfter } from "./retry-schedule.js";

export interface ResponseEvaluatorContext {
  readonly settings: Pick<WebhooksSettings, "delivery" | "health">;
  readonly attemptSchedule: AttemptSchedule;
  readonly clock: Clock;
  /** The storage's time. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly telemetry: Telemetry | undefined;
}

/** Statuses whose `Retry-After` may delay the next attempt (RFC 9110 §15.6.4, RFC 6585 §4). */
const RETRY_AFTER_STATUSES: ReadonlySet<number> = new Set([429, 503]);

function reportAttempt(
  telemetry: Telemetry,
  clock: Clock,
  { claim, isCancelled, sentAt, span }: Flight,
  attempt: Attempt,
): void {
  if (isCancelled && attempt.kind !== "delivered") {
    // A stopping process cut the attempt off: this is no information about the endpoint.
    span?.end({ at: clock.now(), error: "cancelled" });
    return;
  }
  const { lane, isExtra, dueAt } = claim;
  telemetry.record("attemptDuration", seconds(attempt.durationMs), { outcome: attempt.kind, lane });
  if (!isExtra) telemetry.record("attemptLag", seconds(sentAt - dueAt), { lane });
  span?.end({ at: clock.now(), ...spanOutcome(attempt) });
}

/**
 * Logs a failed attempt for the operator, with details of the name's lookup that the storage and
 * the subscriber must not get.
 */
function logFailure(
  logger: Logger,
  claim: Claim,
  { kind, status, code }: Attempt,
  outcome: AttemptResult["outcome"],
): void {
  const { id, webhook } = claim;
  const fields = {
    account: webhook.account,
    webhook: webhook.id,
    delivery: id,
    kind,
    status,
    code: toLabel(code, kind),
  };
  if (outcome.state === "pending") {
    const nextAttemptAt = new Date(outcome.dueAt).toISOString();
    logger.info({ ...fields, nextAttemptAt }, "a delivery attempt failed");
  } else if (isTest(claim)) {
    logger.info(fields, "a test failed");
  } else {
    logger.warn(fields, "the last attempt of a delivery failed");
  }
}

export type EvaluateResponse = (flight: Flight, result: OutboundResult) => AttemptResult;

export function createResponseEvaluator({
  settings: { delivery, health },
  attemptSchedule,
  clock,
  now: storeNow,
  logger,
  telemetry,
}: ResponseEvaluatorContext): EvaluateResponse {
  return (flight, result) => {
    const { claim, sentAt: at, startedAt } = flight;
    const { webhook, step, isExtra } = claim;
    const durationMs = Math.max(0, Math.round(clock.monotonic() - flight.sentAtMonotonic));
    const now = storeNow();
    const { kind, status, code, excerpt } = classifyResponse(result, delivery.excerptCharacters);
    const seen: Attempt = { at, durationMs, step, isExtra, kind, status, code, excerpt };
    if (telemetry !== undefined) reportAttempt(telemetry, clock, flight, seen);
    const attempt = toLoggedAttempt(seen);
    const endpoint: EndpointReport = {
      ok: kind === "delivered",
      generation: webhook.generation,
      at: now,
      noticeAt: warningDueAt(now, health),
      lane: durationMs > delivery.slowAfterMs ? "slow" : "fast",
    };
    if (kind === "delivered") return buildAttemptResult(claim, DELIVERED, startedAt, { attempt, endpoint });
    const retryAfterMs =
      result.kind === "response" && RETRY_AFTER_STATUSES.has(result.status)
        ? parseRetryAfter(result.headers["retry-after"], now)
        : null;
    const next = attemptSchedule.findNextStep(claim, startedAt, now, retryAfterMs);
    const outcome = retryOrFail(next, isTest(claim) ? TEST_FAILED : "exhausted");
    // An attempt that a stopping process cut off is made again.
    if (!flight.isCancelled) logFailure(logger, claim, seen, outcome);
    const report = isTest(claim) ? null : endpoint;
    return buildAttemptResult(claim, outcome, startedAt, { attempt, endpoint: report });
  };
}
