/** Limits how many tasks run at once, and refuses further ones when too many wait. */

import { AsyncResource } from "node:async_hooks";
import PQueue from "p-queue";

export interface ConcurrencyLimit {
  /**
   * Runs `task` when there is room, and settles like it. Returns `undefined`, and never calls
   * `task`, if too many tasks are waiting. The task keeps the async context of its caller.
   */
  run: <T>(task: () => Promise<T>) => Promise<T> | undefined;
}

export function createConcurrencyLimit({
  running,
  waiting,
}: {
  running: number;
  waiting: number;
}): ConcurrencyLimit {
  // Without the options for intervals and timeouts, the queue sets no timer. Time does not affect
  // it.
  const queue = new PQueue({ concurrency: running });
  return {
    run(task) {
      if (queue.pending >= running && queue.size >= waiting) return undefined;
      // A waiting task begins in the async context of the task that ended before it. A host that
      // keeps its tenant in an AsyncLocalStorage would see the one of another request.
      return queue.add(AsyncResource.bind(task));
    },
  };
}
