/** Lets a few jobs run at a time, and a bounded number wait. */

export interface Turns {
  /** Runs `job` when it is its turn. `undefined`, and `job` is never run, where as many wait already as may. */
  readonly take: <T>(job: () => Promise<T>) => Promise<T | undefined>;
}

export function createTurns({
  atOnce,
  waiting,
}: {
  readonly atOnce: number;
  readonly waiting: number;
}): Turns {
  const queue: (() => void)[] = [];
  let running = 0;
  return {
    async take(job) {
      if (running >= atOnce) {
        if (queue.length >= waiting) return undefined;
        // The place of the one that ends goes on to the first that waits.
        await new Promise<void>((begin) => queue.push(begin));
      } else running += 1;
      try {
        return await job();
      } finally {
        const next = queue.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}
