/** One call for all who ask meanwhile: what proves a process current, once for all requests under way. */

/** The first lets in the requests that came with this one; the second those that came while answers were given: a whole round of clients shares one call. */
const TURNS_BEFORE_CALL = 2;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Gives a function that calls `call`. While a call is under way, those who ask wait for the next one together: only a call that starts after they asked tells them what
 * was true when they asked. What `call` gives without a promise is handed on at once. Where a call fails, it fails for those who wait for the next one too.
 */
export function coalesceCalls(call: () => void | Promise<void>): () => void | Promise<void> {
  /** Of the last call. */
  let tookTime = false;
  let underWay: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const start = (): void | Promise<void> => {
    next = undefined;
    const answer = call();
    tookTime = answer !== undefined;
    underWay = answer?.finally(() => {
      underWay = undefined;
    });
    return underWay;
  };

  const startNext = async (): Promise<void> => {
    try {
      await underWay;
      for (let turn = 0; turn < TURNS_BEFORE_CALL; turn += 1) await nextTurn();
    } catch (error) {
      // Those who wait have waited long enough, for a call that would fare no better.
      next = undefined;
      throw error;
    }
    return start();
  };

  return () => {
    if (next === undefined && !tookTime) return start();
    next ??= startNext();
    return next;
  };
}
