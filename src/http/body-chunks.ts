/** Reads the chunks of a streamed body while the client is connected and fast enough. */

import type { Clock, Timer } from "../core/clock.js";
import { HttpError } from "./errors.js";
import type { ReadableBody } from "./types.js";

/**
 * How fast a body must arrive. Only the time that is spent waiting for the client counts, not the
 * time that the reader takes to process a chunk.
 */
export interface BodyPace {
  clock: Clock;
  /** Milliseconds to wait for the body; with `bytesPerSecond` also for each further chunk. */
  ms: number;
  /**
   * For uploads: the average rate at which a body earns more time than `ms`. By default it earns
   * none. A fast start earns at most {@link MAX_CREDIT} times `ms`: it must not keep an idle upload
   * alive.
   */
  bytesPerSecond?: number;
}

/** The most time that a client can earn, in multiples of `ms`. */
const MAX_CREDIT = 6;

/** How long the services wait for a JSON body, in milliseconds. */
export const BODY_MS = 10_000;

/**
 * Yields the chunks of a body up to its end. Memory does not grow with the number of chunks.
 *
 * @throws an Error as soon as `signal` aborts, HttpError 408 `request_timeout` for a body slower
 * than `pace`, and every error of the body.
 */
export async function* chunksUntilLeft(
  body: ReadableBody,
  signal: AbortSignal | undefined,
  pace?: BodyPace,
): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  const budget = pace && createTimeBudget(pace);
  let fail = (_error: Error): void => {};
  const onAbort = (): void => fail(new Error("The client has left."));
  signal?.addEventListener("abort", onAbort);
  let isDone = false;
  try {
    for (;;) {
      const stopWaiting = budget?.wait(() => fail(tooSlow()));
      // One promise per step: a promise for the whole body would retain every promise raced with
      // it.
      const step = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        fail = reject;
        if (signal?.aborted) onAbort();
        else iterator.next().then(resolve, reject);
      }).finally(stopWaiting);
      if (step.done === true) {
        isDone = true;
        return;
      }
      budget?.received(step.value.length);
      yield step.value;
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // Not awaited: a generator that waits for its next chunk returns only after that chunk.
    if (!isDone) Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

/** The time that a client has left to send its body. */
interface TimeBudget {
  /** Calls `onTimeout` when the time is over. Returns a function that stops the clock. */
  wait: (onTimeout: () => void) => () => void;
  received: (bytes: number) => void;
}

function createTimeBudget({ clock, ms, bytesPerSecond }: BodyPace): TimeBudget {
  let leftMs = ms;
  return {
    wait(onTimeout) {
      const since = clock.monotonic();
      const timer: Timer = clock.setTimeout(onTimeout, Math.max(0, Math.min(leftMs, ms)));
      return () => {
        clock.clearTimeout(timer);
        leftMs -= clock.monotonic() - since;
      };
    },
    received(bytes) {
      if (bytesPerSecond === undefined) return;
      leftMs = Math.min(leftMs + (bytes / bytesPerSecond) * 1000, MAX_CREDIT * ms);
    },
  };
}

const tooSlow = (): HttpError => new HttpError(408, "request_timeout", "The body did not arrive in time.");
