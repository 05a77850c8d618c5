/** Makes one delivery attempt, from a claim to its result: permission, headers, body, request. */

import { callHook } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { type Span, seconds, type Telemetry, toLabel } from "../../core/telemetry.js";
import { isResolverOutage, RESOLVER_UNAVAILABLE } from "../../outbound/failure.js";
import type { OutboundResult, Send } from "../../outbound/types.js";
import type { Subscriber } from "../access.js";
import type { ServiceBase, WebhooksConfig } from "../config/config.js";
import { publishAttempt } from "../diagnostics.js";
import { SealedEventError } from "../events/data-keys.js";
import { isSealed, type PreparedEvent, readPayload } from "../events/notification.js";
import { addHeaders, buildRequest, createHostHeaders, type HostHeaders } from "../sender.js";
import type { Attempt, Claim } from "../store.js";
import {
  type AttemptResult,
  buildAttemptResult,
  classifyResponse,
  evaluateAttempt,
  isTest,
  type OutcomeRules,
  postponeAttempt,
  skipAttempt,
  waitOutOutage,
} from "./outcome.js";
import { buildTypePlans, type Schedule } from "./retry-schedule.js";
import type { Flight } from "./slots.js";
import { beginAttempt, describeEnd } from "./spans.js";

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

/** An outage of the resolver is logged this often. */
const OUTAGE_LOG_MS = 60_000;

/** The content of an attempt. */
interface Content {
  event: PreparedEvent;
  allowed: readonly boolean[];
  /** Those of the host; `null` if it has no hook for them. */
  headers: HostHeaders | null;
}

const ALL_ALLOWED: boolean[] = [true];

/**
 * True for each entry that may be read; `null` if the host threw, timed out or returned an invalid
 * value.
 */
type Permission = readonly boolean[] | null;

const areBooleans = (results: readonly unknown[]): results is readonly boolean[] =>
  results.every((result) => typeof result === "boolean");

/**
 * Returns a function that calls `canRead` for each entry. It returns a promise only if the host
 * does, and never throws or rejects. Without `canRead`, which is left out if all types are plain,
 * it allows plain events; one with a resource was emitted under other options, and waits.
 */
export function createPermissions({ config: { access, limits, clock }, logger }: ServiceBase) {
  const fail = ({ account }: Subscriber, error: unknown): null => {
    logger.warn({ account, error }, "access.canRead failed or returned an invalid value; the delivery waits");
    return null;
  };

  const waitForResults = async (subscriber: Subscriber, results: unknown[]): Promise<Permission> => {
    try {
      const settled = await callHook(clock, limits.hookMs, () => Promise.all(results));
      return areBooleans(settled) ? settled : fail(subscriber, new TypeError("neither true nor false"));
    } catch (error) {
      return fail(subscriber, error);
    }
  };

  if (access.canRead === undefined) {
    return (subscriber: Subscriber, { isPlain }: PreparedEvent): Permission =>
      isPlain ? ALL_ALLOWED : fail(subscriber, new TypeError("access.canRead is missing"));
  }
  const { canRead } = access;
  return (subscriber: Subscriber, { entries }: PreparedEvent): Permission | Promise<Permission> => {
    const results: unknown[] = [];
    try {
      for (const entry of entries) results.push(canRead(subscriber, entry.resource()));
    } catch (error) {
      // Promises of earlier entries may still reject. Unhandled, that would end the process.
      void Promise.allSettled(results);
      return fail(subscriber, error);
    }
    return areBooleans(results) ? results : waitForResults(subscriber, results);
  };
}

/** Returns `null` if the stored text is not an event: a retry would not change that. */
function readEvent({ event: { account, id } }: Claim, payload: string, logger: Logger): PreparedEvent | null {
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

/** Returns the rules for a claim: those of its event type, or those of all. */
function createRules({ config, catalogue }: ServiceBase, schedule: Schedule): (claim: Claim) => OutcomeRules {
  const { clock, delivery, retry, endpoints } = config;
  const { slowAfterMs, excerptCharacters } = delivery;
  const random = (): number => clock.random();
  const rules: OutcomeRules = { retry, schedule, health: endpoints, slowAfterMs, excerptCharacters, random };
  const ofTypes = new Map<string, OutcomeRules>();
  for (const [type, plan] of buildTypePlans(catalogue, retry)) ofTypes.set(type, { ...rules, ...plan });
  return ({ event: { type } }) => ofTypes.get(type) ?? rules;
}

export function createAttempts(base: ServiceBase, schedule: Schedule, send: Send): MakeAttempt {
  const { store, sealer, config, logger, telemetry } = base;
  const { clock, delivery } = config;
  const { excerptCharacters } = delivery;
  const rulesFor = createRules(base, schedule);
  const maxHeldMs = delivery.leaseMs - delivery.deadlineMs - FENCE_MARGIN_MS;
  const permissionFor = createPermissions(base);
  const hostHeadersFor = createHostHeaders(base);
  /** When the outage of the resolver was last logged, in monotonic time. */
  let outageLoggedAt = Number.NEGATIVE_INFINITY;

  const attempt: MakeAttempt = (flight) => {
    const { claim } = flight;
    const now = store.now();
    const startedAt = claim.startedAt ?? now;
    const skipped = skipAttempt(claim, { startedAt, now }, rulesFor(claim));
    if (skipped !== undefined) return skipped;
    const { payload } = claim.event;
    return isSealed(payload) ? openFirst(flight, startedAt) : prepare(flight, payload, startedAt);
  };

  const openFirst = async (flight: Flight, startedAt: number): Promise<AttemptResult | null> => {
    const { claim } = flight;
    const { account, id } = claim.event;
    let payload: string;
    try {
      payload = await sealer.open(claim.event);
    } catch (error) {
      const isFinal = error instanceof SealedEventError;
      const consequence = isFinal ? "its deliveries fail" : "the delivery waits";
      logger.error({ account, event: id, error }, `a sealed event cannot be opened; ${consequence}`);
      if (!isFinal) return waitOutOutage(claim, startedAt, store.now());
      return buildAttemptResult(claim, { state: "failed", reason: error.reason }, startedAt);
    }
    return prepare(flight, payload, startedAt);
  };

  const prepare = (
    flight: Flight,
    payload: string,
    startedAt: number,
  ): AttemptResult | null | Promise<AttemptResult | null> => {
    const { claim } = flight;
    const event = readEvent(claim, payload, logger);
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
  ): AttemptResult | null | Promise<AttemptResult | null> => {
    const { claim } = flight;
    if (flight.isCancelled) return null;
    if (allowed === null) return postponeAttempt(claim, { startedAt, now: store.now() }, rulesFor(claim));
    // The first entry is the event's record.
    if (allowed[0] !== true)
      return buildAttemptResult(claim, { state: "withheld", reason: "access_denied" }, startedAt);
    if (hostHeadersFor === undefined)
      return sendRequest(flight, { event, allowed, headers: null }, startedAt);
    return hostHeadersFor(claim.webhook).then((headers) => {
      if (flight.isCancelled) return null;
      return headers === null
        ? postponeAttempt(claim, { startedAt, now: store.now() }, rulesFor(claim))
        : sendRequest(flight, { event, allowed, headers }, startedAt);
    });
  };

  const sendRequest = (
    flight: Flight,
    { event, allowed, headers }: Content,
    startedAt: number,
  ): null | Promise<AttemptResult> => {
    const { claim } = flight;
    if (clock.monotonic() - flight.claimedAt > maxHeldMs) return null;
    const sentAt = store.now();
    const body = buildBody(config, claim.webhook, event, allowed);
    const request = addHeaders(buildRequest(config, claim, body, sentAt), claim.webhook, headers);
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
      publishAttempt(claim, made);
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
    const isCounted = !isResolverOutage(made);
    if (isCounted)
      attemptTelemetry.record("attemptDuration", seconds(made.durationMs), { outcome: made.kind, lane });
    if (isCounted && !isExtra) attemptTelemetry.record("attemptLag", seconds(made.at - dueAt), { lane });
    span?.end({ at: clock.now(), ...describeEnd(made) });
  };

  const conclude = (
    { claim, isCancelled }: Flight,
    made: Attempt,
    response: OutboundResult,
    startedAt: number,
  ): AttemptResult => {
    const times = { startedAt, now: store.now() };
    const result = evaluateAttempt(claim, { attempt: made, response }, times, rulesFor(claim));
    if (made.kind === "delivered") return result;
    if (isResolverOutage(made)) logOutage();
    // An attempt that a stopping process cut off is made again.
    else if (!isCancelled) logFailure(logger, claim, made, result.outcome);
    return result;
  };

  const logOutage = (): void => {
    const now = clock.monotonic();
    if (now - outageLoggedAt < OUTAGE_LOG_MS) return;
    outageLoggedAt = now;
    const message = "no host name can be resolved: deliveries wait until the DNS servers respond";
    logger.error({ code: RESOLVER_UNAVAILABLE }, message);
  };

  return attempt;
}

/**
 * Builds the body of every attempt to a webhook under the same permissions: `allowed` says for each
 * entry of the event whether the subscriber may read it.
 */
export const buildBody = (
  { body: form, delivery }: WebhooksConfig,
  { id: topic }: { id: string },
  event: PreparedEvent,
  allowed: readonly boolean[],
): Buffer =>
  event.body({
    form,
    topic,
    allowed: allowed.every(Boolean) ? null : allowed,
    eventIdField: delivery.eventIdField,
  });
