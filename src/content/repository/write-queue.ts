/** Runs the changes of one process one after the other. */

export type WriteQueue = <T>(task: () => Promise<T>) => Promise<T>;

/**
 * Returns a function that runs tasks in the order of its calls, each after the one before has
 * ended. A task that fails does not fail the next one.
 *
 * Changes that ran at the same time would only make each other's commits conflict.
 */
export function createWriteQueue(): WriteQueue {
  let last: Promise<unknown> = Promise.resolve();
  return (task) => {
    const result = last.then(task);
    last = result.catch(() => {});
    return result;
  };
}
