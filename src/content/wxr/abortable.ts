/** Waits that a signal ends, though what is waited for never comes. Knows no file. */

/** As `promise`; rejects with the reason of `signal` once that is aborted. Leaves nothing on `signal`. */
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

/** What `source` gives, until `signal` is aborted: then it throws its reason, and does not wait for a source that is silent. */
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
    // A source that waits for its next bytes ends after them only.
    if (signal?.aborted) Promise.resolve(ended).catch(() => {});
    else await ended;
  }
}
