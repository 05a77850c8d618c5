/** Pauses that a stopping process can end early. */

import type { Clock } from "../../core/clock.js";

export interface Pauses {
  /** Resolves after `ms`, or when {@link Pauses.endAll} is called. */
  readonly wait: (ms: number) => Promise<void>;
  readonly endAll: () => void;
}

export function createPauses(clock: Clock): Pauses {
  const running = new Set<() => void>();
  return Object.freeze<Pauses>({
    wait: (ms) =>
      new Promise((resolve) => {
        const end = (): void => {
          clock.clearTimeout(timer);
          running.delete(end);
          resolve();
        };
        const timer = clock.setTimeout(end, ms);
        running.add(end);
      }),
    endAll() {
      for (const end of running) end();
    },
  });
}
