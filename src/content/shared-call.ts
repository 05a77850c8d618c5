/** One call for all who ask meanwhile: what proves a process current, once for all requests under way. */

/**
 * Gives a function that calls `call`. While a call is under way, those who ask wait for the next one together: only a call that starts after they asked tells them what
 * was true when they asked. What `call` gives without a promise is handed on at once.
 * Where a call fails, it fails for those who wait for the next one too.
 */
export function sharedCall(call: () => void | Promise<void>): () => void | Promise<void> {
  let underWay: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const start = (): void | Promise<void> => {
    const answer = call();
    if (answer === undefined) return;
    underWay = answer.finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
  const startNext = (): void | Promise<void> => {
    next = undefined;
    return start();
  };
  /** Those who wait have waited long enough, for a call that would fare no better. */
  const giveUp = (error: unknown): never => {
    next = undefined;
    throw error;
  };

  return () => {
    if (next === undefined && underWay === undefined) return start();
    next ??= underWay?.then(startNext, giveUp);
    return next;
  };
}
