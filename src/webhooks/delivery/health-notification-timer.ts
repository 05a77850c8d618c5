/** Decides when the loop sends health notifications, and runs one round at a time. */

import type { Logger } from "../../core/logger.js";
import { MAX_RETRY_MS } from "../../core/storage-circuit.js";
import type { WebhookStore } from "../store.js";

export interface HealthNotificationTimerContext {
  readonly store: Pick<WebhookStore, "now" | "maxSleepMs">;
  readonly logger: Logger;
  /**
   * Sends what is due. Resolves with the next due time, or `null` if no health step is scheduled.
   */
  readonly sendHealthNotifications: () => Promise<number | null>;
  /** Called when a round has ended, with the time of the next one. */
  readonly onSent: (nextAt: number) => void;
}

export interface HealthNotificationTimer {
  /** The time of the next round, in the storage's time. */
  readonly dueAt: () => number;
  /** Moves the next round to `at` if it is later. */
  readonly expect: (at: number) => void;
  /** Starts a round if it is due. It runs next to the deliveries: a slow hook delays no claim. */
  readonly startIfDue: () => void;
  readonly isRunning: () => boolean;
  /** Resolves when no round is running. */
  readonly settled: () => Promise<void> | undefined;
}

export function createHealthNotificationTimer({
  store,
  logger,
  sendHealthNotifications,
  onSent,
}: HealthNotificationTimerContext): HealthNotificationTimer {
  let dueAt = 0;
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    let nextAt: number | null;
    try {
      nextAt = await sendHealthNotifications();
    } catch (error) {
      logger.error({ error }, "the storage could not be asked for due health notifications");
      nextAt = store.now() + MAX_RETRY_MS;
    }
    running = undefined;
    // Another process may know of failures that this one does not: look again after `maxSleepMs`.
    dueAt = Math.min(dueAt, nextAt ?? Number.POSITIVE_INFINITY, store.now() + store.maxSleepMs);
    onSent(dueAt);
  };

  return Object.freeze<HealthNotificationTimer>({
    dueAt: () => dueAt,
    expect(at) {
      dueAt = Math.min(dueAt, at);
    },
    startIfDue() {
      if (dueAt > store.now() || running !== undefined) return;
      // A failure that is reported during the round counts for the next one.
      dueAt = Number.POSITIVE_INFINITY;
      running = run();
    },
    isRunning: () => running !== undefined,
    settled: () => running,
  });
}
