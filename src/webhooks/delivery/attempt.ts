/** One delivery attempt, from a claim to its result: permission, bytes, signature, exchange, result. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { seconds, type Telemetry, toLabel } from "../../core/telemetry.js";
import type { OutboundRequest, OutboundResult, Send } from "../../outbound/types.js";
import { signatureHeader, standardHeaders } from "../../signature/signature.js";
import { TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { type PreparedEvent, readPayload } from "../events/notification.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Attempt, Claim, EndpointReport, WebhookRecord } from "../store.js";
import {
  type AttemptResult,
  completeDelivery,
  DELIVERED,
  reschedule,
  retryOrFail,
  toAttemptResult,
} from "./attempt-result.js";
import { beginAttempt, spanOutcome } from "./attempt-span.js";
import {
  accessDelayMs,
  crashDelayMs,
  type NextStep,
  nextStep,
  parseRetryAfter,
  type Schedule,
} from "./back-off.js";
import { warningDueAt } from "./endpoint-health.js";
import type { Flight } from "./flight.js";
import { toLoggedAttempt } from "./logged-attempt.js";
import { createPermissions, type Permission } from "./permission.js";

export interface AttemptContext {
  readonly settings: WebhooksSettings;
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** The storage's time, which the schedule runs on. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly send: Send;
  readonly telemetry: Telemetry | undefined;
}

/** A claim is not sent on any more when its lease could end before its deadline: pauses of the process are fenced off here. */
const FENCE_MARGIN_MS = 5_000;

/** Which answers may put a retry off with `Retry-After` (RFC 9110 §15.6.4, RFC 6585 §4). */
const ASKS_TO_WAIT: ReadonlySet<number> = new Set([429, 503]);

/** The secret that signs now: during a rotation the old one, until the subscriber has had time to learn the new one. */
const signingSecret = (webhook: WebhookRecord, now: number): string =>
  webhook.previousSecret !== null && webhook.rotateAt !== null && now < webhook.rotateAt
    ? webhook.previousSecret
    : webhook.secret;

/**
 * Its answer is asked for now: it is attempted once. It holds no record that `canRead` could be asked about, and one that fails says nothing of the endpoint's health,
 * since no retry follows that could show the endpoint well again.
 */
const isTest = ({ event }: Claim): boolean => event.type === TEST_EVENT_TYPE;

/**
 * Makes the function that carries an attempt out. It gives what to settle, or `null` where the claim must be left to its lease: at once where
 * nothing has to be waited for. It throws or rejects only for a defect of Postbell itself.
 */
export function createAttempts({
  settings,
  schedule,
  clock,
  now: storeNow,
  logger,
  send,
  telemetry,
}: AttemptContext): (flight: Flight) => AttemptResult | null | Promise<AttemptResult | null> {
  const { access, delivery, retry, signature, health, limits } = settings;
  const permissionFor = createPermissions({ access, hookMs: limits.hookMs, clock, logger });

  /** `null` where the stored text is no event: then it never will be. */
  const prepare = ({ event: { account, id, payload } }: Claim): PreparedEvent | null => {
    try {
      return readPayload(payload);
    } catch (error) {
      logger.error({ account, event: id, error }, "a stored event cannot be read");
      return null;
    }
  };

  const following = (
    claim: Claim,
    startedAt: number,
    now: number,
    retryAfterMs: number | null,
  ): NextStep | null => {
    if (isTest(claim)) return null;
    if (claim.isExtra) return { step: claim.step, dueAt: claim.dueAt };
    return nextStep({
      policy: retry,
      schedule,
      startedAt,
      step: claim.step,
      now,
      random: () => clock.random(),
      retryAfterMs,
    });
  };

  const postpone = (claim: Claim, startedAt: number, now: number): AttemptResult => {
    const windowEnd = startedAt + retry.windowMs;
    if (now >= windowEnd)
      return completeDelivery(claim, { state: "failed", reason: "access_unknown" }, startedAt);
    const { postponed } = claim;
    const at = Math.min(now + accessDelayMs(postponed), windowEnd);
    return completeDelivery(claim, { ...reschedule(claim, at), postponed: postponed + 1 }, startedAt);
  };

  const reportTelemetry = ({ claim, isCancelled, sentAt, span }: Flight, seen: Attempt): void => {
    if (isCancelled && seen.kind !== "delivered") {
      // What a process cuts off as it stops says nothing of the endpoint.
      span?.end({ at: clock.now(), error: "cancelled" });
      return;
    }
    const { lane, isExtra, dueAt } = claim;
    telemetry?.record("attemptDuration", seconds(seen.durationMs), { outcome: seen.kind, lane });
    if (!isExtra) telemetry?.record("attemptLag", seconds(sentAt - dueAt), { lane });
    span?.end({ at: clock.now(), ...spanOutcome(seen) });
  };

  /** The attempt as it is stored. A difference to what was seen is told to the host alone. */
  const toStored = ({ account, id }: WebhookRecord, seen: Attempt): Attempt => {
    const stored = toLoggedAttempt(seen);
    if (stored !== seen) {
      const { kind, code } = seen;
      logger.info(
        { account, webhook: id, kind, code: toLabel(code, kind) },
        "an endpoint's host has no address that may be used",
      );
    }
    return stored;
  };

  /** What an exchange says about the delivery and its endpoint. */
  const conclude = (flight: Flight, result: OutboundResult): AttemptResult => {
    const { claim, sentAt: at, startedAt } = flight;
    const { webhook, step, isExtra } = claim;
    const durationMs = Math.max(0, Math.round(clock.monotonic() - flight.sentAtMonotonic));
    const now = storeNow();
    const { kind, status, code, excerpt } = toAttemptResult(result, delivery.excerptCharacters);
    const seen: Attempt = { at, durationMs, step, isExtra, kind, status, code, excerpt };
    if (telemetry !== undefined) reportTelemetry(flight, seen);
    const attempt = toStored(webhook, seen);
    const endpoint: EndpointReport = {
      ok: kind === "delivered",
      generation: webhook.generation,
      at: now,
      noticeAt: warningDueAt(now, health),
      lane: durationMs > delivery.slowAfterMs ? "slow" : "fast",
    };
    if (kind === "delivered") return completeDelivery(claim, DELIVERED, startedAt, { attempt, endpoint });
    const retryAfterMs =
      result.kind === "response" && ASKS_TO_WAIT.has(result.status)
        ? parseRetryAfter(result.headers["retry-after"], now)
        : null;
    const outcome = retryOrFail(following(claim, startedAt, now, retryAfterMs), "exhausted");
    return completeDelivery(claim, outcome, startedAt, {
      attempt,
      endpoint: isTest(claim) ? null : endpoint,
    });
  };

  const requestFor = (
    { webhook, event: { id } }: Claim,
    event: PreparedEvent,
    allowed: readonly boolean[],
    at: number,
  ): OutboundRequest => {
    const body = event.body({
      form: settings.body,
      topic: webhook.id,
      allowed: allowed.every(Boolean) ? null : allowed,
      eventIdField: delivery.eventIdField,
    });
    const timestamp = Math.floor(clock.now() / 1000);
    const secret = signingSecret(webhook, at);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "user-agent": "Postbell",
      [signature.header]: signatureHeader({ secret, timestamp, body }),
    };
    if (signature.standardWebhooks) Object.assign(headers, standardHeaders({ secret, id, timestamp, body }));
    return {
      url: webhook.url,
      method: "POST",
      headers,
      body,
      deadlineMs: delivery.deadlineMs,
      maxBodyBytes: delivery.maxResponseBytes,
    };
  };

  const exchange = (
    flight: Flight,
    event: PreparedEvent,
    allowed: readonly boolean[],
  ): Promise<AttemptResult> => {
    const { claim } = flight;
    flight.sentAt = storeNow();
    const request = requestFor(claim, event, allowed, flight.sentAt);
    flight.sentAtMonotonic = clock.monotonic();
    const span = telemetry && beginAttempt(telemetry, clock, claim, event);
    flight.span = span;
    const answer = span === undefined ? send(request) : span.run(() => send(request));
    return answer.then((result) => conclude(flight, result));
  };

  const proceed = (
    flight: Flight,
    event: PreparedEvent,
    allowed: Permission,
  ): AttemptResult | null | Promise<AttemptResult> => {
    const { claim, startedAt } = flight;
    if (flight.isCancelled) return null;
    if (allowed === null) return postpone(claim, startedAt, storeNow());
    if (allowed[0] !== true)
      return completeDelivery(claim, { state: "withheld", reason: "access_denied" }, startedAt);
    const heldMs = clock.monotonic() - flight.claimedAt;
    if (heldMs > delivery.leaseMs - delivery.deadlineMs - FENCE_MARGIN_MS) return null;
    flight.isSent = true;
    return exchange(flight, event, allowed);
  };

  /** What is settled where no attempt may be made now. */
  const withoutAttempt = (claim: Claim, startedAt: number, now: number): AttemptResult | undefined => {
    const heldBackMs = claim.isRecovered ? crashDelayMs(claim.crashes, retry) : 0;
    if (heldBackMs > 0) {
      const isOver = now >= startedAt + retry.windowMs;
      const outcome = isOver
        ? ({ state: "failed", reason: "crashed" } as const)
        : reschedule(claim, now + heldBackMs);
      return completeDelivery(claim, outcome, startedAt);
    }
    if (claim.webhook.status !== "DISABLED") return undefined;
    return completeDelivery(
      claim,
      retryOrFail(following(claim, startedAt, now, null), "disabled"),
      startedAt,
    );
  };

  return (flight) => {
    const { claim } = flight;
    const now = storeNow();
    flight.startedAt = claim.startedAt ?? now;
    const ended = withoutAttempt(claim, flight.startedAt, now);
    if (ended !== undefined) return ended;
    const event = prepare(claim);
    if (event === null)
      return completeDelivery(claim, { state: "failed", reason: "payload_unreadable" }, flight.startedAt);
    if (isTest(claim)) return proceed(flight, event, [true]);
    const { subscriberId, account } = claim.webhook;
    const asked = permissionFor({ id: subscriberId, account }, event);
    return asked instanceof Promise
      ? asked.then((allowed) => proceed(flight, event, allowed))
      : proceed(flight, event, asked);
  };
}
