/**
 * Decodes what a function has leased, and makes claims of it. `library/claim.lua` is the other
 * side.
 */

import { LRUCache } from "lru-cache";
import type { Claim, ClaimRequest, Lane, WebhookRecord } from "../../src/webhooks/store.js";
import {
  decodeClaimLine,
  decodeDeliveryId,
  decodeEvent,
  decodeLane,
  decodeUuid,
  encodeText,
  type StoredEvent,
} from "./codec.js";
import type { Partition } from "./partition.js";
import type { RedisStoreContext } from "./session.js";
import { decodeWebhook } from "./webhook-codec.js";

/**
 * Just within the four seconds that the service gives a storage: later claims would not be taken.
 */
export const CLAIM_WITHIN_MS = 3_900;
/**
 * The most of one lane in a call, so that none holds Redis up for more than a few milliseconds.
 */
const MAX_CLAIMED_PER_LANE = 250;
/** Decoded webhooks that are cached per partition, so that their secrets are unsealed once. */
const MAX_WEBHOOKS = 2_000;

/** The options of a claim, as library/claim.lua takes them. */
export const encodeClaim = ({
  token,
  leaseUntil,
  room,
}: Pick<ClaimRequest, "token" | "leaseUntil" | "room">) => ({
  token: encodeText(token),
  leaseUntil,
  fast: Math.min(room.fast, MAX_CLAIMED_PER_LANE),
  slow: Math.min(room.slow, MAX_CLAIMED_PER_LANE),
});

/** The reply of `claim` in library/claim.lua. */
export type ClaimReply = [
  nextAt: string,
  notifyAt: string,
  work: string[],
  dataSet: string,
  unreadable: string[],
  webhooks: string[],
  claims: string,
];

/** A leased delivery. `line` is empty if it is leased for the first time. */
export interface LeasedRow {
  readonly ref: string;
  readonly line: string;
}

/** The decoded reply: the deliveries that were leased, and the work for `tidy`. */
export interface Leased {
  /** The token of the request. */
  readonly token: string;
  readonly rows: LeasedRow[];
  /** The stored webhooks by their numbers. */
  readonly webhooks: Map<string, string>;
  /** When to claim again; `null` for not before something changes. */
  readonly nextAt: number | null;
  /** When this call made something due; empty if it did not. */
  readonly notifyAt: string;
  /** Names the data set. */
  readonly dataSet: string;
  /** Records that cannot be read. */
  readonly unreadable: string[];
  /** Leases have expired. */
  readonly hasExpired: boolean;
  /** The retention of some data is over. */
  readonly isOverdue: boolean;
  /** Accounts that have too many completed events, as `tidy` takes them. */
  readonly excess: string[];
}

function decodeRow(claim: string): LeasedRow {
  const blank = claim.indexOf(" ");
  if (blank === -1) return { ref: claim, line: "" };
  return { ref: claim.slice(0, blank), line: claim.slice(blank + 1) };
}

export function decodeClaimReply(reply: ClaimReply, token: string): Leased {
  const [nextAt, notifyAt, work, dataSet, unreadable, flat, claims] = reply;
  const webhooks = new Map<string, string>();
  for (let place = 0; place < flat.length; place += 2) webhooks.set(flat[place] ?? "", flat[place + 1] ?? "");
  return {
    token,
    rows: claims === "" ? [] : claims.split("\n").map(decodeRow),
    webhooks,
    nextAt: nextAt === "" ? null : Number(nextAt),
    notifyAt,
    dataSet,
    unreadable,
    hasExpired: work.includes("leases"),
    isOverdue: work.includes("retention"),
    excess: work.filter((name) => name.includes("/")),
  };
}

/** Returns the partition's number of the webhook that a reference begins with. */
export const parseWebhookNumber = (ref: string): string => ref.slice(0, ref.indexOf("/"));

/**
 * The bound of the cache, for all partitions together. Most payloads are ASCII, so that a character
 * takes a byte.
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

/** The claims of leased rows, and the rows that cannot become claims. */
interface ReadClaims {
  claims: Claim[];
  /** Their webhooks cannot be decoded now, so they have to be released. */
  unusable: LeasedRow[];
  /** The references of those whose events are missing or cannot be read. */
  unreadable: string[];
}

interface CachedWebhook {
  text: string;
  record: WebhookRecord;
  /** The partition's number of its account. */
  account: string;
  lane: Lane;
}

/** A row whose webhook can be used. */
interface LocatedRow {
  row: LeasedRow;
  /** The part of its reference after the webhook. */
  suffix: string;
  webhook: CachedWebhook;
  /** The encoded id of the event. */
  short: string;
  /** The field of the event in the partition's hash of events. */
  field: string;
}

function locate(row: LeasedRow, webhook: CachedWebhook): LocatedRow {
  const suffix = row.ref.slice(row.ref.indexOf("/") + 1);
  const dot = suffix.indexOf(".");
  const short = dot === -1 ? suffix : suffix.slice(0, dot);
  return { row, suffix, webhook, short, field: `${webhook.account}/${short}` };
}

/** Reads the webhooks and events of the deliveries that were leased in one partition. */
export class ClaimReader {
  readonly #context: RedisStoreContext;
  readonly #partition: Partition;
  readonly #cache: EventCache;
  readonly #webhooks = new LRUCache<string, CachedWebhook>({ max: MAX_WEBHOOKS });

  constructor(context: RedisStoreContext, partition: Partition, cache: EventCache) {
    this.#context = context;
    this.#partition = partition;
    this.#cache = cache;
  }

  /** Rejects with the error of the storage if the events cannot be read. */
  async read(leased: Leased, now: number): Promise<ReadClaims> {
    const origin = { dataSet: leased.dataSet, connection: this.#context.connectionId() };
    const webhooks = new Map<string, CachedWebhook | undefined>();
    for (const [number, text] of leased.webhooks) webhooks.set(number, this.#decodeWebhook(number, text));
    const located: LocatedRow[] = [];
    const read: ReadClaims = { claims: [], unusable: [], unreadable: [] };
    /** By their fields; `undefined` for an event that cannot be read. */
    const events = new Map<string, StoredEvent | undefined>();
    const missing = new Map<string, LocatedRow>();
    for (const row of leased.rows) {
      const webhook = webhooks.get(parseWebhookNumber(row.ref));
      if (webhook === undefined) {
        read.unusable.push(row);
        continue;
      }
      const here = locate(row, webhook);
      located.push(here);
      if (events.has(here.field) || missing.has(here.field)) continue;
      const cached = this.#cache.get(webhook.record.account, here.field, origin, now);
      if (cached) events.set(here.field, cached);
      else missing.set(here.field, here);
    }
    if (missing.size > 0) await this.#fetch(missing, events);
    for (const here of located) {
      const stored = events.get(here.field);
      if (stored) read.claims.push(toClaim(here, stored, leased.token));
      else read.unreadable.push(here.row.ref);
    }
    return read;
  }

  #decodeWebhook(number: string, text: string): CachedWebhook | undefined {
    const before = this.#webhooks.get(number);
    if (before?.text === text) return before;
    const { seal, logger } = this.#context;
    try {
      const { record } = decodeWebhook(text, seal);
      // Frozen, because claims share it.
      Object.freeze(record.eventTypes);
      Object.freeze(record);
      const webhook = { text, record, account: text.slice(0, text.indexOf(",")), lane: decodeLane(text) };
      this.#webhooks.set(number, webhook);
      return webhook;
    } catch (error) {
      logger.error({ error }, "a stored webhook cannot be decoded; its deliveries wait");
      return undefined;
    }
  }

  async #fetch(missing: Map<string, LocatedRow>, events: Map<string, StoredEvent | undefined>) {
    const key = this.#partition.key("events");
    const texts = (await this.#context.call("HMGET", key, ...missing.keys())) as (string | null)[];
    let place = 0;
    for (const [field, { webhook, short }] of missing) {
      const text = texts[place++];
      events.set(field, text ? decodeEvent(text, webhook.record.account, decodeUuid(short)) : undefined);
    }
  }
}

function toClaim({ row, suffix, webhook, short }: LocatedRow, stored: StoredEvent, token: string): Claim {
  const { event, createdAt } = stored;
  const { record, lane } = webhook;
  const id = suffix === short ? `${record.id}.${event.id}` : decodeDeliveryId(record.id, suffix);
  if (row.line !== "")
    return { ...decodeClaimLine(row.line, createdAt), id, token, webhook: record, event, lane };
  // Most claims: nothing of the record has to be decoded.
  return {
    token,
    startedAt: null,
    step: 0,
    isExtra: false,
    dueAt: createdAt,
    postponed: 0,
    crashes: 0,
    isRecovered: false,
    id,
    webhook: record,
    event,
    lane,
  };
}
