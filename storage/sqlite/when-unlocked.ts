/** Waits for the lock of a SQLite file without blocking the event loop. */

import type { Clock } from "../../src/core/clock.js";
import { isBusy } from "./errors.js";

/** How long a process waits for the lock of another one, and how often it asks. */
const BUSY_MS = 3_000;
const RETRY_MS = 2;
const MAX_RETRY_MS = 50;

/** Tries until no other connection holds the lock. Rejects with the error of the last try. */
export async function whenUnlocked<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  const until = clock.monotonic() + BUSY_MS;
  for (let delay = RETRY_MS; ; delay = Math.min(2 * delay, MAX_RETRY_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= until) throw error;
      const pause = delay * (0.5 + clock.random());
      await new Promise<void>((resolve) => {
        clock.setTimeout(resolve, pause);
      });
    }
  }
}
