/** One delivery attempt, from a claim to its result: permission, bytes, signature, exchange, result. */

import { type Clock, withTimeout } from "../../clock.js";
import type { Logger } from "../../logger.js";
import type { OutboundRequest, OutboundResult, Send } from "../../outbound/types.js";
import { type Span, seconds, serverOf, type Telemetry, wordOr } from "../../telemetry.js";
import { TEST_EVENT_TYPE } from "../catalogue.js";
import { type PreparedEvent, readPayload } from "../notification.js";
import type { ReadSettings, Subscriber } from "../options.js";
import { signatureHeader, standardHeaders } from "../signature.js";
import type { Attempt, Claim, EndpointReport, Settlement, WebhookRecord } from "../store.js";
import {
  accessDelayMs,
  crashDelayMs,
  type NextStep,
  nextStep,
  parseRetryAfter,
  type Schedule,
} from "./back-off.js";
import type { Flight } from "./flight.js";
import { warningDueAt } from "./health.js";
import { toLoggedAttempt } from "./logged-attempt.js";

export interface AttemptContext {
  readonly settings: ReadSettings;
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** The storage's time, which the schedule runs on. */
  readonly now: () => number;
  readonly logger: Logger;
  readonly send: Send;
  readonly telemetry: Telemetry | undefined;
}

/** What an attempt says of its delivery. `now` is set when it is settled. */
export type AttemptResult = Omit<Settlement, "now"> & { now: number };

const DELIVERED: AttemptResult["outcome"] = Object.freeze({ state: "delivered" });
const NOTHING_SEEN = Object.freeze({ attempt: null, endpoint: null });

/** What is known of an exchange before its result. */
interface Exchange {
  /** The storage's time when the request was made. */
  readonly at: number;
  /** The same, monotonic. */
  readonly began: number;
  readonly startedAt: number;
  readonly span: Span | undefined;
}

/** A claim is not sent on any more when its lease could end before its deadline: pauses of the process are fenced off here. */
const FENCE_MARGIN_MS = 5_000;

/** The secret that signs now: during a rotation the old one, until the subscriber has had time to learn the new one. */
const signingSecret = (webhook: WebhookRecord, now: number): string =>
  webhook.previousSecret !== null && webhook.rotateAt !== null && now < webhook.rotateAt
    ? webhook.previousSecret
    : webhook.secret;

/** The first characters of an answer, on one line. */
function excerptOf(body: Uint8Array, characters: number): string | null {
  if (characters === 0) return null;
  const text = new TextDecoder().decode(body.subarray(0, 4 * characters));
  const line = text.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return line.slice(0, characters) || null;
}

/** What an exchange says about the delivery: a 2xx, and only that, means received. Pure. */
export function judge(
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

/**
 * Due again at `at`, with no step used up. A put-off extra attempt leaves the step its own time, and is dropped where that comes first:
 * the step's attempt stands for it.
 */
export const reschedule = (
  { step, isExtra, dueAt, postponed, crashes }: Claim,
  at: number,
): Extract<AttemptResult["outcome"], { state: "pending" }> => ({
  state: "pending",
  step,
  dueAt: isExtra ? dueAt : at,
  extraAt: isExtra && at < dueAt ? at : null,
  postponed,
  crashes,
});

/** `url` is not among the attributes: hosts of subscribers put secrets into paths and queries. */
const beginAttempt = (
  telemetry: Telemetry,
  clock: Clock,
  { id, webhook, lane, step, isExtra }: Claim,
  { id: eventId, type, trace }: PreparedEvent,
): Span | undefined =>
  telemetry.begin?.({
    name: "attempt",
    kind: "client",
    at: clock.now(),
    link: trace,
    attributes: {
      "messaging.system": "postbell",
      "messaging.operation.name": "attempt",
      "messaging.operation.type": "send",
      "messaging.destination.name": type,
      "messaging.message.id": eventId,
      "http.request.method": "POST",
      ...serverOf(webhook.url),
      "postbell.delivery.id": id,
      "postbell.lane": lane,
      "postbell.step": step,
      "postbell.extra": isExtra,
    },
  });

/** What a span tells of an exchange. The code of a host's own `send` may be any text. */
const spanOutcome = ({ kind, status, code }: Pick<Attempt, "kind" | "status" | "code">) => ({
  attributes: {
    "postbell.outcome": kind,
    ...(status === null ? {} : { "http.response.status_code": status }),
  },
  error: kind === "delivered" ? undefined : status === null ? wordOr(code, kind) : String(status),
});

/** Which answers may put a retry off with `Retry-After` (RFC 9110 §15.6.4, RFC 6585 §4). */
const ASKS_TO_WAIT: ReadonlySet<number> = new Set([429, 503]);

/**
 * Its answer is asked for now: it is attempted once. It holds no record that `canRead` could be asked about, and one that fails says nothing of the endpoint's health,
 * since no retry follows that could show the endpoint well again.
 */
const isTest = ({ event }: Claim): boolean => event.type === TEST_EVENT_TYPE;

/** `null` where the host gave no usable answer. */
type Permission = readonly boolean[] | null;

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
}: AttemptContext) {
  const { access, delivery, retry, signature, health, limits } = settings;
  /** `null` where the stored text is no event: then it never will be. */
  const prepare = ({ event: { account, id, payload } }: Claim): PreparedEvent | null => {
    try {
      return readPayload(payload);
    } catch (error) {
      logger.error({ account, event: id, error }, "a stored event cannot be read");
      return null;
    }
  };

  /** Asks `canRead` for each entry. Without promises where the host answers at once. */
  const permission = (
    subscriber: Subscriber,
    { entries }: PreparedEvent,
  ): Permission | Promise<Permission> => {
    const isAnswered = (answers: readonly unknown[]): answers is readonly boolean[] =>
      answers.every((answer) => typeof answer === "boolean");
    const fail = (error: unknown): null => {
      logger.warn(
        { account: subscriber.account, error },
        "access.canRead gave no answer; the delivery waits",
      );
      return null;
    };
    const answers: unknown[] = [];
    try {
      for (const entry of entries) answers.push(access.canRead(subscriber, entry.resource()));
      if (isAnswered(answers)) return answers;
      return withTimeout(clock, limits.hookMs, Promise.all(answers), () => new Error("timeout")).then(
        (settled) => (isAnswered(settled) ? settled : fail(new TypeError("neither true nor false"))),
        fail,
      );
    } catch (error) {
      // Those asked before the one that threw may reject yet, and nobody would hear it: that ends a process.
      void Promise.allSettled(answers);
      return fail(error);
    }
  };

  const settle = (
    claim: Claim,
    outcome: AttemptResult["outcome"],
    startedAt: number | null,
    { attempt, endpoint }: Pick<Settlement, "attempt" | "endpoint"> = NOTHING_SEEN,
  ): AttemptResult => ({
    id: claim.id,
    webhookId: claim.webhook.id,
    account: claim.webhook.account,
    token: claim.token,
    now: 0,
    outcome,
    startedAt,
    attempt,
    endpoint,
  });

  /** Pending again at `next`, or failed where the schedule has no step left. */
  const retryOrFail = (next: NextStep | null, reason: string): AttemptResult["outcome"] =>
    next
      ? { state: "pending", step: next.step, dueAt: next.dueAt, postponed: 0, crashes: 0 }
      : { state: "failed", reason };

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
    if (now >= windowEnd) return settle(claim, { state: "failed", reason: "access_unknown" }, startedAt);
    const { postponed } = claim;
    const at = Math.min(now + accessDelayMs(postponed), windowEnd);
    return settle(claim, { ...reschedule(claim, at), postponed: postponed + 1 }, startedAt);
  };

  /** What an exchange says about the delivery and its endpoint. */
  const conclude = (
    { claim, isCancelled }: Flight,
    { at, began, startedAt, span }: Exchange,
    result: OutboundResult,
  ): AttemptResult => {
    const { webhook } = claim;
    const durationMs = Math.max(0, Math.round(clock.monotonic() - began));
    const now = storeNow();
    const { kind, status, code, excerpt } = judge(result, delivery.excerptCharacters);
    const isOk = kind === "delivered";
    if (isCancelled && !isOk) {
      // What a process cuts off as it stops says nothing of the endpoint.
      span?.end({ at: clock.now(), error: "cancelled" });
    } else if (telemetry !== undefined) {
      telemetry.record("attemptDuration", seconds(durationMs), { outcome: kind, lane: claim.lane });
      if (!claim.isExtra) telemetry.record("attemptLag", seconds(at - claim.dueAt), { lane: claim.lane });
      span?.end({ at: clock.now(), ...spanOutcome({ kind, status, code }) });
    }
    const { step, isExtra } = claim;
    const seen: Attempt = { at, durationMs, step, isExtra, kind, status, code, excerpt };
    const attempt = toLoggedAttempt(seen);
    if (attempt !== seen) {
      const word = wordOr(code, kind);
      logger.info(
        { account: webhook.account, webhook: webhook.id, kind, code: word },
        "an endpoint's host has no address that may be used",
      );
    }
    const endpoint: EndpointReport = {
      ok: isOk,
      generation: webhook.generation,
      at: now,
      noticeAt: warningDueAt(now, health),
      lane: durationMs > delivery.slowAfterMs ? "slow" : "fast",
    };
    if (isOk) return settle(claim, DELIVERED, startedAt, { attempt, endpoint });
    const retryAfterMs =
      result.kind === "response" && ASKS_TO_WAIT.has(result.status)
        ? parseRetryAfter(result.headers["retry-after"], now)
        : null;
    const outcome = retryOrFail(following(claim, startedAt, now, retryAfterMs), "exhausted");
    return settle(claim, outcome, startedAt, { attempt, endpoint: isTest(claim) ? null : endpoint });
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
    startedAt: number,
  ): Promise<AttemptResult> => {
    const { claim } = flight;
    const at = storeNow();
    const request = requestFor(claim, event, allowed, at);
    const began = clock.monotonic();
    const span = telemetry && beginAttempt(telemetry, clock, claim, event);
    const answer = span === undefined ? send(request) : span.run(() => send(request));
    return answer.then((result) => conclude(flight, { at, began, startedAt, span }, result));
  };

  const proceed = (
    flight: Flight,
    event: PreparedEvent,
    allowed: Permission,
    startedAt: number,
  ): AttemptResult | null | Promise<AttemptResult> => {
    const { claim } = flight;
    if (flight.isCancelled) return null;
    if (allowed === null) return postpone(claim, startedAt, storeNow());
    if (allowed[0] !== true) return settle(claim, { state: "withheld", reason: "access_denied" }, startedAt);
    const heldMs = clock.monotonic() - flight.claimedAt;
    if (heldMs > delivery.leaseMs - delivery.deadlineMs - FENCE_MARGIN_MS) return null;
    flight.isSent = true;
    return exchange(flight, event, allowed, startedAt);
  };

  const attempt = (flight: Flight): AttemptResult | null | Promise<AttemptResult | null> => {
    const { claim } = flight;
    const now = storeNow();
    const startedAt = claim.startedAt ?? now;
    const { webhook } = claim;

    const heldBackMs = claim.isRecovered ? crashDelayMs(claim.crashes, retry) : 0;
    if (heldBackMs > 0) {
      const isOver = now >= startedAt + retry.windowMs;
      const outcome = isOver
        ? ({ state: "failed", reason: "crashed" } as const)
        : reschedule(claim, now + heldBackMs);
      return settle(claim, outcome, startedAt);
    }
    if (webhook.status === "DISABLED") {
      return settle(claim, retryOrFail(following(claim, startedAt, now, null), "disabled"), startedAt);
    }
    const event = prepare(claim);
    if (event === null) return settle(claim, { state: "failed", reason: "payload_unreadable" }, startedAt);
    if (isTest(claim)) return proceed(flight, event, [true], startedAt);
    const asked = permission({ id: webhook.subscriberId, account: webhook.account }, event);
    return asked instanceof Promise
      ? asked.then((allowed) => proceed(flight, event, allowed, startedAt))
      : proceed(flight, event, asked, startedAt);
  };

  return attempt;
}
