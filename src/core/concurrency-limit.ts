/** Limits how many tasks run at once, and refuses further ones when too many wait. */

import PQueue from "p-queue";

export interface ConcurrencyLimit {
  /**
   * Runs `task` when there is room, and settles like it. Returns `undefined`, and never calls
   * `task`, if too many tasks are waiting.
   */
  readonly run: <T>(task: () => Promise<T>) => Promise<T> | undefined;
}

export function createConcurrencyLimit({
  running,
  waiting,
}: {
  readonly running: number;
  readonly waiting: number;
}): ConcurrencyLimit {
  // Without the options for intervals and timeouts, the queue sets no timer. Time does not affect
  // it.
  const queue = new PQueue({ concurrency: running });
  return {
    run: (task) => (queue.pending >= running && queue.size >= waiting ? undefined : queue.add(task)),
  };
}
