/**
 * The limits of one endpoint: how many of its deliveries may be in flight (slow start), and how
 * many may be claimed in a second (the rate). Pure. Memory, SQLite and Postgres use them. On Redis,
 * `settle.lua` and `settle-first-attempts.lua` apply the slow start, `common-path.lua` and
 * `turns.lua` the rate. On Postgres, `delivery-functions.ts` repeats the rate, and the slow start
 * for successes of endpoints that do not fail.
 */

// Slow start: after a failure an endpoint gets one attempt at a time, and with each success one
// more, up to `perEndpoint`.

/** The attempts that an endpoint may have in flight; `null` means `perEndpoint`. */
export type SlowStart = number | null;

/** Returns the slow start after one more attempt. */
export function nextSlowStart(slowStart: SlowStart, isOk: boolean, perEndpoint: number): SlowStart {
  if (!isOk) return 1;
  if (slowStart === null) return null;
  return slowStart + 1 >= perEndpoint ? null : slowStart + 1;
}

/** Returns the number of attempts that the endpoint may have in flight. */
export const limitConcurrency = (slowStart: SlowStart, perEndpoint: number): number =>
  Math.min(perEndpoint, slowStart ?? perEndpoint);

// The rate, in whole seconds of the storage's clock.

/** How many deliveries of an endpoint were claimed in a second, which is counted from the epoch. */
export interface ClaimedSecond {
  readonly second: number;
  readonly count: number;
}

const SECOND_MS = 1_000;

/**
 * The most seconds by which a counted second may be ahead of the caller's clock. Clocks of
 * processes differ a little, and the later second then counts for all. One that is further ahead
 * was counted before the clock was set back.
 */
export const MOST_SECONDS_AHEAD = 60;

export const toSecond = (now: number): number => Math.floor(now / SECOND_MS);

/** Returns the second that counts at `now`, and what was claimed in it. */
function getSecond(claimed: ClaimedSecond | null, now: number): ClaimedSecond {
  const second = toSecond(now);
  const isCurrent =
    claimed !== null && claimed.second >= second && claimed.second <= second + MOST_SECONDS_AHEAD;
  return isCurrent ? claimed : { second, count: 0 };
}

/** Returns how many deliveries may be claimed at `now`. `perSecond`: `null` for any number. */
export const countLeft = (perSecond: number | null, claimed: ClaimedSecond | null, now: number): number =>
  perSecond === null ? Number.POSITIVE_INFINITY : Math.max(0, perSecond - getSecond(claimed, now).count);

/** Returns when the next delivery may be claimed: `now`, or when the next second begins. */
export function findOpenTime(perSecond: number | null, claimed: ClaimedSecond | null, now: number): number {
  if (perSecond === null) return now;
  const { second, count } = getSecond(claimed, now);
  return count < perSecond ? now : (second + 1) * SECOND_MS;
}

/** Counts deliveries that are claimed at `now`. */
export function addClaimed(claimed: ClaimedSecond | null, now: number, count: number): ClaimedSecond {
  const current = getSecond(claimed, now);
  return { second: current.second, count: current.count + count };
}
