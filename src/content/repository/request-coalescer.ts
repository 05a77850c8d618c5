/**
 * Coalesces concurrent calls: one check for changes confirms for many requests that the cached data
 * is current.
 */

import { nextTurn } from "../../core/next-turn.js";

/**
 * The first turn admits the requests that arrived with this one, the second those that arrived
 * while responses were sent. So a whole round of clients shares one call.
 */
const TURNS_BEFORE_CALL = 2;

/**
 * Returns a function that calls `call`. Calls made while one is in flight wait together for the
 * next one: only a call that starts later proves what is true now. A result without a promise is
 * returned at once. If a call fails, it fails for those that wait for the next one too.
 */
export function coalesceCalls(call: () => void | Promise<void>): () => void | Promise<void> {
  /** True if the last call returned a promise. */
  let isAsynchronous = false;
  let inFlight: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const start = (): void | Promise<void> => {
    next = undefined;
    const result = call();
    isAsynchronous = result !== undefined;
    inFlight = result?.finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  };

  const startNext = async (): Promise<void> => {
    try {
      await inFlight;
      for (let turn = 0; turn < TURNS_BEFORE_CALL; turn += 1) await nextTurn();
    } catch (error) {
      // The callers have waited long enough, and another call would hardly succeed.
      next = undefined;
      throw error;
    }
    return start();
  };

  return () => {
    if (next === undefined && !isAsynchronous) return start();
    next ??= startNext();
    return next;
  };
}
