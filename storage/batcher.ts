/** Merges calls that are made close together into one call with several items. */

export interface Batcher<T, R> {
  /** Resolves with the result for this item; rejects with the error of the call that carried it. */
  add(item: T): Promise<R>;
}

interface QueuedItem<T, R> {
  item: T;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
}

export interface BatcherOptions<T, R> {
  /** Resolves with a result for each item, in their order. */
  run: (items: readonly T[]) => Promise<readonly R[]>;
  /** The most items of one call. */
  maxItems: number;
  /** How many items an item stands for. Default 1. */
  getCount?: ((item: T) => number) | undefined;
  /** The most calls in flight. Items that come meanwhile go with the next call. */
  concurrency: number;
  getBytes?: ((item: T) => number) | undefined;
  /** The most bytes of one call. A single larger item is sent alone. */
  maxBytes?: number | undefined;
}

export function createBatcher<T, R>({
  run,
  maxItems,
  concurrency,
  getCount = () => 1,
  getBytes = () => 0,
  maxBytes = Number.POSITIVE_INFINITY,
}: BatcherOptions<T, R>): Batcher<T, R> {
  let queue: QueuedItem<T, R>[] = [];
  let running = 0;
  let isScheduled = false;

  const takeFromQueue = (): readonly QueuedItem<T, R>[] => {
    let end = 0;
    let count = 0;
    let bytes = 0;
    for (; end < queue.length; end++) {
      const queued = queue[end];
      if (!queued) break;
      count += getCount(queued.item);
      bytes += getBytes(queued.item);
      if (end > 0 && (count > maxItems || bytes > maxBytes)) break;
    }
    const taken = queue.slice(0, end);
    queue = queue.slice(end);
    return taken;
  };

  const runBatch = async (items: readonly QueuedItem<T, R>[]): Promise<void> => {
    try {
      const results = await run(items.map(({ item }) => item));
      items.forEach(({ resolve, reject }, index) => {
        const result = results[index];
        if (result === undefined) reject(new TypeError("a batch returned no result for an item"));
        else resolve(result);
      });
    } catch (error) {
      // Queued items have waited as long, and their call would fail too.
      for (const { reject } of [...items, ...queue.splice(0)]) reject(error);
    }
  };

  const flush = (): void => {
    isScheduled = false;
    while (queue.length > 0 && running < concurrency) {
      running += 1;
      void runBatch(takeFromQueue()).then(() => {
        running -= 1;
        flush();
      });
    }
  };

  return {
    add(item) {
      return new Promise<R>((resolve, reject) => {
        queue.push({ item, resolve, reject });
        if (isScheduled) return;
        isScheduled = true;
        // A lone item need not wait. While calls are in flight, more items are likely to come.
        if (running === 0) queueMicrotask(flush);
        else setImmediate(flush);
      });
    },
  };
}
