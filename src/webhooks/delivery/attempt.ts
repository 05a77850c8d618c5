/** Makes one delivery attempt, from a claim to its result: permission, body, signature, request. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { Send } from "../../outbound/types.js";
import { type PreparedEvent, readPayload } from "../events/notification.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Claim } from "../store.js";
import { createRequestBuilder } from "./attempt-request.js";
import { type AttemptResult, buildAttemptResult } from "./attempt-result.js";
import { createAttemptSchedule, isTest } from "./attempt-schedule.js";
import { beginAttempt } from "./attempt-span.js";
import { createResponseEvaluator } from "./evaluate-response.js";
import type { Flight } from "./flight.js";
import { createPermissions, type Permission } from "./permission.js";
import type { Schedule } from "./retry-schedule.js";

export interface AttemptContext {
  readonly settings: WebhooksSettings;
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** The storage's time, which the schedule uses. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly send: Send;
  readonly telemetry: Telemetry | undefined;
}

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
function prepareEvent({ event: { account, id, payload } }: Claim, logger: Logger): PreparedEvent | null {
  try {
    return readPayload(payload);
  } catch (error) {
    logger.error({ account, event: id, error }, "a stored event cannot be read");
    return null;
  }
}

export function createAttempts(context: AttemptContext): MakeAttempt {
  const { settings, schedule, clock, now: storeNow, logger, send, telemetry } = context;
  const { access, delivery, retry, limits } = settings;
  const maxHeldMs = delivery.leaseMs - delivery.deadlineMs - FENCE_MARGIN_MS;
  const permissionFor = createPermissions({ access, hookMs: limits.hookMs, clock, logger });
  const buildRequest = createRequestBuilder(settings, clock);
  const attemptSchedule = createAttemptSchedule(retry, schedule, clock);
  const conclude = createResponseEvaluator({
    settings,
    attemptSchedule,
    clock,
    now: storeNow,
    logger,
    telemetry,
  });

  const exchange = (
    flight: Flight,
    event: PreparedEvent,
    allowed: readonly boolean[],
  ): Promise<AttemptResult> => {
    const { claim } = flight;
    flight.isSent = true;
    flight.sentAt = storeNow();
    const request = buildRequest(claim, event, allowed, flight.sentAt);
    flight.sentAtMonotonic = clock.monotonic();
    const span = telemetry && beginAttempt(telemetry, clock, claim, event);
    flight.span = span;
    const response = span === undefined ? send(request) : span.run(() => send(request));
    return response.then((result) => conclude(flight, result));
  };

  const proceed = (
    flight: Flight,
    event: PreparedEvent,
    allowed: Permission,
  ): AttemptResult | null | Promise<AttemptResult> => {
    const { claim, startedAt } = flight;
    if (flight.isCancelled) return null;
    if (allowed === null) return attemptSchedule.postpone(claim, startedAt, storeNow());
    // The first entry is the event's own record.
    if (allowed[0] !== true)
      return buildAttemptResult(claim, { state: "withheld", reason: "access_denied" }, startedAt);
    if (clock.monotonic() - flight.claimedAt > maxHeldMs) return null;
    return exchange(flight, event, allowed);
  };

  return (flight) => {
    const { claim } = flight;
    const now = storeNow();
    flight.startedAt = claim.startedAt ?? now;
    const skipped = attemptSchedule.skip(claim, flight.startedAt, now);
    if (skipped !== undefined) return skipped;
    const event = prepareEvent(claim, logger);
    if (event === null)
      return buildAttemptResult(claim, { state: "failed", reason: "payload_unreadable" }, flight.startedAt);
    if (isTest(claim)) return proceed(flight, event, ALL_ALLOWED);
    const { subscriberId, account } = claim.webhook;
    const permission = permissionFor({ id: subscriberId, account }, event);
    return permission instanceof Promise
      ? permission.then((allowed) => proceed(flight, event, allowed))
      : proceed(flight, event, permission);
  };
}
