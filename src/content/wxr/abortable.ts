/** Makes promises and iterations abortable, even if their source never responds. */

/**
 * Settles like `promise`, but rejects with the reason of `signal` once that is aborted. Removes its
 * listener from `signal`.
 */
export async function abortable<T>(promise: T | PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let stop = (): void => {};
  try {
    return await new Promise<T>((resolve, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop);
      Promise.resolve(promise).then(resolve, reject);
      if (signal.aborted) stop();
    });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/**
 * Yields the values of `source`. Once `signal` is aborted, it throws the reason without waiting for
 * the source.
 */
export async function* abortableIteration<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  const steps = source[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const step = await abortable(steps.next(), signal);
      isOver = step.done === true;
      if (step.done) return;
      yield step.value;
    }
  } catch (error) {
    isOver = !signal?.aborted;
    throw error;
  } finally {
    const ended = isOver ? undefined : steps.return?.();
    // A source that waits for its next bytes can only end after them.
    if (signal?.aborted) Promise.resolve(ended).catch(() => {});
    else await ended;
  }
}
