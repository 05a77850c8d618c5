/**
 * Slow start: the adaptive concurrency of one endpoint. After a failure it gets one attempt at a
 * time, and with each success one more, up to `perEndpoint`. Pure. Memory, SQLite and Postgres use
 * it. On Redis, `settle.lua` and `settle-first-attempts.lua` apply the same rule; on Postgres,
 * `delivery-functions.ts` repeats it for successes of endpoints that do not fail.
 */

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
