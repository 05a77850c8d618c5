/**
 * Keeps reads up to date: with `strong` each read checks for changes first, with `eventual` a timer
 * polls for them.
 */

import type { Clock, Timer } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { ContentRepository } from "./content-repository.js";

export type Consistency = "strong" | "eventual";

/** With `eventual`, a change of another process is visible after this time at the latest. */
const MAX_AGE_MS = 1_000;
/** Short enough that no read has to wait while the storage responds. */
const POLL_EVERY_MS = MAX_AGE_MS / 2;

export interface ChangePoller {
  /** Called before each read. Returns without a promise if the known content is current enough. */
  current: () => void | Promise<void>;
  /** Starts the timer; does nothing for `strong`. */
  start: () => void;
  stop: () => void;
  /**
   * Returns the milliseconds since the last successful poll, or since the start; 0 while no timer
   * runs.
   */
  behindMs: () => number;
}

export function createChangePoller({
  consistency,
  repository,
  clock,
  logger,
}: {
  consistency: Consistency;
  repository: ContentRepository;
  clock: Clock;
  logger: Logger;
}): ChangePoller {
  if (consistency === "strong") {
    return { current: repository.current, start() {}, stop() {}, behindMs: () => 0 };
  }
  let polledAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;
  let startedAt = 0;

  async function poll(): Promise<void> {
    const requestedAt = clock.monotonic();
    await repository.current();
    polledAt = Math.max(polledAt, requestedAt);
  }

  function arm(): void {
    const current = clock.setTimeout(() => {
      poll()
        .catch((error: unknown) => logger.warn({ error }, "the changes of the content could not be read"))
        .finally(() => {
          if (timer === current) arm();
        });
    }, POLL_EVERY_MS);
    timer = current;
  }

  return {
    current: () => (clock.monotonic() - polledAt <= MAX_AGE_MS ? undefined : poll()),
    start() {
      if (timer !== undefined) return;
      startedAt = clock.monotonic();
      arm();
    },
    stop() {
      clock.clearTimeout(timer);
      timer = undefined;
    },
    behindMs: () => (timer === undefined ? 0 : clock.monotonic() - Math.max(polledAt, startedAt)),
  };
}
