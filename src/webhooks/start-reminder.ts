/**
 * Notices that nobody delivers: the service stores deliveries, is not started itself, and no other
 * process attempts them either. If the process ends first, the warning is logged at its exit.
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
  since: number;
  timer: Timer | undefined;
  /** The looks that found a delivery due, and none that a process attempts. */
  idleLooks: number;
}

/** Say at the end of the process that nothing was delivered. All services share one listener. */
const warnings = new Set<() => void>();

const warnAtExit = (): void => {
  for (const warn of warnings) warn();
};

export interface StartReminder {
  /**
   * Call it when deliveries were stored or became due. `events`: how many new events they are of.
   * Does nothing while the service is started.
   */
  expectStart: (events: number) => void;
  /** Call it when the host calls `start` or `stop`: nothing is to be said at the end any more. */
  dismissAtExit: () => void;
  started: () => void;
  stopped: () => void;
  /**
   * Returns the milliseconds for which stored deliveries have waited; 0 before the warning, which
   * is given after a minute.
   */
  waitingMs: () => number;
}

/** @param options.warnsAtExit whether to warn when the process ends. */
export function createStartReminder({
  store,
  clock,
  logger,
  warnsAtExit,
}: {
  store: Pick<WebhookStore, "stats">;
  clock: Clock;
  logger: Logger;
  warnsAtExit: boolean;
}): StartReminder {
  let wait: Wait | undefined;
  let events = 0;
  /** True once the host has shown that it knows, or that others deliver. */
  let isDismissed = !warnsAtExit;
  let isStarted = false;

  const warn = (): void =>
    logger.warn(
      { events },
      "start() was never called, so this process delivered none of its events: call start(), or stop() at the end of a process that only emits",
    );

  const dismissAtExit = (): void => {
    isDismissed = true;
    if (warnings.delete(warn) && warnings.size === 0) process.removeListener("exit", warnAtExit);
  };

  const end = (): void => {
    clock.clearTimeout(wait?.timer);
    wait = undefined;
  };

  const look = async (current: Wait): Promise<void> => {
    const stats = await store.stats().catch(() => undefined);
    // The service was started meanwhile.
    if (wait !== current) return;
    // With a delivery under lease, another process is at work.
    if (stats !== undefined && (stats.due === 0 || stats.leased > 0)) {
      dismissAtExit();
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
    expectStart(count) {
      if (isStarted) return;
      events += count;
      if (!isDismissed && count > 0) {
        if (warnings.size === 0) process.once("exit", warnAtExit);
        warnings.add(warn);
      }
      if (wait !== undefined) return;
      wait = { since: clock.monotonic(), timer: undefined, idleLooks: 0 };
      lookLater(wait);
    },
    dismissAtExit,
    started() {
      isStarted = true;
      end();
    },
    stopped() {
      isStarted = false;
      dismissAtExit();
    },
    waitingMs: () => (wait !== undefined && wait.idleLooks >= LOOKS ? clock.monotonic() - wait.since : 0),
  });
}
