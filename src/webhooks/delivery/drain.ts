/**
 * Delivers what is due within bounds, for hosts whose processes live for one request or one job.
 */

import type { Clock } from "../../core/clock.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import type { DrainLimit } from "./slots.js";
import type { DeliveryWorker } from "./worker.js";

/** The argument of `webhooks.drain`, where it is described. */
export interface DrainOptions {
  forMs?: number | undefined;
  deliveries?: number | undefined;
}

/** The same, complete and checked. */
export interface DrainBounds {
  forMs: number;
  deliveries: number;
}

export interface Drained {
  attempted: number;
  isEmpty: boolean;
}

const BOUNDS = {
  forMs: { max: 3_600_000, byDefault: 20_000 },
  deliveries: { max: 1_000_000, byDefault: 10_000 },
} as const;

/** Returns the bounds of a drain. Throws `invalid_argument`. */
export function readDrainOptions(options: DrainOptions = {}): DrainBounds {
  const checked = readCallArguments("drain", options, ["forMs", "deliveries"]);
  const read = (field: keyof typeof BOUNDS): number => {
    const { max, byDefault } = BOUNDS[field];
    const { [field]: value = byDefault } = checked;
    if (Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new PostbellError(
      "invalid_argument",
      `${field} must be a whole number from 1 to ${max} (got ${String(value).slice(0, 40)}).`,
      { field },
    );
  };
  return { forMs: read("forMs"), deliveries: read("deliveries") };
}

/**
 * Runs a worker until nothing is due, the time is over or the limit is reached. Resolves with true
 * if nothing is due. The worker is left running: to stop it waits for the attempts in flight, and
 * gives back what was not attempted.
 *
 * @throws the error of an unavailable storage.
 */
export async function drain(
  worker: DeliveryWorker,
  clock: Clock,
  { forMs, limit }: { forMs: number; limit: DrainLimit },
): Promise<boolean> {
  worker.start(limit);
  const idle = worker.idle().then(
    () => !limit.isReached,
    (error: unknown) => {
      // The host has called stop() meanwhile, or the time is over.
      if (isPostbellError(error, "not_started")) return false;
      throw error;
    },
  );
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => resolve(false), forMs);
    void idle.then(resolve, reject).finally(() => clock.clearTimeout(timer));
  });
}
