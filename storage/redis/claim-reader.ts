/** What scripts lease, read: claims with their webhooks and events. */

import { LRUCache } from "lru-cache";
import type { Claim, Lane, WebhookRecord } from "../../src/webhooks/store.js";
import { decodeClaimLine, decodeEvent, decodeWebhook, longId, type StoredEvent } from "./codec.js";
import { decodeDeliveryId } from "./delivery-id-codec.js";
import type { EventCache } from "./event-cache.js";
import type { FirstLeases } from "./first-leases.js";
import type { Partition } from "./partition.js";
import type { RedisStoreContext } from "./store-context.js";

/** Webhooks whose text was read lately, per partition: their secrets are opened once. */
const MAX_WEBHOOKS = 2_000;

/** A leased delivery as scripts tell it. `line` is empty where it is leased for the first time. */
export interface LeasedRow {
  readonly ref: string;
  readonly line: string;
}

/** What a script leased. */
export interface LeasedRows {
  readonly rows: readonly LeasedRow[];
  /** Texts of the webhooks by their numbers. */
  readonly webhooks: ReadonlyMap<string, string>;
  /** Names the data set. */
  readonly mark: string;
  /** As it is stored. */
  readonly token: string;
  readonly requestToken: string;
}

/** What became of rows: claims to hand out, and rows that cannot be used. */
export interface ReadClaims {
  readonly claims: readonly Claim[];
  /** Their webhooks cannot be used now, so they have to be released. */
  readonly unusable: readonly LeasedRow[];
  /** Their events are missing or cannot be read. */
  readonly unreadable: readonly LeasedRow[];
}

interface KnownWebhook {
  readonly text: string;
  readonly record: WebhookRecord;
  /** The partition's number of its account. */
  readonly account: string;
  readonly lane: Lane;
}

/** A row whose webhook can be used. */
interface Located {
  readonly row: LeasedRow;
  /** The partition's number of the webhook. */
  readonly number: string;
  readonly webhook: KnownWebhook;
  /** The event's id as it is stored. */
  readonly short: string;
  /** Field of the event among the events of the partition. */
  readonly field: string;
}

/** The events of one claim by their fields; `undefined` for one that cannot be read. */
type Events = Map<string, StoredEvent | undefined>;

export const readWebhookNumber = (ref: string): string => ref.slice(0, ref.indexOf("/"));

/** Field of a webhook's text that holds its lane. */
const LANE_FIELD = 8;

function readLane(text: string): Lane {
  return text.split(",", LANE_FIELD + 1)[LANE_FIELD] === "f" ? "fast" : "slow";
}

function locate(row: LeasedRow, number: string, webhook: KnownWebhook): Located {
  const { ref } = row;
  const from = number.length + 1;
  const dot = ref.indexOf(".", from);
  const short = dot === -1 ? ref.slice(from) : ref.slice(from, dot);
  return { row, number, webhook, short, field: `${webhook.account}/${short}` };
}

const deliveryIdOf = ({ row: { ref }, number, webhook, short }: Located, eventId: string): string =>
  ref.length === number.length + 1 + short.length
    ? `${webhook.record.id}.${eventId}`
    : decodeDeliveryId(webhook.record.id, ref.slice(number.length + 1));

export function createClaimReader(
  { seal, logger, call, connectionId }: RedisStoreContext,
  partition: Partition,
  firstLeases: FirstLeases,
  cache: EventCache,
): {
  /** Rejects with the error of the storage where the events cannot be fetched. */
  read(rows: LeasedRows, now: number): Promise<ReadClaims>;
} {
  const known = new LRUCache<string, KnownWebhook>({ max: MAX_WEBHOOKS });

  const readKnown = (number: string, text: string): KnownWebhook | undefined => {
    const before = known.get(number);
    if (before?.text === text) return before;
    try {
      const { record } = decodeWebhook(text, seal);
      // Shared by claims, so that a caller cannot change what later ones get.
      Object.freeze(record.eventTypes);
      Object.freeze(record);
      const webhook = { text, record, account: text.slice(0, text.indexOf(",")), lane: readLane(text) };
      known.set(number, webhook);
      return webhook;
    } catch (error) {
      logger.error({ error }, "a webhook cannot be used; its deliveries wait");
      return undefined;
    }
  };

  /**
   * Sorts rows by whether their webhooks can be used, and finds the events that this process
   * stored.
   */
  const locateAll = ({ rows, webhooks, mark }: LeasedRows, now: number) => {
    const origin = { mark, connection: connectionId() };
    const usable = new Map<string, KnownWebhook | undefined>();
    for (const [number, text] of webhooks) usable.set(number, readKnown(number, text));
    const located: Located[] = [];
    const unusable: LeasedRow[] = [];
    const events: Events = new Map();
    const missing = new Map<string, Located>();
    for (const row of rows) {
      const number = readWebhookNumber(row.ref);
      const webhook = usable.get(number);
      if (webhook === undefined) {
        unusable.push(row);
        continue;
      }
      const own = locate(row, number, webhook);
      located.push(own);
      if (events.has(own.field) || missing.has(own.field)) continue;
      const stored = cache.get(webhook.record.account, own.short, origin, now);
      if (stored) events.set(own.field, stored);
      else missing.set(own.field, own);
    }
    return { located, unusable, events, missing };
  };

  const fetchMissing = async (missing: ReadonlyMap<string, Located>, events: Events): Promise<void> => {
    const texts = (await call("HMGET", partition.key("events"), ...missing.keys())) as (string | null)[];
    let place = 0;
    for (const [field, { webhook, short }] of missing) {
      const text = texts[place++];
      events.set(field, text ? decodeEvent(text, webhook.record.account, longId(short)) : undefined);
    }
  };

  const toClaim = (
    located: Located,
    { event, createdAt, receivers }: StoredEvent,
    { token, requestToken }: LeasedRows,
  ): Claim => {
    const { row, number, webhook: known, short } = located;
    const { record: webhook, account, lane } = known;
    const id = deliveryIdOf(located, event.id);
    if (row.line !== "") return { ...decodeClaimLine(row.line), id, webhook, event, lane };
    firstLeases.add(id, { ref: row.ref, webhook: number, account, event: short, receivers, token });
    return {
      token: requestToken,
      startedAt: null,
      step: 0,
      isExtra: false,
      dueAt: createdAt,
      postponed: 0,
      crashes: 0,
      isRecovered: false,
      id,
      webhook,
      event,
      lane,
    };
  };

  return {
    async read(leased, now) {
      const { located, unusable, events, missing } = locateAll(leased, now);
      if (missing.size > 0) await fetchMissing(missing, events);
      const claims: Claim[] = [];
      const unreadable: LeasedRow[] = [];
      for (const own of located) {
        const stored = events.get(own.field);
        if (stored) claims.push(toClaim(own, stored, leased));
        else unreadable.push(own.row);
      }
      return { claims, unusable, unreadable };
    },
  };
}
