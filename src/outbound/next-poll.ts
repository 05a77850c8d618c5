/** Calls back after the event loop has polled for new bytes. */

export interface NextPoll {
  readonly add: (callback: () => void) => void;
}

/**
 * Uses one chain of `setImmediate` for all callbacks. Each runs in the second one after it was
 * added: the first belongs to the same turn as a read, and the event loop polls for new bytes only
 * after it.
 */
export function createNextPoll(): NextPoll {
  let added: (() => void)[] = [];
  let isScheduled = false;

  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(takeTurn, []);
  };

  const takeTurn = (due: readonly (() => void)[]): void => {
    const next = added;
    added = [];
    isScheduled = next.length > 0;
    if (isScheduled) setImmediate(takeTurn, next);
    for (const callback of due) callback();
  };

  return Object.freeze<NextPoll>({
    add(callback) {
      added.push(callback);
      schedule();
    },
  });
}
