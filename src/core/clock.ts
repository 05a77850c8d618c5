/**
 * The only source of time and chance. Nothing else in the core or the storages may read a clock,
 * set a timer or draw a random number.
 */

/** A timer that is set. Only useful for `clearTimeout` of the clock that returned it. */
export type Timer = { readonly [key in never]: never };

/**
 * Time and chance for services and storages. Tests pass `manualClock()` of `postbell/testing`,
 * which stands still until it is moved.
 *
 * @example
 * const clock = manualClock();
 * const webhooks = createWebhooks({ storage, access, clock });
 * await clock.advance(15 * 60_000); // the first retry is due
 */
export interface Clock {
  /** Returns the wall-clock time in epoch milliseconds. */
  now(): number;
  /**
   * Returns milliseconds from an arbitrary start. It never jumps, even if the wall clock is set.
   */
  monotonic(): number;
  /**
   * Calls `callback` once, after `ms` milliseconds. A delay over 2^31 − 1 ms may end early, at that
   * limit.
   */
  setTimeout(callback: () => void, ms: number): Timer;
  /** Clears a timer. Does nothing if it has fired or is `undefined`. */
  clearTimeout(timer: Timer | undefined): void;
  /** Returns a number in [0, 1). */
  random(): number;
}

/** With a longer delay, `setTimeout` fires at once (Node 20 to 26). */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The system's time and random numbers. The default of every `clock` option. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback: () => void, ms: number): Timer =>
    setTimeout(callback, Math.min(Math.max(ms, 0), MAX_DELAY_MS)) as unknown as Timer,
  clearTimeout: (timer: Timer | undefined) => clearTimeout(timer as unknown as NodeJS.Timeout | undefined),
  random: () => Math.random(),
});

/** Calls a function of the host. Rejects if it throws, rejects, or takes longer than `ms`. */
export const callHook = <T>(clock: Clock, ms: number, call: () => T | PromiseLike<T>): Promise<T> =>
  withTimeout(clock, ms, (async () => call())(), () => new Error("no response in time"));

/**
 * Settles like `promise`, or rejects with the error of `onTimeout` after `ms` milliseconds. The
 * promise itself continues.
 */
export function withTimeout<T>(
  clock: Clock,
  ms: number,
  promise: PromiseLike<T>,
  onTimeout: () => Error,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = clock.setTimeout(() => reject(onTimeout()), ms);
    promise.then(
      (value) => {
        clock.clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clock.clearTimeout(timer);
        reject(error as Error);
      },
    );
  });
}

/** Resolves when `signal` is aborted, at once if it is already. */
export const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

// Many deadlines on one timer, so that an attempt needs no timer.

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
