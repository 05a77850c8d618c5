/** A clock that stands still until a test moves it. */

import type { Clock, Timer } from "../src/core/clock.js";
import { createTimeQueue } from "../src/core/time-queue.js";

/** A clock that stands still until {@link ManualClock.advance} moves it. */
export interface ManualClock extends Clock {
  /**
   * Moves time on by `ms`, firing each timer at its own time, in order. Between two timers the event loop turns,
   * so what a timer set going gets to run. Work that waits for real I/O is not waited for.
   */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock alone, as an operator or NTP does: `now()` jumps to `ms`, while `monotonic()` and the timers go on. */
  setWallClock(ms: number): void;
  /** When the next timer fires, in epoch milliseconds; `undefined` where none is set. */
  nextTimerAt(): number | undefined;
}

interface Pending {
  readonly callback: () => void;
}

/** Numbers in [0, 1) that are the same in each run (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const eventLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * A clock for tests, starting at `startMs` (epoch milliseconds). `random()` is seeded, so a run can be repeated;
 * give another `seed` for another run.
 */
export function manualClock(startMs: number, { seed = 1 }: { seed?: number | undefined } = {}): ManualClock {
  /** Of the monotonic clock, which the timers go by. */
  let time = 0;
  let epoch = startMs;
  const timers = createTimeQueue<Pending>();
  const random = seededRandom(seed);

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
      await eventLoopTurn();
      for (let at = timers.headAt(); at !== undefined && at <= target; at = timers.headAt()) {
        const next = timers.head();
        if (!next) break;
        timers.delete(next);
        time = Math.max(time, at);
        next.callback();
        await eventLoopTurn();
        await eventLoopTurn();
      }
      time = target;
      await eventLoopTurn();
    },
  });
}
