/**
 * Events that this process stored lately, as a claim would read them, so that their bodies are not
 * fetched back.
 */

import { LRUCache } from "lru-cache";
import type { StoredEvent } from "./event-codec.js";

/**
 * Bounds the memory of all partitions together. Most payloads are ASCII, of which a character takes
 * a byte.
 */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/**
 * Roughly what an entry takes beside its texts, so that small events cannot grow without a bound.
 */
const ENTRY_CHARACTERS = 500;

interface Entry {
  readonly stored: StoredEvent;
  readonly origin: Origin;
  readonly until: number;
}

/**
 * Where an event was stored: the mark of the data set, and the connection. A Redis that comes back
 * with older data, from a file or by a failover, has the same mark, but may have lost the event and
 * taken another one with its id.
 */
export interface Origin {
  readonly mark: string;
  readonly connection: number;
}

export interface EventCache {
  /** `until`: from then on the id may be free for an event with other content. */
  add(short: string, stored: StoredEvent, origin: Origin, until: number): void;
  /** The event of an account, if it was stored there. `short`: the id as it is stored. */
  get(account: string, short: string, origin: Origin, now: number): StoredEvent | undefined;
  clear(): void;
}

/**
 * The name of an account, not its number: a number may be given to another account once Redis was
 * emptied.
 */
const keyOf = (account: string, short: string): string => `${short}${account}`;

export function createEventCache(maxCharacters = MAX_CHARACTERS): EventCache {
  const entries = new LRUCache<string, Entry>({ maxSize: maxCharacters });
  return {
    add(short, stored, origin, until) {
      const { account, type, digest, payload } = stored.event;
      const size = payload.length + digest.length + type.length + account.length + ENTRY_CHARACTERS;
      entries.set(keyOf(account, short), { stored, origin, until }, { size });
    },
    get(account, short, { mark, connection }, now) {
      const entry = entries.get(keyOf(account, short));
      if (entry === undefined || now >= entry.until) return undefined;
      const isSame = entry.origin.mark === mark && entry.origin.connection === connection;
      return isSame ? entry.stored : undefined;
    },
    clear: () => entries.clear(),
  };
}
