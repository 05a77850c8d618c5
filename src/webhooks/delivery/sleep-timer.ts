/** Wakes the loop at the earliest of the times it was given. */

import type { Clock, Timer } from "../../core/clock.js";

export interface SleepTimer {
  /** Wakes at `at`, in the storage's time, unless an earlier time is set already. */
  readonly wakeAt: (at: number) => void;
  /** The time that is set, if any. */
  readonly dueAt: () => number | undefined;
  readonly cancel: () => void;
}

export function createSleepTimer(clock: Clock, storeNow: () => number, onWake: () => void): SleepTimer {
  let timer: Timer | undefined;
  let dueAt: number | undefined;

  const wake = (): void => {
    timer = undefined;
    dueAt = undefined;
    onWake();
  };

  return Object.freeze<SleepTimer>({
    wakeAt(at) {
      if (dueAt !== undefined && dueAt <= at) return;
      clock.clearTimeout(timer);
      timer = clock.setTimeout(wake, at - storeNow());
      dueAt = at;
    },
    dueAt: () => dueAt,
    cancel() {
      clock.clearTimeout(timer);
      timer = undefined;
      dueAt = undefined;
    },
  });
}
