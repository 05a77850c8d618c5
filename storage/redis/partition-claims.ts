/**
 * Claims from one partition: leases due deliveries with `settle-and-claim`, and reads their
 * webhooks and events.
 */

import { LRUCache } from "lru-cache";
import type { Claim, ClaimRequest, Lane, WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { decodeClaimLine, decodeDeliveryId } from "./delivery-codec.js";
import type { EventCache } from "./event-codec.js";
import { decodeEvent, type StoredEvent } from "./event-codec.js";
import type { FirstLeases } from "./first-leases.js";
import {
  encodeLease,
  type Leased,
  type LeasedRow,
  type LeasedRows,
  parseWebhookNumber,
  toLeasedRows,
} from "./lease-codec.js";
import type { Partition } from "./partition.js";
import type { CommonPath } from "./settle-and-claim.js";
import type { Settlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";
import { decodeUuid } from "./text-codec.js";
import type { Upkeep } from "./upkeep.js";
import { decodeLane, decodeWebhook } from "./webhook-codec.js";

/** When to claim again from a partition that failed, while the others work. */
export const UNREACHED_MS = 500;
/** How long the deliveries of a webhook wait if its secret cannot be unsealed. */
const UNUSABLE_MS = 60_000;

export const EMPTY_ROOM = { fast: 0, slow: 0 } as const;

export type ClaimResult = Awaited<ReturnType<WebhookStore["claim"]>>;

export interface PartitionClaims {
  /** Claims, after the upkeep that the partition needs. */
  readonly claim: (partition: Partition, request: ClaimRequest) => Promise<ClaimResult>;
  /** Leases once, without upkeep. */
  readonly lease: (partition: Partition, request: ClaimRequest) => Promise<ClaimResult>;
  /**
   * Makes claims of rows that a script leased under `token`. Releases the rows that cannot be used.
   */
  readonly toClaims: (
    partition: Partition,
    leased: Leased,
    token: string,
    now: number,
  ) => Promise<ClaimResult>;
  /**
   * Releases the deliveries that a request leased and whose reply was lost. Errors are ignored,
   * because the leases then expire.
   */
  readonly release: (partition: Partition, request: ClaimRequest) => Promise<void>;
}

export interface PartitionClaimsOptions {
  readonly context: RedisStoreContext;
  readonly getCommonPath: (partition: Partition) => CommonPath;
  readonly settlements: Settlements;
  readonly firstLeases: FirstLeases;
  readonly cache: EventCache;
  readonly upkeep: Upkeep;
}

/** The room of a request that its claims have left. */
export const getRoomLeft = (room: ClaimRequest["room"], claims: readonly Claim[]): Record<Lane, number> => {
  const left = { ...room };
  for (const { lane } of claims) left[lane] -= 1;
  return { fast: Math.max(0, left.fast), slow: Math.max(0, left.slow) };
};

export function createPartitionClaims({
  context,
  getCommonPath,
  settlements,
  firstLeases,
  cache,
  upkeep,
}: PartitionClaimsOptions): PartitionClaims {
  const { partitions, logger } = context;
  const readers = partitions.all.map((partition) =>
    createClaimReader(context, partition, firstLeases, cache),
  );

  const readClaims = async (
    partition: Partition,
    leased: LeasedRows,
    now: number,
  ): Promise<readonly Claim[]> => {
    const reader = readers[partition.number];
    if (reader === undefined || leased.rows.length === 0) return [];
    try {
      const { claims, unusable, unreadable } = await reader.read(leased, now);
      settlements.releaseRows(unusable, leased, now, now + UNUSABLE_MS);
      const names = unreadable.map(({ ref }) => `!${ref}`);
      // If this fails, the leases expire.
      if (names.length > 0) await upkeep.tidy(partition, now, names).catch(() => {});
      return claims;
    } catch (error) {
      settlements.releaseRows(leased.rows, leased, now);
      throw error;
    }
  };

  const toClaims: PartitionClaims["toClaims"] = async (partition, leased, token, now) => {
    upkeep.raiseAlarms(partition, leased);
    const claims = await readClaims(partition, toLeasedRows(leased, token), now);
    return { claims, nextAt: leased.nextAt === "" ? null : Number(leased.nextAt) };
  };

  const releaseLeased = (leased: Leased, { token, now }: ClaimRequest): void => {
    const rows = toLeasedRows(leased, token);
    settlements.releaseRows(rows.rows, rows, now);
  };

  const leaseOnce = async (
    partition: Partition,
    request: ClaimRequest,
  ): Promise<{ readonly leased: Leased; readonly result: ClaimResult }> => {
    const { now, token } = request;
    const onLate = (late: Leased): void => releaseLeased(late, request);
    const leased = await getCommonPath(partition).claim({ now, args: encodeLease(request), onLate });
    return { leased, result: await toClaims(partition, leased, token, now) };
  };

  const claim: PartitionClaims["claim"] = async (partition, request) => {
    const { now } = request;
    const { leased, result } = await leaseOnce(partition, request);
    const { claims } = result;
    if (leased.isOverdue) upkeep.startTidying(partition, now, []);
    try {
      await upkeep.freeCrowded(partition, now);
      if (!leased.hasExpired) return result;
      await upkeep.tidy(partition, now, []);
      const room = getRoomLeft(request.room, claims);
      // With the same token the script would return what it leased before.
      const more = await leaseOnce(partition, { ...request, token: `${request.token}.more`, room });
      return { ...more.result, claims: [...claims, ...more.result.claims] };
    } catch (error) {
      if (claims.length === 0) throw error;
      logger.error({ error }, "expired leases of a partition could not be recovered");
      return { claims, nextAt: now + UNREACHED_MS };
    }
  };

  return {
    claim,
    lease: async (partition, request) => (await leaseOnce(partition, request)).result,
    toClaims,
    async release(partition, request) {
      const release = (leased: Leased): void => releaseLeased(leased, request);
      // The same request again returns what it leased before. Without room it leases nothing else.
      const args = encodeLease({ ...request, room: EMPTY_ROOM });
      await getCommonPath(partition)
        .claim({ now: request.now, args, onLate: release })
        .then(release, () => {});
    },
  };
}

/** Decoded webhooks that are cached per partition, so that their secrets are unsealed once. */
const MAX_WEBHOOKS = 2_000;

/** The claims of leased rows, and the rows that cannot become claims. */
interface ReadClaims {
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

function createClaimReader(
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
