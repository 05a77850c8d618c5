/** The time of a memory storage: the wall clock's at the first look, and from there on at the pace of the monotonic clock. */

import type { Clock } from "../../src/core/clock.js";

/** What is kept of the first look: the wall clock's time when the monotonic clock stood at 0. */
export interface Epoch {
  epoch: number | undefined;
}

/** Whole epoch ms. Setting the wall clock must not make retries due, or leases run out. */
export function readTime(state: Epoch, clock: Clock): number {
  state.epoch ??= clock.now() - clock.monotonic();
  return Math.round(state.epoch + clock.monotonic());
}
