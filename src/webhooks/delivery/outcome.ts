/**
 * Decides what becomes of a claimed delivery: delivered, due again later, withheld or failed. Pure.
 */

import { isResolverOutage } from "../../outbound/failure.js";
import type { OutboundResult } from "../../outbound/types.js";
import { TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { type Attempt, type Claim, type EndpointReport, type Settlement, TEST_FAILED } from "../store.js";
import { type HealthPolicy, warningDueAt } from "./endpoint-health.js";
import {
  crashDelayMs,
  type NextStep,
  nextStep,
  parseRetryAfter,
  postponeDelayMs,
  type RetryPolicy,
  type Schedule,
} from "./retry-schedule.js";

/** The result of a claim. The time of its settlement completes it. */
export type AttemptResult = Omit<Settlement, "now">;

type Outcome = AttemptResult["outcome"];

/** The host's options that decide about deliveries. */
export interface OutcomeRules {
  retry: RetryPolicy;
  schedule: Schedule;
  health: HealthPolicy;
  /** An attempt that takes longer puts its endpoint in the slow lane. */
  slowAfterMs: number;
  /** Characters of a failed response that are kept. */
  excerptCharacters: number;
  random: () => number;
}

/** Times of the storage: when the first attempt of the delivery began, and now. */
export interface AttemptTimes {
  startedAt: number;
  now: number;
}

const DELIVERED: Outcome = Object.freeze({ state: "delivered" });
const NOT_ATTEMPTED = Object.freeze({ attempt: null, endpoint: null });

interface AttemptedSettlement {
  attempt: Settlement["attempt"];
  endpoint: Settlement["endpoint"];
}

export const buildAttemptResult = (
  { id, webhook, token }: Claim,
  outcome: Outcome,
  startedAt: number | null,
  { attempt, endpoint }: AttemptedSettlement = NOT_ATTEMPTED,
): AttemptResult => ({
  id,
  webhookId: webhook.id,
  account: webhook.account,
  token,
  outcome,
  startedAt,
  attempt,
  endpoint,
});

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

/** Pending until `next`, or failed if the schedule has no step left. */
const retryOrFail = (next: NextStep | null, reason: string): Outcome =>
  next === null
    ? { state: "failed", reason }
    : { state: "pending", step: next.step, dueAt: next.dueAt, postponed: 0, crashes: 0 };

/**
 * A test is attempted once, because its sender waits for the result. It contains no record, so
 * `canRead` is not called. A failed test does not count for the health of the endpoint: no retry
 * follows that could show that the endpoint works again.
 */
export const isTest = ({ event }: Claim): boolean => event.type === TEST_EVENT_TYPE;

/**
 * A delivery whose lease expired this often without a settlement may be poison: it crashes the
 * process, and with it all deliveries in flight.
 */
const POISON_CRASHES = 3;

/** Milliseconds for which a delivery that was just taken over from a crash is quarantined. */
const quarantineMs = ({ isRecovered, crashes }: Claim, retry: RetryPolicy): number =>
  isRecovered ? crashDelayMs(crashes, retry) : 0;

/** A quarantined delivery is not attempted now, so it can do no harm. */
export const isPoisonClaim = (claim: Claim, retry: RetryPolicy): boolean =>
  claim.crashes >= POISON_CRASHES && quarantineMs(claim, retry) === 0;

/** Returns the step after this attempt, or `null` if there is no further attempt. */
function findNextStep(
  claim: Claim,
  { startedAt, now }: AttemptTimes,
  { retry: policy, schedule, random }: OutcomeRules,
  retryAfterMs: number | null,
): NextStep | null {
  if (isTest(claim)) return null;
  const { step, isExtra, dueAt } = claim;
  if (isExtra) return { step, dueAt };
  return nextStep({ policy, schedule, startedAt, step, now, random, retryAfterMs });
}

/**
 * Returns the result of a delivery that must not be attempted now: quarantined, or of a DISABLED
 * webhook. Otherwise `undefined`.
 */
export function skipAttempt(
  claim: Claim,
  times: AttemptTimes,
  rules: OutcomeRules,
): AttemptResult | undefined {
  const { startedAt, now } = times;
  const pauseMs = quarantineMs(claim, rules.retry);
  if (pauseMs > 0) {
    const isOver = now >= startedAt + rules.retry.windowMs;
    const outcome = isOver
      ? ({ state: "failed", reason: "crashed" } as const)
      : reschedule(claim, now + pauseMs);
    return buildAttemptResult(claim, outcome, startedAt);
  }
  if (claim.webhook.status !== "DISABLED") return undefined;
  return buildAttemptResult(
    claim,
    retryOrFail(findNextStep(claim, times, rules, null), "disabled"),
    startedAt,
  );
}

/**
 * Reschedules a delivery because `canRead` or `delivery.headers` gave no usable result. Fails it
 * after the retry window.
 */
export function postponeAttempt(
  claim: Claim,
  { startedAt, now }: AttemptTimes,
  { retry }: OutcomeRules,
): AttemptResult {
  const windowEnd = startedAt + retry.windowMs;
  if (now >= windowEnd) {
    const failed = { state: "failed", reason: isTest(claim) ? TEST_FAILED : "access_unknown" } as const;
    return buildAttemptResult(claim, failed, startedAt);
  }
  const { postponed } = claim;
  const at = Math.min(now + postponeDelayMs(postponed), windowEnd);
  return buildAttemptResult(claim, { ...reschedule(claim, at), postponed: postponed + 1 }, startedAt);
}

/**
 * Reschedules a delivery until the resolver, or the storage of the data keys, is back, as long as
 * that takes: like an outage of the storage, it uses up no step. Its start is moved by the time
 * that it waits, so that it uses up no part of the retry window either. An extra attempt leaves the
 * schedule as it is.
 *
 * @param sentAt when the attempt began.
 */
export function waitOutOutage(claim: Claim, sentAt: number, now: number): AttemptResult {
  const { postponed, startedAt, isExtra } = claim;
  const at = now + postponeDelayMs(postponed);
  const movedTo = startedAt === null || isExtra ? startedAt : startedAt + at - sentAt;
  return buildAttemptResult(claim, { ...reschedule(claim, at), postponed: postponed + 1 }, movedTo);
}

/** Returns the first characters of a response, on one line. */
function toExcerpt(body: Uint8Array, characters: number): string | null {
  if (characters === 0) return null;
  const text = new TextDecoder().decode(body.subarray(0, 4 * characters));
  const line = text.replace(/[\p{Cc}\s]+/gu, " ").trim();
  return line.slice(0, characters) || null;
}

interface ClassifiedResponse {
  kind: Attempt["kind"];
  status: number | null;
  code: string;
  excerpt: string | null;
}

/** Classifies the response of an endpoint: only a 2xx means that the delivery was received. */
export function classifyResponse(result: OutboundResult, excerptCharacters: number): ClassifiedResponse {
  if (result.kind !== "response")
    return { kind: result.kind, status: null, code: result.code, excerpt: null };
  const { status, body } = result;
  if (status >= 200 && status <= 299)
    return { kind: "delivered", status, code: `HTTP_${status}`, excerpt: null };
  return { kind: "http", status, code: `HTTP_${status}`, excerpt: toExcerpt(body, excerptCharacters) };
}

/** Refusals by the text of the URL alone (see `AddressRule`). The others depend on the DNS. */
const RULES_OF_THE_TEXT: Set<string> = new Set(["R1", "R2", "R3", "R4", "R6", "R8"]);

/** The fields of an attempt that could tell of the host's network. */
type ShownAttempt = Pick<Attempt, "kind" | "status" | "code" | "excerpt" | "durationMs">;

/**
 * Returns an attempt as it is stored and as subscribers see it, without details that map the host's
 * network. A name with an internal address and a name without an address look the same in every
 * field: otherwise subscribers could find out which internal names exist.
 */
export function toLoggedAttempt<T extends ShownAttempt>(attempt: T): T {
  const { kind, code } = attempt;
  const isAboutName = kind === "dns" || (kind === "refused" && !RULES_OF_THE_TEXT.has(code));
  return isAboutName
    ? { ...attempt, kind: "dns", status: null, code: "NO_USABLE_ADDRESS", excerpt: null, durationMs: 0 }
    : attempt;
}

/** Statuses whose `Retry-After` may delay the next attempt (RFC 9110 §15.6.4, RFC 6585 §4). */
const RETRY_AFTER_STATUSES: Set<number> = new Set([429, 503]);

function readRetryAfter(result: OutboundResult, now: number): number | null {
  const mayDelay = result.kind === "response" && RETRY_AFTER_STATUSES.has(result.status);
  return mayDelay ? parseRetryAfter(result.headers["retry-after"], now) : null;
}

/**
 * Returns what follows from the response to an attempt.
 *
 * @param attempt the attempt as this process saw it.
 */
export function evaluateAttempt(
  claim: Claim,
  { attempt, response }: { attempt: Attempt; response: OutboundResult },
  times: AttemptTimes,
  rules: OutcomeRules,
): AttemptResult {
  const { startedAt, now } = times;
  const isDelivered = attempt.kind === "delivered";
  if (!isDelivered && isResolverOutage(attempt) && !isTest(claim))
    return waitOutOutage(claim, attempt.at, now);
  const report: EndpointReport = {
    ok: isDelivered,
    generation: claim.webhook.generation,
    at: now,
    noticeAt: warningDueAt(now, rules.health),
    lane: attempt.durationMs > rules.slowAfterMs ? "slow" : "fast",
  };
  const logged = toLoggedAttempt(attempt);
  if (isDelivered)
    return buildAttemptResult(claim, DELIVERED, startedAt, { attempt: logged, endpoint: report });
  const next = findNextStep(claim, times, rules, readRetryAfter(response, now));
  const outcome = retryOrFail(next, isTest(claim) ? TEST_FAILED : "exhausted");
  const endpoint = isTest(claim) ? null : report;
  return buildAttemptResult(claim, outcome, startedAt, { attempt: logged, endpoint });
}
