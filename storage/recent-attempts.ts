/** Counts the attempts of the last 24 hours per webhook, for the storages. Pure but for `add`. */

import type { RecentAttempts } from "../src/webhooks/store.js";

/** The attempts of one hour. `hour`: whole hours since 1970. */
export interface RecentHour extends RecentAttempts {
  readonly hour: number;
}

const HOUR_MS = 3_600_000;
/** Whole hours before the current one. */
const HOURS = 24;

export const toHour = (now: number): number => Math.floor(now / HOUR_MS);

/** Returns the hours, newest first, with one more attempt in the newest. Old hours are dropped. */
export function addRecentAttempt(
  hours: readonly RecentHour[],
  now: number,
  { isOk, durationMs }: { readonly isOk: boolean; readonly durationMs: number },
): readonly RecentHour[] {
  const [newest, ...others] = hours;
  const hour = toHour(now);
  const added = isOk ? { succeeded: 1, failed: 0, durationMs } : { succeeded: 0, failed: 1, durationMs: 0 };
  // A clock that went back counts in the newest hour.
  if (newest === undefined || newest.hour < hour)
    return [{ hour, ...added }, ...hours.filter((other) => other.hour >= hour - HOURS)];
  const { succeeded, failed, durationMs: before } = newest;
  return [
    {
      hour: newest.hour,
      succeeded: succeeded + added.succeeded,
      failed: failed + added.failed,
      durationMs: before + added.durationMs,
    },
    ...others,
  ];
}

/** Sums up the hours that are not over for more than 24 hours. */
export function sumRecentAttempts(hours: readonly RecentHour[], now: number): RecentAttempts {
  const sum = { succeeded: 0, failed: 0, durationMs: 0 };
  for (const { hour, succeeded, failed, durationMs } of hours) {
    if (hour < toHour(now) - HOURS) continue;
    sum.succeeded += succeeded;
    sum.failed += failed;
    sum.durationMs += durationMs;
  }
  return sum;
}
