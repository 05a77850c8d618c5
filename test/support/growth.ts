/** Checks that work takes linear time. Compares the processor time of n and 2n in one run. */

import { cpuMs } from "./cpu-time.js";

export interface Growth {
  /** Milliseconds of processor time for n, the least of several runs. */
  readonly once: number;
  readonly twice: number;
}

/** Twice the time for twice the input is linear, four times is quadratic. */
const MOST = 3;
/** Shorter times cannot be compared: a longer input is tried. */
const NEGLIGIBLE_MS = 5;
/** How much longer that input is, and how long it may become. */
const STEP = 4;
const MAX_LENGTH = 100_000;
const ROUNDS = 8;
/** From so much on, three rounds tell as much. */
const LONG_MS = 50;
/** Quadratic work is judged again with longer inputs until it takes as much. */
const SURE_MS = 100;

export const isLinear = ({ once, twice }: Growth): boolean => twice < Math.max(MOST * once, NEGLIGIBLE_MS);

/**
 * Runs `work` on `make(n)` and `make(2 * n)` in turn and keeps the least of each, until they are in
 * proportion or {@link ROUNDS} are over: what else runs on the machine only ever adds time. While
 * `make(2 * n)` takes less than {@link NEGLIGIBLE_MS}, a larger n takes its place.
 */
export function growthOf<T>(n: number, make: (n: number) => T, work: (input: T) => void): Growth {
  const [small, large] = [make(n), make(2 * n)];
  let growth = { once: Number.POSITIVE_INFINITY, twice: Number.POSITIVE_INFINITY };
  for (let round = 0; round < ROUNDS; round += 1) {
    const twice = Math.min(
      growth.twice,
      cpuMs(() => work(large)),
    );
    if (twice < NEGLIGIBLE_MS)
      return 2 * n * STEP > MAX_LENGTH ? { once: 0, twice } : growthOf(n * STEP, make, work);
    const once = Math.min(
      growth.once,
      cpuMs(() => work(small)),
    );
    growth = { once, twice };
    if (round > 0 && (isLinear(growth) || (round > 1 && growth.once > LONG_MS))) break;
  }
  // Memory that a text of one size is the first to need looks like quadratic work, but only at that
  // size.
  const isSure = isLinear(growth) || growth.twice > SURE_MS;
  return isSure ? growth : growthOf(n * STEP, make, work);
}
