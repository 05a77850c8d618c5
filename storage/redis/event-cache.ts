/** Events that this process stored lately, as a claim would read them, so that their bodies are not fetched back. */

import { LRUCache } from "lru-cache";
import type { StoredEvent } from "./texts.js";

/** Bounds the memory of all partitions together. Most payloads are ASCII, of which a character takes a byte. */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/** Roughly what an entry takes beside its texts, so that small events cannot grow without a bound. */
const ENTRY_CHARACTERS = 500;

interface Entry {
  readonly stored: StoredEvent;
  /** Of the data set that the event was stored in. */
  readonly mark: string;
  readonly until: number;
}

export interface EventCache {
  /** `until`: from then on the id may be free for an event with other content. */
  add(short: string, stored: StoredEvent, mark: string, until: number): void;
  /** The event of an account, if it was stored in the data set that `mark` names. `short`: the id as it is stored. */
  get(account: string, short: string, mark: string, now: number): StoredEvent | undefined;
  clear(): void;
}

/** The name of an account, not its number: a number may be given to another account once Redis was emptied. */
const keyOf = (account: string, short: string): string => `${short}${account}`;

export function createEventCache(maxCharacters = MAX_CHARACTERS): EventCache {
  const entries = new LRUCache<string, Entry>({ maxSize: maxCharacters });
  return {
    add(short, stored, mark, until) {
      const { account, type, digest, payload } = stored.event;
      const size = payload.length + digest.length + type.length + account.length + ENTRY_CHARACTERS;
      entries.set(keyOf(account, short), { stored, mark, until }, { size });
    },
    get(account, short, mark, now) {
      const entry = entries.get(keyOf(account, short));
      return entry !== undefined && entry.mark === mark && now < entry.until ? entry.stored : undefined;
    },
    clear: () => entries.clear(),
  };
}
