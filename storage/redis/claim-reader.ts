/** Turns leased rows into claims: finds their webhooks and their events. */

import { LRUCache } from "lru-cache";
import type { Claim, Lane, WebhookRecord } from "../../src/webhooks/store.js";
import { decodeClaimLine, decodeDeliveryId } from "./delivery-codec.js";
import type { EventCache } from "./event-cache.js";
import { decodeEvent, type StoredEvent } from "./event-codec.js";
import type { FirstLeases } from "./first-leases.js";
import { type LeasedRow, type LeasedRows, parseWebhookNumber } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import type { RedisStoreContext } from "./store-context.js";
import { decodeUuid } from "./text-codec.js";
import { decodeLane, decodeWebhook } from "./webhook-codec.js";

/** Decoded webhooks that are cached per partition, so that their secrets are unsealed once. */
const MAX_WEBHOOKS = 2_000;

/** The claims of leased rows, and the rows that cannot become claims. */
export interface ReadClaims {
  readonly claims: readonly Claim[];
  /** Their webhooks cannot be decoded now, so they have to be released. */
  readonly unusable: readonly LeasedRow[];
  /** Their events are missing or cannot be read. */
  readonly unreadable: readonly LeasedRow[];
}

interface CachedWebhook {
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
  readonly webhook: CachedWebhook;
  /** The encoded id of the event. */
  readonly short: string;
  /** The field of the event in the partition's hash of events. */
  readonly field: string;
}

/** The events of one claim by their fields; `undefined` for an event that cannot be read. */
type Events = Map<string, StoredEvent | undefined>;

function locate(row: LeasedRow, number: string, webhook: CachedWebhook): Located {
  const { ref } = row;
  const from = number.length + 1;
  const dot = ref.indexOf(".", from);
  const short = dot === -1 ? ref.slice(from) : ref.slice(from, dot);
  return { row, number, webhook, short, field: `${webhook.account}/${short}` };
}

const getDeliveryId = ({ row: { ref }, number, webhook, short }: Located, eventId: string): string =>
  ref.length === number.length + 1 + short.length
    ? `${webhook.record.id}.${eventId}`
    : decodeDeliveryId(webhook.record.id, ref.slice(number.length + 1));

export function createClaimReader(
  { seal, logger, call, connectionId }: RedisStoreContext,
  partition: Partition,
  firstLeases: FirstLeases,
  cache: EventCache,
): {
  /** Rejects with the error of the storage if the events cannot be read. */
  read(rows: LeasedRows, now: number): Promise<ReadClaims>;
} {
  const cachedWebhooks = new LRUCache<string, CachedWebhook>({ max: MAX_WEBHOOKS });

  const decodeCached = (number: string, text: string): CachedWebhook | undefined => {
    const before = cachedWebhooks.get(number);
    if (before?.text === text) return before;
    try {
      const { record } = decodeWebhook(text, seal);
      // Frozen, because claims share it.
      Object.freeze(record.eventTypes);
      Object.freeze(record);
      const webhook = { text, record, account: text.slice(0, text.indexOf(",")), lane: decodeLane(text) };
      cachedWebhooks.set(number, webhook);
      return webhook;
    } catch (error) {
      logger.error({ error }, "a stored webhook cannot be decoded; its deliveries wait");
      return undefined;
    }
  };

  /** Finds the webhooks of rows, and the events that this process has cached. */
  const locateAll = ({ rows, webhooks, mark }: LeasedRows, now: number) => {
    const origin = { mark, connection: connectionId() };
    const usable = new Map<string, CachedWebhook | undefined>();
    for (const [number, text] of webhooks) usable.set(number, decodeCached(number, text));
    const located: Located[] = [];
    const unusable: LeasedRow[] = [];
    const events: Events = new Map();
    const missing = new Map<string, Located>();
    for (const row of rows) {
      const number = parseWebhookNumber(row.ref);
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
      events.set(field, text ? decodeEvent(text, webhook.record.account, decodeUuid(short)) : undefined);
    }
  };

  const toClaim = (
    located: Located,
    { event, createdAt, receivers }: StoredEvent,
    { token, requestToken }: LeasedRows,
  ): Claim => {
    const { row, number, webhook: known, short } = located;
    const { record: webhook, account, lane } = known;
    const id = getDeliveryId(located, event.id);
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
