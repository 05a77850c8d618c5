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
