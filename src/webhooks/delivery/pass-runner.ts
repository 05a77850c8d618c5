/** Runs the passes of the loop, one after another, while they are requested. */

import type { Clock } from "../../core/clock.js";

export interface PassRunnerContext {
  readonly clock: Clock;
  readonly pass: () => Promise<void>;
  /** Called when a pass fails. `failures` is the number of failed passes before it, in a row. */
  readonly onFailure: (error: unknown, failures: number) => void;
}

export interface PassRunner {
  readonly start: () => void;
  /** No pass begins after this. Resolves when the current one has ended. */
  readonly stop: () => Promise<void>;
  /** Requests a pass. Requests during a pass lead to one more. */
  readonly request: () => void;
  readonly isRunning: () => boolean;
  readonly isPassing: () => boolean;
  /** The number of passes begun so far. */
  readonly count: () => number;
  /** When the last pass began or ended, in monotonic time. */
  readonly passedAt: () => number;
  /** Resolves when no pass is running or requested. Rejects with the error of the last pass. */
  readonly finished: () => Promise<void>;
}

export function createPassRunner({ clock, pass, onFailure }: PassRunnerContext): PassRunner {
  let isRunning = false;
  let isRequested = false;
  let passing: Promise<void> | undefined;
  let passedAt = 0;
  let count = 0;
  let failures = 0;
  let lastError: Error | undefined;

  const runPasses = async (): Promise<void> => {
    passedAt = clock.monotonic();
    while (isRequested && isRunning) {
      // In a later turn of the event loop: one claim then fills all slots that this turn frees.
      await new Promise((resolve) => setImmediate(resolve));
      isRequested = false;
      if (!isRunning) break;
      try {
        count += 1;
        await pass();
        failures = 0;
        lastError = undefined;
      } catch (error) {
        lastError = error instanceof Error ? error : new Error(String(error));
        onFailure(error, failures++);
      }
      passedAt = clock.monotonic();
    }
    passing = undefined;
  };

  return Object.freeze<PassRunner>({
    start() {
      isRunning = true;
      passedAt = clock.monotonic();
    },
    async stop() {
      isRunning = false;
      await passing;
    },
    request() {
      isRequested = true;
      if (isRunning) passing ??= runPasses();
    },
    isRunning: () => isRunning,
    isPassing: () => passing !== undefined,
    count: () => count,
    passedAt: () => passedAt,
    async finished() {
      await passing;
      if (lastError !== undefined) throw lastError;
    },
  });
}
