/** The retry schedule, as pure functions of time and chance. */

import { type Catalogue, isPlain } from "../event-types/catalogue.js";
import { invalidEvents, quoteName } from "../event-types/plain-event-type.js";

export interface RetryPolicy {
  /** Milliseconds between the first attempts, in order. */
  intervalsMs: readonly number[];
  /** Milliseconds between attempts after those. */
  everyMs: number;
  /** Milliseconds after the first attempt: no attempt begins later. */
  windowMs: number;
  /** The part of a step's interval that chance may add. An attempt is never early. */
  jitter: number;
  maxJitterMs: number;
}

/**
 * The due times of the attempts, in milliseconds after the first one, which is at 0. Strictly
 * ascending, within the window.
 */
export type Schedule = readonly number[];

/**
 * Returns the schedule of a policy. The default policy has 14 attempts: at 0, 0:15, 0:45, 1:45,
 * 3:45, 7:45, 15:45, then every 8 h, the last at 71:45.
 *
 * `intervalsMs` are intervals between attempts, not offsets from the first one.
 *
 * Source: Event Notification and Webhook Registration Interface, "Events",
 * rule 3, and "Limits".
 */
export function buildSchedule({ intervalsMs, everyMs, windowMs }: RetryPolicy): Schedule {
  const offsets = [0];
  for (let last = 0, step = 0; ; step++) {
    last += intervalsMs[step] ?? everyMs;
    if (last >= windowMs) return Object.freeze(offsets);
    offsets.push(last);
  }
}

/** A schedule with more steps is a mistake in the units of its intervals. */
const MAX_STEPS = 1_000;

/** Returns why a policy cannot be used; `undefined` if it can. `place` names it. */
export function findPolicyFault(
  policy: RetryPolicy,
  place: string,
): { field: string; message: string } | undefined {
  const { everyMs, windowMs } = policy;
  if (windowMs / everyMs > MAX_STEPS) {
    const least = `${place}.windowMs / ${MAX_STEPS}, ${windowMs / MAX_STEPS} ms`;
    const message = `${place}.everyMs must be at least ${least} (got ${everyMs} ms)`;
    return { field: `${place}.everyMs`, message };
  }
  if (buildSchedule(policy).length >= 2) return undefined;
  const message = `${place}.windowMs must leave time for at least one retry (got ${windowMs} ms)`;
  return { field: `${place}.windowMs`, message };
}

/** A policy, and its schedule. */
export interface RetryPlan {
  retry: RetryPolicy;
  schedule: Schedule;
}

/**
 * Returns the plans of the event types that have a `retry`, by name.
 *
 * @throws `invalid_option` if a schedule has too many steps, or no retry.
 */
export function buildTypePlans({ types }: Catalogue, general: RetryPolicy): ReadonlyMap<string, RetryPlan> {
  const plans = new Map<string, RetryPlan>();
  for (const [type, entry] of types) {
    if (!isPlain(entry) || entry.retry === undefined) continue;
    const retry = { ...general, ...entry.retry };
    const fault = findPolicyFault(retry, `events[${quoteName(type)}].retry`);
    if (fault !== undefined) throw invalidEvents(fault.message, fault.field);
    plans.set(type, Object.freeze({ retry, schedule: buildSchedule(retry) }));
  }
  return plans;
}

export interface NextStep {
  step: number;
  dueAt: number;
}

/**
 * Returns the step that follows `step`, or `null` if the schedule is exhausted.
 *
 * If several steps have passed, because no process ran or the endpoint was disabled, a single
 * attempt makes up for them. No step is repeated, even if the storage's clock was set back. Jitter
 * is added to the step's time, so it does not accumulate. `retryAfterMs`, which the endpoint
 * requested, can delay the step until the time of the following one. Nothing is due after the
 * window.
 *
 * @param schedule must be the schedule of `policy`: all its times lie within the window.
 */
export function nextStep({
  policy,
  schedule,
  startedAt,
  step,
  now,
  random,
  retryAfterMs,
}: {
  policy: RetryPolicy;
  schedule: Schedule;
  startedAt: number;
  step: number;
  now: number;
  random: () => number;
  retryAfterMs: number | null;
}): NextStep | null {
  const next = schedule.findIndex((offset, index) => index > step && startedAt + offset > now);
  const offset = schedule[next];
  if (offset === undefined) return null;
  const interval = offset - (schedule[next - 1] ?? 0);
  const jitter = Math.floor(random() * Math.min(policy.jitter * interval, policy.maxJitterMs));
  const following = schedule[next + 1] ?? policy.windowMs;
  const requested = Math.min(now + (retryAfterMs ?? 0), startedAt + following);
  return {
    step: next,
    dueAt: Math.max(Math.min(startedAt + offset + jitter, startedAt + policy.windowMs), requested),
  };
}

/**
 * Returns the delay that `Retry-After` requests, in milliseconds; `null` if it is missing,
 * malformed or in the past.
 *
 * Source: RFC 9110 §10.2.3: a number of seconds, or an HTTP date.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null;
  if (/^[0-9]{1,10}$/.test(value)) return Number(value) * 1000;
  const isHttpDate = /^[A-Z][a-z]{2,8},? [0-9A-Za-z :-]{10,30}$/.test(value);
  // The oldest of the three forms names no zone and means GMT.
  const at = isHttpDate ? Date.parse(value.endsWith(" GMT") ? value : `${value} GMT`) : Number.NaN;
  return at > now ? at - now : null;
}

const POSTPONE_MS = 5_000;
export const MAX_POSTPONE_MS = 900_000;

/**
 * Returns the delay of a delivery that was postponed `count` times in a row, because a hook failed
 * or the resolver was unavailable: 5 s, doubling, at most 15 min.
 */
export const postponeDelayMs = (count: number): number =>
  Math.min(POSTPONE_MS * 2 ** Math.min(count, 16), MAX_POSTPONE_MS);

/** If a lease expires more often in a row, the event probably crashes its process. */
const FREE_CRASHES = 5;

/**
 * Returns how long a delivery is quarantined after its lease expired `crashes` times in a row: 0 at
 * first, from the fifth time on a full step. So a poison event cannot crash the workers in a loop.
 * A crash uses up no step and never ends a delivery.
 */
export function crashDelayMs(crashes: number, policy: RetryPolicy): number {
  return crashes < FREE_CRASHES ? 0 : (policy.intervalsMs[crashes - FREE_CRASHES] ?? policy.everyMs);
}
