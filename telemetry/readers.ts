/** The services whose gauges are read when somebody looks. Knows no format. */

import type { Reading } from "../src/core/telemetry.js";

export interface Readers {
  add(read: () => Promise<readonly Reading[]>): () => void;
  /** The sums over all services, of readings with the same labels. Those who ask at the same time share one look. Never rejects. */
  read(): Promise<readonly Reading[]>;
}

export function createReaders(): Readers {
  const all = new Set<() => Promise<readonly Reading[]>>();
  let underWay: Promise<readonly Reading[]> | undefined;

  const readAll = async (): Promise<readonly Reading[]> => {
    const sums = new Map<string, Reading>();
    for (const result of await Promise.allSettled([...all].map((read) => read()))) {
      for (const reading of result.status === "fulfilled" ? result.value : []) {
        const key = JSON.stringify([reading.metric, reading.labels]);
        const known = sums.get(key)?.value ?? 0;
        sums.set(key, { ...reading, value: known + reading.value });
      }
    }
    return [...sums.values()];
  };

  return {
    add(read) {
      // A function of its own, since the same one may be added twice.
      const own = (): Promise<readonly Reading[]> => read();
      all.add(own);
      return () => void all.delete(own);
    },
    read() {
      underWay ??= readAll().finally(() => {
        underWay = undefined;
      });
      return underWay;
    },
  };
}
