/** A clock that stands still until a test moves it. */

import type { Clock, Timer } from "../core/clock.js";
import { createTimeQueue } from "../core/time-queue.js";

/** A clock that stands still until {@link ManualClock.advance} moves it. */
export interface ManualClock extends Clock {
  /**
   * Moves time forward by `ms` and fires each timer at its time, in order. The event loop
   * turns between two timers, so that promises of the first settle. Real I/O is not waited for.
   */
  advance(ms: number): Promise<void>;
  /**
   * Sets only the wall clock, as an operator or NTP does: `now()` jumps to `ms`, while
   * `monotonic()` and the timers are not affected.
   */
  setWallClock(ms: number): void;
  /** Returns when the next timer fires, in epoch milliseconds, or `undefined` without timers. */
  nextTimerAt(): number | undefined;
}

interface Pending {
  callback: () => void;
}

/** Creates a generator of numbers in [0, 1) that repeat for the same seed (mulberry32). */
function createSeededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const turnEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Creates a clock for tests that starts at `startMs` (epoch milliseconds). Its `random()` is
 * seeded: the same `seed` repeats a run, another one varies it. Default 1.
 *
 * @example
 * import { manualClock } from "postbell/testing";
 *
 * const clock = manualClock(Date.UTC(2026, 0, 1));
 * clock.setTimeout(() => console.log("a minute has passed"), 60_000);
 * await clock.advance(60_000);
 */
export function manualClock(startMs: number, { seed = 1 }: { seed?: number | undefined } = {}): ManualClock {
  /** The monotonic time, which decides when timers fire. */
  let time = 0;
  let epoch = startMs;
  const timers = createTimeQueue<Pending>();
  const random = createSeededRandom(seed);

  return Object.freeze({
    now: () => epoch + time,
    monotonic: () => time,
    setWallClock(ms: number) {
      epoch = ms - time;
    },
    random,
    setTimeout(callback: () => void, ms: number): Timer {
      const pending: Pending = { callback };
      timers.set(pending, time + Math.max(0, ms));
      return pending as unknown as Timer;
    },
    clearTimeout(timer: Timer | undefined) {
      if (timer) timers.delete(timer as unknown as Pending);
    },
    nextTimerAt() {
      const at = timers.headAt();
      return at === undefined ? undefined : epoch + at;
    },
    async advance(ms: number) {
      const target = time + ms;
      await turnEventLoop();
      for (let at = timers.headAt(); at !== undefined && at <= target; at = timers.headAt()) {
        const next = timers.head();
        if (!next) break;
        timers.delete(next);
        time = Math.max(time, at);
        next.callback();
        await turnEventLoop();
        await turnEventLoop();
      }
      time = target;
      await turnEventLoop();
    },
  });
}
