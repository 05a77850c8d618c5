/** Calls of one turn of the event loop, made as one. */

export interface Batch<T, R> {
  /** Resolves with the result for this item; rejects where the call that carried it failed. */
  add(item: T): Promise<R>;
}

interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * `run` gets up to `most` items, of at most `mostBytes` together (a single larger one goes alone),
 * and resolves with a result for each, in their order. No more than `concurrency` calls are under
 * way; what comes meanwhile goes with the next.
 */
export function createBatch<T, R>({
  run,
  most,
  concurrency,
  bytesOf = () => 0,
  mostBytes = 0,
}: {
  readonly run: (items: readonly T[]) => Promise<readonly R[]>;
  readonly most: number;
  readonly concurrency: number;
  readonly bytesOf?: ((item: T) => number) | undefined;
  readonly mostBytes?: number | undefined;
}): Batch<T, R> {
  let line: Waiting<T, R>[] = [];
  let running = 0;
  let isScheduled = false;

  const next = (): readonly Waiting<T, R>[] => {
    let count = 0;
    for (let bytes = 0; count < Math.min(most, line.length); count++) {
      const waiting = line[count];
      if (!waiting) break;
      bytes += bytesOf(waiting.item);
      if (count > 0 && bytes > mostBytes) break;
    }
    const taken = line.slice(0, count);
    line = line.slice(count);
    return taken;
  };

  const carry = async (items: readonly Waiting<T, R>[]): Promise<void> => {
    try {
      const results = await run(items.map(({ item }) => item));
      items.forEach(({ resolve, reject }, index) => {
        const result = results[index];
        if (result === undefined) reject(new TypeError("a batch gave no result for an item"));
        else resolve(result);
      });
    } catch (error) {
      // Those that wait have waited as long, for a call that would fare no better.
      for (const { reject } of [...items, ...line.splice(0)]) reject(error);
    }
  };

  const flush = (): void => {
    isScheduled = false;
    while (line.length > 0 && running < concurrency) {
      running += 1;
      void carry(next()).then(() => {
        running -= 1;
        flush();
      });
    }
  };

  return {
    add(item) {
      return new Promise<R>((resolve, reject) => {
        line.push({ item, resolve, reject });
        if (isScheduled) return;
        isScheduled = true;
        // Alone it need not wait for others; while calls are under way there will be some.
        if (running === 0) queueMicrotask(flush);
        else setImmediate(flush);
      });
    },
  };
}
