/** Makes one delivery attempt, from a claim to its result: permission, body, signature, request. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { type Span, seconds, type Telemetry } from "../../core/telemetry.js";
import { toLabel } from "../../core/telemetry-labels.js";
import type { OutboundResult, Send } from "../../outbound/types.js";
import { type PreparedEvent, readPayload } from "../events/notification.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Attempt, Claim } from "../store.js";
import { createRequestBuilder } from "./attempt-request.js";
import type { Flight } from "./flight.js";
import {
  type AttemptResult,
  buildAttemptResult,
  classifyResponse,
  evaluateAttempt,
  isTest,
  type OutcomeRules,
  postponeAttempt,
  skipAttempt,
} from "./outcome.js";
import { createPermissions, type Permission } from "./permission.js";
import type { Schedule } from "./retry-schedule.js";
import { beginAttempt, spanOutcome } from "./spans.js";

/**
 * Returns the result to settle, or `null` if the claim must be left to its lease. Returns a promise
 * only if it has to wait. Throws or rejects only for a defect of Postbell itself.
 */
export type MakeAttempt = (flight: Flight) => AttemptResult | null | Promise<AttemptResult | null>;

/**
 * A claim is not sent if its lease could end before the deadline of the attempt plus this margin.
 * So a process that was paused does not send a delivery that another process has taken over.
 */
const FENCE_MARGIN_MS = 5_000;

const ALL_ALLOWED: readonly boolean[] = [true];

/** Returns `null` if the stored text is not an event: a retry would not change that. */
function readEvent({ event: { account, id, payload } }: Claim, logger: Logger): PreparedEvent | null {
  try {
    return readPayload(payload);
  } catch (error) {
    logger.error({ account, event: id, error }, "a stored event cannot be read");
    return null;
  }
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

export function createAttempts({
  settings,
  schedule,
  clock,
  now: storeNow,
  logger,
  send,
  telemetry,
}: {
  readonly settings: WebhooksSettings;
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** The storage's time, which the schedule uses. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly send: Send;
  readonly telemetry: Telemetry | undefined;
}): MakeAttempt {
  const { access, delivery, retry, limits, health } = settings;
  const { slowAfterMs, excerptCharacters } = delivery;
  const random = (): number => clock.random();
  const rules: OutcomeRules = { retry, schedule, health, slowAfterMs, excerptCharacters, random };
  const maxHeldMs = delivery.leaseMs - delivery.deadlineMs - FENCE_MARGIN_MS;
  const permissionFor = createPermissions({ access, hookMs: limits.hookMs, clock, logger });
  const buildRequest = createRequestBuilder(settings, clock);

  const attempt: MakeAttempt = (flight) => {
    const { claim } = flight;
    const now = storeNow();
    const startedAt = claim.startedAt ?? now;
    const skipped = skipAttempt(claim, { startedAt, now }, rules);
    if (skipped !== undefined) return skipped;
    const event = readEvent(claim, logger);
    if (event === null)
      return buildAttemptResult(claim, { state: "failed", reason: "payload_unreadable" }, startedAt);
    const { subscriberId, account } = claim.webhook;
    const permission = isTest(claim) ? ALL_ALLOWED : permissionFor({ id: subscriberId, account }, event);
    return permission instanceof Promise
      ? permission.then((allowed) => proceed(flight, event, allowed, startedAt))
      : proceed(flight, event, permission, startedAt);
  };

  const proceed = (
    flight: Flight,
    event: PreparedEvent,
    allowed: Permission,
    startedAt: number,
  ): AttemptResult | null | Promise<AttemptResult> => {
    const { claim } = flight;
    if (flight.isCancelled) return null;
    if (allowed === null) return postponeAttempt(claim, { startedAt, now: storeNow() }, rules);
    // The first entry is the event's own record.
    if (allowed[0] !== true)
      return buildAttemptResult(claim, { state: "withheld", reason: "access_denied" }, startedAt);
    if (clock.monotonic() - flight.claimedAt > maxHeldMs) return null;
    return exchange(flight, event, allowed, startedAt);
  };

  const exchange = (
    flight: Flight,
    event: PreparedEvent,
    allowed: readonly boolean[],
    startedAt: number,
  ): Promise<AttemptResult> => {
    const { claim } = flight;
    flight.isSent = true;
    const sentAt = storeNow();
    const request = buildRequest(claim, event, allowed, sentAt);
    const beganAt = clock.monotonic();
    const span = telemetry && beginAttempt(telemetry, clock, claim, event);
    const pending = span === undefined ? send(request) : span.run(() => send(request));
    return pending.then((response) => {
      const made: Attempt = {
        at: sentAt,
        durationMs: Math.max(0, Math.round(clock.monotonic() - beganAt)),
        step: claim.step,
        isExtra: claim.isExtra,
        ...classifyResponse(response, excerptCharacters),
      };
      if (telemetry !== undefined) reportAttempt(telemetry, flight, made, span);
      return conclude(flight, made, response, startedAt);
    });
  };

  const reportAttempt = (
    attemptTelemetry: Telemetry,
    { claim: { lane, isExtra, dueAt }, isCancelled }: Flight,
    made: Attempt,
    span: Span | undefined,
  ): void => {
    if (isCancelled && made.kind !== "delivered") {
      // A stopping process cut the attempt off: this is no information about the endpoint.
      span?.end({ at: clock.now(), error: "cancelled" });
      return;
    }
    attemptTelemetry.record("attemptDuration", seconds(made.durationMs), { outcome: made.kind, lane });
    if (!isExtra) attemptTelemetry.record("attemptLag", seconds(made.at - dueAt), { lane });
    span?.end({ at: clock.now(), ...spanOutcome(made) });
  };

  const conclude = (
    { claim, isCancelled }: Flight,
    made: Attempt,
    response: OutboundResult,
    startedAt: number,
  ): AttemptResult => {
    const times = { startedAt, now: storeNow() };
    const result = evaluateAttempt(claim, { attempt: made, response }, times, rules);
    // An attempt that a stopping process cut off is made again.
    if (made.kind !== "delivered" && !isCancelled) logFailure(logger, claim, made, result.outcome);
    return result;
  };

  return attempt;
}
