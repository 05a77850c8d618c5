/**
 * When a delivery is tried again: the schedule of the interface document, as pure functions of time
 * and chance.
 */

export interface RetryPolicy {
  /** Milliseconds between the first attempts, in order. */
  readonly intervalsMs: readonly number[];
  /** Milliseconds between attempts after those. */
  readonly everyMs: number;
  /** No attempt begins later than this after the first one. */
  readonly windowMs: number;
  /** Part of a step's interval that chance may add. It never makes an attempt early. */
  readonly jitter: number;
  readonly maxJitterMs: number;
}

/**
 * When the attempts of a delivery are due, in milliseconds after the first one, which is at 0.
 * Strictly ascending, within the window.
 */
export type Schedule = readonly number[];

/**
 * The schedule of a policy. The default policy gives the 14 attempts at 0, 0:15, 0:45, 1:45, 3:45,
 * 7:45, 15:45, then every 8 h, the last at 71:45.
 *
 * Source: interface document, Events, rule 3, and Limits: the six values are intervals, "retry
 * interval after the first six attempts: every 8 hours".
 */
export function buildSchedule({ intervalsMs, everyMs, windowMs }: RetryPolicy): Schedule {
  const offsets = [0];
  for (let last = 0, step = 0; ; step++) {
    last += intervalsMs[step] ?? everyMs;
    if (last >= windowMs) return Object.freeze(offsets);
    offsets.push(last);
  }
}

export interface NextStep {
  readonly step: number;
  readonly dueAt: number;
}

/**
 * Returns the step that follows `step`, or `null` if the schedule is exhausted.
 *
 * Steps whose time has passed meanwhile (no process ran, the endpoint was disabled) are not made up
 * for. A single attempt counts for all of them. No step is repeated, even if the storage's clock
 * was set back. Jitter is added to the step's own time, so it does not add up over steps.
 * `retryAfterMs`, which the endpoint asked for, may delay the step until the time of the following
 * one. Nothing is due after the window.
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
  readonly policy: RetryPolicy;
  readonly schedule: Schedule;
  readonly startedAt: number;
  readonly step: number;
  readonly now: number;
  readonly random: () => number;
  readonly retryAfterMs: number | null;
}): NextStep | null {
  const next = schedule.findIndex((offset, index) => index > step && startedAt + offset > now);
  const offset = schedule[next];
  if (offset === undefined) return null;
  const interval = offset - (schedule[next - 1] ?? 0);
  const jitter = Math.floor(random() * Math.min(policy.jitter * interval, policy.maxJitterMs));
  const following = schedule[next + 1] ?? policy.windowMs;
  const asked = Math.min(now + (retryAfterMs ?? 0), startedAt + following);
  return {
    step: next,
    dueAt: Math.max(Math.min(startedAt + offset + jitter, startedAt + policy.windowMs), asked),
  };
}

/**
 * The delay that a `Retry-After` field asks for, in milliseconds; `null` where it is absent,
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

const ACCESS_DELAY_MS = 5_000;
const MAX_ACCESS_DELAY_MS = 900_000;

/**
 * How long to wait before `canRead` is asked again after it gave no answer for the `count`-th time
 * in a row: 5 s, doubling, at most 15 min.
 */
export const accessDelayMs = (count: number): number =>
  Math.min(ACCESS_DELAY_MS * 2 ** Math.min(count, 16), MAX_ACCESS_DELAY_MS);

/** A lease that ran out this often in a row looks like an event that kills its process. */
const FREE_CRASHES = 5;

/**
 * How long to hold a delivery back whose lease ran out for the `crashes`-th time in a row: not at
 * all up to the fifth, then a full step each time, so that a poison event cannot keep the workers
 * crashing. A crash uses up no step and never ends a delivery.
 */
export function crashDelayMs(crashes: number, policy: RetryPolicy): number {
  return crashes < FREE_CRASHES ? 0 : (policy.intervalsMs[crashes - FREE_CRASHES] ?? policy.everyMs);
}
