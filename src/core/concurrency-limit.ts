/** Lets a few pieces of work run at once, the others in turn. */

export interface ConcurrencyLimit {
  /**
   * `undefined`, and `work` is never begun, where too much is waiting already. Otherwise settles as
   * `work` does.
   */
  readonly run: <T>(work: () => Promise<T>) => Promise<T> | undefined;
}

export function createConcurrencyLimit({
  running: most,
  waiting: mostWaiting,
}: {
  readonly running: number;
  readonly waiting: number;
}): ConcurrencyLimit {
  let running = 0;
  const waiting: (() => void)[] = [];
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    if (running < most) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes to the next one without being free in between.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
  return {
    run: (work) => (running >= most && waiting.length >= mostWaiting ? undefined : inTurn(work)),
  };
}
