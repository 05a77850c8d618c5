/**
 * Caches events that this process has stored, in the form in which claims read them, so that their
 * bodies are not read back from Redis.
 */

import { LRUCache } from "lru-cache";
import type { StoredEvent } from "./event-codec.js";

/**
 * The bound for all partitions together. Most payloads are ASCII, so that a character takes a byte.
 */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/**
 * The approximate size of an entry besides its texts, so that many small events stay within the
 * bound.
 */
const ENTRY_CHARACTERS = 500;

interface Entry {
  readonly stored: StoredEvent;
  readonly origin: Origin;
  readonly until: number;
}

/**
 * Where an event was stored: the mark of the data set, and the connection. A Redis that comes back
 * with older data, from a file or by a failover, has the same mark. It may have lost the event and
 * stored another one with its id.
 */
export interface Origin {
  readonly mark: string;
  readonly connection: number;
}

export interface EventCache {
  /** `until`: from then on, another event may have the id. */
  add(short: string, stored: StoredEvent, origin: Origin, until: number): void;
  /** Returns the event of an account if it was stored there. `short`: the encoded id. */
  get(account: string, short: string, origin: Origin, now: number): StoredEvent | undefined;
  clear(): void;
}

/**
 * The key has the name of the account, not its number: once Redis was emptied, another account may
 * get the number.
 */
const toKey = (account: string, short: string): string => `${short}${account}`;

export function createEventCache(maxCharacters = MAX_CHARACTERS): EventCache {
  const entries = new LRUCache<string, Entry>({ maxSize: maxCharacters });
  return {
    add(short, stored, origin, until) {
      const { account, type, digest, payload } = stored.event;
      const size = payload.length + digest.length + type.length + account.length + ENTRY_CHARACTERS;
      entries.set(toKey(account, short), { stored, origin, until }, { size });
    },
    get(account, short, { mark, connection }, now) {
      const entry = entries.get(toKey(account, short));
      if (entry === undefined || now >= entry.until) return undefined;
      const isSame = entry.origin.mark === mark && entry.origin.connection === connection;
      return isSame ? entry.stored : undefined;
    },
    clear: () => entries.clear(),
  };
}
