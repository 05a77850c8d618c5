/**
 * Counts the attempts of a webhook by the hour, for the storages. A storage keeps two things: the
 * recent hours, which each settlement changes, and the past ones, which it writes when an hour is
 * over. Recent is the newest hour; more only if an earlier version has written them. Pure.
 */

import type { Attempt, DeliveryStats, HourStats, RecentAttempts, Settlement } from "../src/webhooks/store.js";
import { addToSketch, type Quantiles, readQuantiles, sketchDurations } from "./duration-sketch.js";

/** Attempts that are added, with the sketch of the durations of all of them. */
export interface AddedAttempts extends RecentAttempts {
  readonly sketch: string;
}

/** Returns one attempt as it is added. */
export const toAddedAttempts = (isOk: boolean, { durationMs }: Attempt): AddedAttempts => ({
  succeeded: isOk ? 1 : 0,
  failed: isOk ? 0 : 1,
  durationMs: isOk ? durationMs : 0,
  sketch: sketchDurations([durationMs]),
});

/** Sums up the attempts that settlements with a report count. */
export function sumAttempts(settlements: readonly Settlement[]): AddedAttempts {
  const sum = { succeeded: 0, failed: 0, durationMs: 0 };
  const durations: number[] = [];
  for (const { attempt, endpoint } of settlements) {
    if (attempt === null || endpoint === null) continue;
    durations.push(attempt.durationMs);
    if (endpoint.ok) sum.succeeded += 1;
    else sum.failed += 1;
    if (endpoint.ok) sum.durationMs += attempt.durationMs;
  }
  return { ...sum, sketch: sketchDurations(durations) };
}

/** The attempts of an hour that may go on. `hour`: whole hours since 1970. */
export interface RecentHour extends RecentAttempts {
  readonly hour: number;
  /** Absent if an earlier version has counted them. */
  readonly sketch?: string;
}

/** The attempts of an hour that is over. */
export interface PastHour extends RecentAttempts, Quantiles {
  readonly hour: number;
}

const HOUR_MS = 3_600_000;
/** Whole hours before the current one that the last day has. */
const DAY_HOURS = 24;
/** Hours that are kept, with the current one. */
export const KEPT_HOURS = 72;

export const toHour = (now: number): number => Math.floor(now / HOUR_MS);

const toPastHour = ({ sketch = "", ...counts }: RecentHour): PastHour => ({
  ...counts,
  ...readQuantiles(sketch),
});

/**
 * Returns the recent hours with attempts at `now` in the newest one, and the hours that are over
 * now, oldest first.
 */
export function addRecentAttempts(
  hours: readonly RecentHour[],
  now: number,
  added: AddedAttempts,
): { readonly hours: readonly RecentHour[]; readonly ended: readonly PastHour[] } {
  const [newest, ...others] = hours;
  const hour = toHour(now);
  // A clock that went back counts in the newest hour.
  if (newest === undefined || newest.hour < hour) {
    const { succeeded, failed, durationMs, sketch } = added;
    const started = { hour, succeeded, failed, durationMs, sketch };
    return { hours: [started], ended: hours.map(toPastHour).reverse() };
  }
  const sum: RecentHour = {
    hour: newest.hour,
    succeeded: newest.succeeded + added.succeeded,
    failed: newest.failed + added.failed,
    durationMs: newest.durationMs + added.durationMs,
    sketch: addToSketch(newest.sketch ?? "", added.sketch),
  };
  return { hours: [sum, ...others], ended: [] };
}

/** Sums up the hours that are not over for more than 24 hours. */
function sumLastDay(hours: readonly PastHour[], current: number): RecentAttempts {
  const sum = { succeeded: 0, failed: 0, durationMs: 0 };
  for (const { hour, succeeded, failed, durationMs } of hours) {
    if (hour < current - DAY_HOURS) continue;
    sum.succeeded += succeeded;
    sum.failed += failed;
    sum.durationMs += durationMs;
  }
  return sum;
}

/**
 * Lists the last 72 hours. What a clock that was ahead has counted in a later hour is shown in the
 * current one.
 */
function listHours(hours: readonly PastHour[], current: number): readonly HourStats[] {
  const byHour = new Map<number, HourStats>();
  for (const { hour, succeeded, failed, p50, p95 } of hours) {
    if (hour <= current - KEPT_HOURS) continue;
    const shown = Math.min(hour, current);
    const before = byHour.get(shown);
    byHour.set(shown, {
      at: shown * HOUR_MS,
      delivered: succeeded + (before?.delivered ?? 0),
      failed: failed + (before?.failed ?? 0),
      p50: p50 ?? before?.p50 ?? null,
      p95: p95 ?? before?.p95 ?? null,
    });
  }
  return [...byHour.values()].sort((one, other) => one.at - other.at);
}

/** Summarises what a storage has kept. The past hours may be in any order. */
export function summariseAttempts(
  recent: readonly RecentHour[],
  past: readonly PastHour[],
  now: number,
): Pick<DeliveryStats, "lastDay" | "hours"> {
  const hours = [...past, ...recent.map(toPastHour).reverse()];
  return { lastDay: sumLastDay(hours, toHour(now)), hours: listHours(hours, toHour(now)) };
}
