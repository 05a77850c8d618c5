/**
 * The time of a memory storage. It starts at the wall clock when first read, and follows the
 * monotonic clock.
 */

import type { Clock } from "../../src/core/clock.js";

/**
 * The wall clock's time at which the monotonic clock stood at 0; `undefined` before the first read.
 */
export interface Epoch {
  epoch: number | undefined;
}

/** Returns whole epoch ms. Setting the wall clock must not make retries due, or leases expire. */
export function readTime(state: Epoch, clock: Clock): number {
  state.epoch ??= clock.now() - clock.monotonic();
  return Math.round(state.epoch + clock.monotonic());
}
