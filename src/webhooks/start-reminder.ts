/**
 * Notices that nobody delivers: the service stores deliveries, is not started itself, and no other
 * process attempts them either.
 */

import type { Clock, Timer } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import type { WebhookStore } from "./store.js";

/**
 * The storage is asked this often, and this many times before the warning: between the storage of a
 * delivery and its claim by another process, a single look would find it due.
 */
const LOOK_EVERY_MS = 20_000;
const LOOKS = 3;

/** A time for which stored deliveries may have waited. */
interface Wait {
  readonly since: number;
  timer: Timer | undefined;
  /** The looks that found a delivery due, and none that a process attempts. */
  idleLooks: number;
}

export interface StartReminder {
  /** Call it when deliveries were stored while the service was not started. */
  readonly expectStart: () => void;
  /** Call it when the service starts. */
  readonly end: () => void;
  /**
   * Returns the milliseconds for which stored deliveries have waited; 0 before the warning, which
   * is given after a minute.
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
  let wait: Wait | undefined;

  const end = (): void => {
    clock.clearTimeout(wait?.timer);
    wait = undefined;
  };

  const look = async (current: Wait): Promise<void> => {
    const stats = await store.stats().catch(() => undefined);
    // `end` was called meanwhile.
    if (wait !== current) return;
    // With a delivery under lease, another process is at work.
    if (stats !== undefined && (stats.due === 0 || stats.leased > 0)) {
      end();
      return;
    }
    if (stats !== undefined) {
      current.idleLooks += 1;
      if (current.idleLooks === LOOKS)
        logger.warn(
          { due: stats.due },
          "deliveries are due and no process attempts them: call start() in one",
        );
    }
    lookLater(current);
  };

  const lookLater = (current: Wait): void => {
    current.timer = clock.setTimeout(() => void look(current), LOOK_EVERY_MS);
    // A process that only emits must be able to end.
    (current.timer as Partial<NodeJS.Timeout>).unref?.();
  };

  return Object.freeze<StartReminder>({
    expectStart() {
      if (wait !== undefined) return;
      wait = { since: clock.monotonic(), timer: undefined, idleLooks: 0 };
      lookLater(wait);
    },
    end,
    waitingMs: () => (wait !== undefined && wait.idleLooks >= LOOKS ? clock.monotonic() - wait.since : 0),
  });
}
