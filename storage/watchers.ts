/** The listeners of one process that wait for work: the `watch` of a storage. */

import type { WebhookStore } from "../src/webhooks/store.js";

export interface Watchers {
  watch: WebhookStore["watch"];
  /** Tells every listener that something may be due at `at`. */
  notify: (at: number) => void;
}

export function createWatchers(): Watchers {
  const listeners = new Set<(at: number) => void>();
  return {
    watch(listener) {
      // One listener may be added twice; each is removed separately.
      const call = (at: number): void => listener(at);
      listeners.add(call);
      return () => {
        listeners.delete(call);
      };
    },
    notify(at) {
      for (const listener of listeners) listener(at);
    },
  };
}
