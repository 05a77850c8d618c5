/** The chunks of a streamed body, for as long as the client stays. Knows no bound. */

import type { ReadableBody } from "./types.js";

/**
 * Ends without an error only where the body does.
 *
 * Guarantee: holds no more after a million chunks than after one.
 * Errors: an Error as soon as `signal` aborts; what the body throws.
 */
export async function* chunksUntilLeft(
  body: ReadableBody,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  let leave = (): void => {};
  const onAbort = (): void => leave();
  signal?.addEventListener("abort", onAbort);
  let isDone = false;
  try {
    for (;;) {
      // A promise for each step: one for the whole body would keep what it is raced with until the body ends.
      const step = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        leave = () => reject(new Error("The client has left."));
        if (signal?.aborted) leave();
        else iterator.next().then(resolve, reject);
      });
      if (step.done === true) {
        isDone = true;
        return;
      }
      yield step.value;
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // Not awaited: a generator that waits for its next chunk returns only after that chunk.
    if (!isDone) Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
