/** Runs the passes of the worker: one after another, when one is requested or a time has come. */

import { AsyncResource } from "node:async_hooks";
import type { Clock, Timer } from "../../core/clock.js";
import { storageRetryDelayMs } from "../../core/storage-circuit.js";

/** The state of the passes and of the storage, for health checks. */
export interface LoopStats {
  readonly isRunning: boolean;
  /** Milliseconds since the current pass began or should have begun: near 0 while all is well. */
  readonly overdueMs: number;
  /** True if the next pass waits for a free slot. `overdueMs` then counts from the last pass. */
  readonly isFull: boolean;
  /** Milliseconds since every claim and settlement has failed; 0 if the last one succeeded. */
  readonly storageDownMs: number;
}

export interface Passes {
  readonly start: () => void;
  /** No pass begins after this. Resolves when the current one has ended. */
  readonly stop: () => Promise<void>;
  /** Requests a pass. Requests during a pass lead to one more. */
  readonly request: () => void;
  /** Requests a pass at a time of the storage, now if it has passed. Only the earliest counts. */
  readonly requestAt: (at: number) => void;
  readonly isRunning: () => boolean;
  /**
   * Does work of the worker in the async context of `start`, as passes are done. What the host
   * keeps there, such as its tenant, must not depend on the request that caused the work.
   */
  readonly inContext: (work: () => void) => void;
  /**
   * Requests a pass and waits until none is running or requested. Resolves with `true` if one began
   * meanwhile. Rejects with the error of the last pass.
   */
  readonly finish: () => Promise<boolean>;
  readonly stats: () => Omit<LoopStats, "storageDownMs">;
}

/**
 * @param now the time of the storage.
 * @param pass a pass that rejects is repeated, with longer and longer pauses.
 */
export function createPasses(clock: Clock, now: () => number, pass: () => Promise<void>): Passes {
  let isRunning = false;
  let isRequested = false;
  let passing: Promise<void> | undefined;
  let count = 0;
  /** When the last pass began or ended, in monotonic time. */
  let passedAt = 0;
  let failures = 0;
  let lastError: Error | undefined;
  let timer: Timer | undefined;
  let sleepsUntil: number | undefined;
  let context = new AsyncResource("DeliveryWorker");

  const run = async (): Promise<void> => {
    passedAt = clock.monotonic();
    while (isRequested && isRunning) {
      // In a later turn of the event loop: one claim then fills all slots that this turn frees.
      await new Promise((resolve) => setImmediate(resolve));
      isRequested = false;
      if (!isRunning) break;
      count += 1;
      try {
        await pass();
        failures = 0;
        lastError = undefined;
      } catch (error) {
        lastError = error instanceof Error ? error : new Error(String(error));
        requestAt(now() + storageRetryDelayMs(failures++));
      }
      passedAt = clock.monotonic();
    }
    passing = undefined;
  };

  const request = (): void => {
    isRequested = true;
    if (isRunning) passing ??= context.runInAsyncScope(run);
  };

  const requestAt = (at: number): void => {
    if (at <= now()) {
      request();
      return;
    }
    if (!isRunning || (sleepsUntil !== undefined && sleepsUntil <= at)) return;
    clock.clearTimeout(timer);
    sleepsUntil = at;
    timer = clock.setTimeout(() => {
      sleepsUntil = undefined;
      request();
    }, at - now());
  };

  return Object.freeze<Passes>({
    start() {
      isRunning = true;
      context = new AsyncResource("DeliveryWorker");
      passedAt = clock.monotonic();
      request();
    },
    async stop() {
      isRunning = false;
      clock.clearTimeout(timer);
      sleepsUntil = undefined;
      await passing;
    },
    request,
    requestAt,
    isRunning: () => isRunning,
    inContext: (work) => context.runInAsyncScope(work),
    async finish() {
      const before = count;
      request();
      await passing;
      if (lastError !== undefined) throw lastError;
      return passing === undefined && count > before;
    },
    stats() {
      const until = passing === undefined ? sleepsUntil : undefined;
      return {
        isRunning,
        overdueMs: until === undefined ? clock.monotonic() - passedAt : Math.max(0, now() - until),
        isFull: passing === undefined && until === undefined,
      };
    },
  });
}
