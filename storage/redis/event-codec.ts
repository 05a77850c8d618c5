/** Decodes stored events. append.lua writes them. */

import { LRUCache } from "lru-cache";
import type { EventRecord } from "../../src/webhooks/store.js";
import { copyEvent } from "../queue/append.js";
import { decodeStoredText } from "../stored-text.js";
import { decodeText, encodeText } from "./text-codec.js";

/** A stored event. */
export interface StoredEvent {
  readonly event: EventRecord;
  readonly createdAt: number;
}

/**
 * Encodes the type of an event with its subject and its tags, if it has any: `type`,
 * `type,subject`, `type,subject,tag,tag`, or `type,,tag` without a subject. Encoded
 * texts have no commas.
 */
export function encodeLabel({ type, subject, tags }: Pick<EventRecord, "type" | "subject" | "tags">): string {
  if (tags !== undefined) return [type, subject ?? "", ...tags].map(encodeText).join(",");
  return subject === undefined ? encodeText(type) : `${encodeText(type)},${encodeText(subject)}`;
}

export function decodeLabel(label: string): Pick<EventRecord, "type" | "subject" | "tags"> {
  const [type = "", subject = "", ...tags] = label.split(",");
  return {
    type: decodeText(type),
    ...(subject !== "" && { subject: decodeText(subject) }),
    ...(tags.length > 0 && { tags: tags.map(decodeText) }),
  };
}

/** Returns the time that an order begins with. */
export const decodeOrderTime = (order: string): number => Number.parseInt(order.slice(0, 11), 16);

/** The first line of `order,remember until,nonce,webhooks⏎digest⏎label⏎payload`. */
const EVENT_HEAD = /^([0-9a-f]{15}),\d+,[^\n]*$/i;

/** Returns `undefined` if the text is not a stored event. */
export function decodeEvent(text: string, account: string, id: string): StoredEvent | undefined {
  const headEnd = text.indexOf("\n");
  const digestAt = headEnd + 1;
  const typeAt = text.indexOf("\n", digestAt) + 1;
  const payloadAt = text.indexOf("\n", typeAt) + 1;
  const [, order = ""] = EVENT_HEAD.exec(text.slice(0, Math.max(0, headEnd))) ?? [];
  if (order === "" || typeAt === 0 || payloadAt === 0) return undefined;
  try {
    const event = copyEvent({
      id,
      account,
      ...decodeLabel(text.slice(typeAt, payloadAt - 1)),
      digest: JSON.parse(text.slice(digestAt, typeAt - 1)) as string,
      payload: decodeStoredText(text.slice(payloadAt)),
    });
    return { event, createdAt: decodeOrderTime(order) };
  } catch {
    return undefined;
  }
}

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
  stored: StoredEvent;
  origin: Origin;
  until: number;
}

/**
 * Where an event was stored: the data set, and the connection. A Redis that comes back with older
 * data, from a file or by a failover, is the same data set. It may have lost the event and stored
 * another one with its id.
 */
export interface Origin {
  readonly dataSet: string;
  readonly connection: number;
}

export interface EventCache {
  /**
   * `short`: the encoded id. `account`: the number of its account. `until`: from then on, another
   * event may have the id.
   */
  add(
    short: string,
    account: string,
    stored: StoredEvent,
    { origin, until }: { origin: Origin; until: number },
  ): void;
  /**
   * Returns the event of an account if it was stored there. `field`: the number of the account, a
   * slash and the encoded id.
   */
  get(account: string, field: string, origin: Origin, now: number): StoredEvent | undefined;
  clear(): void;
}

/**
 * The key has the name of the account and its number. Once Redis was emptied, another account may
 * get the number. Once an account was erased, its ids may be used again, under another number.
 */
const toKey = (account: string, field: string): string => `${field} ${account}`;

export function createEventCache(maxCharacters = MAX_CHARACTERS): EventCache {
  const entries = new LRUCache<string, Entry>({ maxSize: maxCharacters });
  return {
    add(short, number, stored, { origin, until }) {
      const { account, type, digest, payload } = stored.event;
      const size = payload.length + digest.length + type.length + account.length + ENTRY_CHARACTERS;
      entries.set(toKey(account, `${number}/${short}`), { stored, origin, until }, { size });
    },
    get(account, field, { dataSet, connection }, now) {
      const entry = entries.get(toKey(account, field));
      if (entry === undefined || now >= entry.until) return undefined;
      const isSame = entry.origin.dataSet === dataSet && entry.origin.connection === connection;
      return isSame ? entry.stored : undefined;
    },
    clear: () => entries.clear(),
  };
}
