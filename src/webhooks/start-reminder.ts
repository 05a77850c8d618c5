/**
 * Notices that nobody delivers: the service stores deliveries, is not started itself, and no other
 * process attempts them either.
 */

import type { Clock, Timer } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import type { WebhookStore } from "./store.js";

/** Time to start for this process, or for one that delivers instead. */
const PATIENCE_MS = 60_000;

export interface StartReminder {
  /** Call it when deliveries were stored while the service was not started. */
  readonly expectStart: () => void;
  /** Call it when the service starts. */
  readonly end: () => void;
  /**
   * Returns the milliseconds for which stored deliveries have waited; 0 unless the storage was
   * asked and has due deliveries.
   */
  readonly waitingMs: () => number;
}

export function createStartReminder({
  store,
  clock,
  logger,
}: {
  readonly store: Pick<WebhookStore, "stats">;
  readonly clock: Clock;
  readonly logger: Logger;
}): StartReminder {
  let timer: Timer | undefined;
  let waitingSince: number | undefined;
  let isWarned = false;

  const end = (): void => {
    clock.clearTimeout(timer);
    timer = undefined;
    waitingSince = undefined;
    isWarned = false;
  };

  const look = async (): Promise<void> => {
    const stats = await store.stats().catch(() => undefined);
    if (waitingSince === undefined) return;
    // With a delivery under lease, another process is at work.
    const isWaiting = stats !== undefined && stats.due > 0 && stats.leased === 0;
    if (stats !== undefined && !isWaiting) {
      end();
      return;
    }
    if (isWaiting && !isWarned) {
      isWarned = true;
      logger.warn({ due: stats.due }, "deliveries are due and no process attempts them: call start() in one");
    }
    lookLater();
  };

  const lookLater = (): void => {
    timer = clock.setTimeout(() => void look(), PATIENCE_MS);
    // A process that only emits must be able to end.
    (timer as Partial<NodeJS.Timeout>).unref?.();
  };

  return Object.freeze<StartReminder>({
    expectStart() {
      if (waitingSince !== undefined) return;
      waitingSince = clock.monotonic();
      lookLater();
    },
    end,
    waitingMs: () => (isWarned && waitingSince !== undefined ? clock.monotonic() - waitingSince : 0),
  });
}
