/** Finds the events of an account by their subject and by their tags. */

import type { EventKey, EventRecord } from "../../src/webhooks/store.js";
import { type OrderedRow, OrderedRows } from "./collections.js";

const toKey = ({ subject, tag }: EventKey): string => (subject === undefined ? `t${tag}` : `s${subject}`);

function listKeys({ subject, tags }: EventRecord): string[] {
  const keys = subject === undefined ? [] : [toKey({ subject })];
  if (tags !== undefined) for (const tag of tags) keys.push(toKey({ tag }));
  return keys;
}

/** The most bytes that V8 uses for a text: one per character if all are ASCII, else two. */
export const textBytes = (text: string): number =>
  Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;

/** The heap that an entry takes besides the text of its key, rounded up. */
const ENTRY_BYTES = 300;

/** Returns the counted size of the entries of an event. */
export const indexBytes = (record: EventRecord): number =>
  listKeys(record).reduce((sum, key) => sum + ENTRY_BYTES + textBytes(key), 0);

interface IndexedEvent extends OrderedRow {
  record: EventRecord;
}

export class EventIndex<T extends IndexedEvent> {
  /** A single event stands for itself: most subjects have one, and rows take more of the heap. */
  #byKey = new Map<string, T | OrderedRows<T>>();

  /** Adds an event that comes after all others. */
  add(event: T): void {
    for (const key of listKeys(event.record)) {
      const found = this.#byKey.get(key);
      if (found === undefined) this.#byKey.set(key, event);
      else if (found instanceof OrderedRows) found.add(event);
      else {
        const rows = new OrderedRows<T>();
        rows.add(found);
        rows.add(event);
        this.#byKey.set(key, rows);
      }
    }
  }

  delete(event: T): void {
    for (const key of listKeys(event.record)) {
      const found = this.#byKey.get(key);
      if (found instanceof OrderedRows) found.delete(event);
      if (found === event || (found instanceof OrderedRows && found.size === 0)) this.#byKey.delete(key);
    }
  }

  /** Lists the events with a key before `order`, newest first. */
  before(key: EventKey, order: number): Iterable<T> {
    const found = this.#byKey.get(toKey(key));
    if (found instanceof OrderedRows) return found.before(order);
    return found !== undefined && found.order < order ? [found] : [];
  }
}
