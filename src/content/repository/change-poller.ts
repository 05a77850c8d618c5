/** How current an answer is: proved for every request, or only so old. */

import type { Clock, Timer } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { ContentRepository } from "./content-repository.js";

export type Consistency = "strong" | "eventual";

/** What others changed is seen after this time at the latest, where reads need not prove themselves current. */
const MAX_AGE_MS = 1_000;
/** Often enough that, while the storage answers, nobody has to wait for it. */
const FOLLOW_EVERY_MS = MAX_AGE_MS / 2;

export interface ChangePoller {
  /** Before a read is answered. Nothing to wait for where what this process knows will do. */
  readonly current: () => void | Promise<void>;
  /** Follows the changes by a timer, where reads do not. */
  readonly start: () => void;
  readonly stop: () => void;
  /** Milliseconds since a look at the changes succeeded that the timer took, or since its start; 0 where no timer has to. */
  readonly behindMs: () => number;
}

export interface ChangePollerOptions {
  readonly consistency: Consistency;
  readonly library: Pick<ContentRepository, "current">;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createChangePoller({
  consistency,
  library,
  clock,
  logger,
}: ChangePollerOptions): ChangePoller {
  if (consistency === "strong") return { current: library.current, start() {}, stop() {}, behindMs: () => 0 };
  let seenAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;
  let startedAt = 0;

  async function look(): Promise<void> {
    const askedAt = clock.monotonic();
    await library.current();
    seenAt = Math.max(seenAt, askedAt);
  }

  function arm(): void {
    const own = clock.setTimeout(() => {
      look()
        .catch((error: unknown) =>
          logger.warn({ error }, "the changes of the content could not be asked for"),
        )
        .finally(() => {
          if (timer === own) arm();
        });
    }, FOLLOW_EVERY_MS);
    timer = own;
  }

  return {
    current: () => (clock.monotonic() - seenAt <= MAX_AGE_MS ? undefined : look()),
    start() {
      if (timer !== undefined) return;
      startedAt = clock.monotonic();
      arm();
    },
    stop() {
      clock.clearTimeout(timer);
      timer = undefined;
    },
    behindMs: () => (timer === undefined ? 0 : clock.monotonic() - Math.max(seenAt, startedAt)),
  };
}
