/** Runs many deadlines on one timer, so that an attempt needs no timer. */

import type { Clock, Timer } from "./clock.js";

/** A deadline that is waiting. Only good for `remove` of the {@link Deadlines} that returned it. */
export interface Deadline {
  /** Milliseconds of the monotonic clock. */
  at: number;
}

export interface Deadlines {
  /**
   * Calls `onReached` once: at `at` (milliseconds of the monotonic clock) or up to `everyMs` later.
   * `onReached` may add and remove deadlines. If it throws, the error reaches the clock's timer,
   * and the other deadlines are still called.
   */
  add: (at: number, onReached: () => void) => Deadline;
  /** Cancels a deadline. Does nothing if it was reached or removed before, or is `undefined`. */
  remove: (deadline: Deadline | undefined) => void;
}

export interface DeadlinesOptions {
  /**
   * The least time between two sweeps, and the most that a deadline is late. In milliseconds,
   * default 50.
   */
  everyMs?: number | undefined;
}

interface Entry extends Deadline {
  onReached: () => void;
  /** The position in `entries`; −1 once reached or removed. */
  index: number;
}

/**
 * Creates a set of deadlines that share one timer of `clock`. It suits deadlines that are almost
 * always removed before they are reached, such as those of attempts.
 *
 * Adding and removing take constant time and allocate one small object. The timer waits for the
 * earliest deadline, then one sweep visits each deadline once. While there are no deadlines, no
 * timer is set, so nothing keeps the process alive.
 */
export function createDeadlines(clock: Clock, { everyMs = 50 }: DeadlinesOptions = {}): Deadlines {
  /** Unordered: the last entry moves to the place of a removed one. */
  const entries: Entry[] = [];
  let timer: Timer | undefined;
  /** When the timer fires. Infinite if none is set. */
  let sweepAt = Number.POSITIVE_INFINITY;
  let lastSweepAt = Number.NEGATIVE_INFINITY;

  const sleepUntil = (at: number): void => {
    clock.clearTimeout(timer);
    sweepAt = Math.max(at, lastSweepAt + everyMs);
    // Rounded up, because Node drops fractions: the timer would fire just before the deadline and
    // miss it.
    timer = clock.setTimeout(sweep, Math.ceil(sweepAt - clock.monotonic()));
  };

  const add: Deadlines["add"] = (at, onReached) => {
    const entry: Entry = { at, onReached, index: entries.length };
    entries.push(entry);
    // A timer that fires soon enough stays as it is, so it is set once per sweep and not once per
    // deadline.
    if (at + everyMs < sweepAt) sleepUntil(at);
    return entry;
  };

  const remove = (deadline: Deadline | undefined): void => {
    const entry = deadline as Entry | undefined;
    if (entry === undefined || entry.index < 0) return;
    const last = entries.pop() as Entry;
    if (last !== entry) {
      entries[entry.index] = last;
      last.index = entry.index;
    }
    entry.index = -1;
    if (entries.length > 0) return;
    clock.clearTimeout(timer);
    timer = undefined;
    sweepAt = Number.POSITIVE_INFINITY;
  };

  const sweep = (): void => {
    const now = clock.monotonic();
    lastSweepAt = now;
    const reached: Entry[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const entry of entries) {
      if (entry.at <= now) reached.push(entry);
      else if (entry.at < next) next = entry.at;
    }
    // Set before any callback runs: if one throws, the others must not be left without a timer.
    sleepUntil(reached.length > 0 ? now : next);
    for (const entry of reached) {
      if (entry.index < 0) continue;
      remove(entry);
      entry.onReached();
    }
  };

  return Object.freeze({ add, remove });
}
