/** Reads the gauges of all services when metrics are collected. */

import type { Reading } from "../src/core/telemetry.js";

export interface Readers {
  add(read: () => Promise<readonly Reading[]>): () => void;
  /**
   * Returns the sums over all services of readings with the same labels. Concurrent calls are
   * coalesced. Never rejects.
   */
  read(): Promise<Reading[]>;
}

export function createReaders(): Readers {
  const all = new Set<() => Promise<readonly Reading[]>>();
  let inFlight: Promise<Reading[]> | undefined;

  const readAll = async (): Promise<Reading[]> => {
    const sums = new Map<string, Reading>();
    for (const result of await Promise.allSettled([...all].map((read) => read()))) {
      for (const reading of result.status === "fulfilled" ? result.value : []) {
        const key = JSON.stringify([reading.metric, reading.labels]);
        const found = sums.get(key)?.value ?? 0;
        sums.set(key, { ...reading, value: found + reading.value });
      }
    }
    return [...sums.values()];
  };

  return {
    add(read) {
      // Wrapped, because the same function may be added twice.
      const wrapped = (): Promise<readonly Reading[]> => read();
      all.add(wrapped);
      return () => void all.delete(wrapped);
    },
    read() {
      inFlight ??= readAll().finally(() => {
        inFlight = undefined;
      });
      return inFlight;
    },
  };
}
