/** The one source of time and chance. Nothing else in the core or the storages may read a clock, set a timer or draw a number. */

/** An armed timer; opaque, only good for `clearTimeout` of the clock that made it. */
export type Timer = { readonly [key in never]: never };

/** Time and chance, as the core and the storages take them. A test gives one that stands still: `manualClock` of `postbell/testing`. */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. */
  now(): number;
  /** Milliseconds from an arbitrary start; never jumps, not even when the wall clock is set. */
  monotonic(): number;
  /** Calls `callback` once, `ms` milliseconds from now. Delays over 2^31 − 1 ms are allowed to fire early, at that bound. */
  setTimeout(callback: () => void, ms: number): Timer;
  /** Disarms a timer. One that has fired, or is `undefined`, changes nothing. */
  clearTimeout(timer: Timer | undefined): void;
  /** A number in [0, 1). */
  random(): number;
}

/** `setTimeout` fires at once for longer delays (Node 20 to 26). */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The machine's own time. The default of every `clock` option. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback: () => void, ms: number): Timer =>
    setTimeout(callback, Math.min(Math.max(ms, 0), MAX_DELAY_MS)) as unknown as Timer,
  clearTimeout: (timer: Timer | undefined) => clearTimeout(timer as unknown as NodeJS.Timeout | undefined),
  random: () => Math.random(),
});

/** Settles as `promise` does, or rejects with what `onTimeout` makes once `ms` milliseconds have passed. The promise itself goes on. */
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
