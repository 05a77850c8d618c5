/** The chunks of a streamed body, for as long as the client stays and keeps up. Knows no bound of bytes. */

import type { Clock, Timer } from "../core/clock.js";
import { HttpError } from "./errors.js";
import type { ReadableBody } from "./types.js";

/** How fast a body must arrive. Only waiting for the client counts, not the time that the reader takes with what has come. */
export interface BodyPace {
  readonly clock: Clock;
  /** Milliseconds to wait for the body. If it may go on by `bytesPerSecond`: also for each next chunk. */
  readonly ms: number;
  /**
   * What a body must bring on average to be waited for longer than `ms`: for uploads. Absent: nothing makes the time longer.
   * A fast start earns at most {@link MAX_CREDIT} times `ms`, so that it does not keep an idle upload alive for long.
   */
  readonly bytesPerSecond?: number;
}

/** How many times `ms` the client may have left to wait. */
const MAX_CREDIT = 6;

/** How long the services wait for a JSON body. */
export const BODY_MS = 10_000;

/**
 * Ends without an error only where the body does.
 *
 * Guarantee: holds no more after a million chunks than after one.
 * Errors: an Error as soon as `signal` aborts; HttpError 408 `request_timeout` for a body slower than `pace`; what the body throws.
 */
export async function* chunksUntilLeft(
  body: ReadableBody,
  signal: AbortSignal | undefined,
  pace?: BodyPace,
): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  const patience = pace && patienceOf(pace);
  let fail = (_error: Error): void => {};
  const onAbort = (): void => fail(new Error("The client has left."));
  signal?.addEventListener("abort", onAbort);
  let isDone = false;
  try {
    for (;;) {
      const stopWaiting = patience?.wait(() => fail(tooSlow()));
      // A promise for each step: one for the whole body would keep what it is raced with until the body ends.
      const step = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        fail = reject;
        if (signal?.aborted) onAbort();
        else iterator.next().then(resolve, reject);
      }).finally(stopWaiting);
      if (step.done === true) {
        isDone = true;
        return;
      }
      patience?.received(step.value.length);
      yield step.value;
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // Not awaited: a generator that waits for its next chunk returns only after that chunk.
    if (!isDone) Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

interface Patience {
  /** Calls `onTimeout` when the client may not take longer; what it returns ends the waiting. */
  readonly wait: (onTimeout: () => void) => () => void;
  readonly received: (bytes: number) => void;
}

function patienceOf({ clock, ms, bytesPerSecond }: BodyPace): Patience {
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
