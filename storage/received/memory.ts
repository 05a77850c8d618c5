/** Remembers events on the heap, for tests and for receivers of one process. */

import type { ReceivedEvents } from "../../src/receiver/received-events.js";

interface Entry {
  until: number;
  isDone: boolean;
}

/** Expired entries are removed when as many more were added. */
const TIDY_EVERY = 1_000;

/**
 * Remembers events in this process. Two receivers that share it share their events.
 *
 * @example
 * const storage = memoryReceived();
 * const receiver = createReceiver({ secrets, storage, onEvent });
 */
export function memoryReceived(): ReceivedEvents {
  const entries = new Map<string, Entry>();
  const cursors = new Map<string, string>();
  let untidied = 0;
  const tidy = (now: number): void => {
    untidied += 1;
    if (untidied < TIDY_EVERY) return;
    untidied = 0;
    for (const [id, { until }] of entries) if (until <= now) entries.delete(id);
  };
  return Object.freeze<ReceivedEvents>({
    async claim({ id, now, leaseUntil }) {
      const entry = entries.get(id);
      if (entry !== undefined && entry.until > now) return entry.isDone ? "done" : "in_flight";
      entries.set(id, { until: leaseUntil, isDone: false });
      tidy(now);
      return "new";
    },
    async confirm({ id, keepUntil }) {
      entries.set(id, { until: keepUntil, isDone: true });
    },
    async release({ id, leaseUntil }) {
      const entry = entries.get(id);
      if (entry?.isDone === false && entry.until === leaseUntil) entries.delete(id);
    },
    readCursor: async (feed) => cursors.get(feed),
    async writeCursor({ feed, cursor }) {
      cursors.set(feed, cursor);
    },
  });
}
