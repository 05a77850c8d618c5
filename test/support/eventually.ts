/** Waits for sockets, processes and servers, which no injected clock moves. */

import { setTimeout as sleep } from "node:timers/promises";

const MAX_LOOKS = 10_000;
const PAUSE_MS = 5;

/**
 * Resolves once `condition` holds. Counts how often it looks, so that a busy machine, on which each
 * look takes longer, also waits longer.
 */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what = condition.toString(),
): Promise<void> {
  for (let looks = 0; !(await condition()); looks++) {
    if (looks === MAX_LOOKS) throw new Error(`Never came true: ${what}`);
    await sleep(PAUSE_MS);
  }
}
