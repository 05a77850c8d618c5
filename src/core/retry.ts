/**
 * Repeats a call that failed, on the injected clock. p-retry counts and decides; its timer, its
 * random numbers and its `maxRetryTime` are not used.
 */

import pRetry from "p-retry";
import type { Clock } from "./clock.js";

interface RetryOptions {
  clock: Clock;
  /** Returns false for an error that repeating the call does not remedy. */
  shouldRetry: (error: unknown) => boolean;
  /** Returns false if the call is repeated at once, and without counting. Default: true. */
  shouldConsumeRetry?: ((error: unknown) => boolean) | undefined;
  /** The most retries that count. Default: no limit. */
  retries?: number | undefined;
  /** Returns the milliseconds before a retry; 0 sets no timer. `retry` counts from 1. */
  pauseMs: (retry: number) => number;
  /** Ends a pause, and with it the retries. */
  signal?: AbortSignal | undefined;
}

/**
 * Returns the result of `call`, which is repeated as long as the options allow it. A call that
 * succeeds costs nothing more: p-retry is entered after a first failure.
 *
 * @throws the last error of `call`, unchanged
 */
export async function retry<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  try {
    return await call();
  } catch (error) {
    return retryAfter(error, call, options);
  }
}

/** p-retry gives up on a TypeError and replaces what is no Error, so it never sees the errors. */
const FAILED = new Error("The call failed.");

async function retryAfter<T>(
  first: unknown,
  call: () => Promise<T>,
  { clock, retries = Number.POSITIVE_INFINITY, signal, ...options }: RetryOptions,
): Promise<T> {
  let error = first;
  let isFree = false;
  const attempt = async (number: number): Promise<T> => {
    if (number === 1) throw FAILED;
    try {
      return await call();
    } catch (next) {
      error = next;
      throw FAILED;
    }
  };
  try {
    return await pRetry(attempt, {
      // A free retry is also allowed after the last one that counts, so the limit is kept below.
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 0,
      shouldConsumeRetry() {
        isFree = options.shouldConsumeRetry?.(error) === false;
        return !isFree;
      },
      async shouldRetry({ retriesConsumed }) {
        if (isFree) return true;
        if (signal?.aborted || retriesConsumed >= retries || !options.shouldRetry(error)) return false;
        const ms = options.pauseMs(retriesConsumed + 1);
        if (ms > 0) await pause(clock, ms, signal);
        return signal?.aborted !== true;
      },
    });
  } catch (caught) {
    // Anything else is a defect of an option.
    throw caught === FAILED ? error : caught;
  }
}

const pause = (clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clock.clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = clock.setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
