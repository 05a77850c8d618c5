/** Reads and writes webhooks: what users set in one table, what deliveries change in another. */

import { LRUCache } from "lru-cache";
import type { Logger } from "../../src/core/logger.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import { pickDetails } from "../../src/webhooks/store/records.js";
import type { WebhookRecord, WebhookStatus } from "../../src/webhooks/store.js";
import { closeHeaders, openHeaders, type Seal } from "../seal.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import type { ServedEndpoint, SqlTransaction, SqlValues } from "./database.js";
import type { RowOf } from "./table.js";
import type { EndpointRow, webhooks } from "./webhook-tables.js";

type ConfigRow = RowOf<typeof webhooks>;

/** A webhook as `readWebhooks` selects it. */
export type WebhookRow = ConfigRow &
  Pick<
    EndpointRow,
    "status" | "updated_at" | "generation" | "failing_since" | "warned_at" | "notice_at" | "per_second"
  >;

const SELECT = `SELECT w.*, e.status, e.updated_at, e.generation, e.failing_since, e.warned_at, e.notice_at,
    e.per_second
  FROM {webhooks} w JOIN {endpoints} e ON e.position = w.position`;

/** Returns a frozen record, because claims share it. */
export const decodeWebhookRow = (row: WebhookRow, seal: Seal): WebhookRecord =>
  Object.freeze<WebhookRecord>({
    id: row.id,
    account: decodeStoredText(row.account),
    subscriberId: decodeStoredText(row.subscriber_id),
    url: decodeStoredText(row.url),
    status: row.status as WebhookStatus,
    eventTypes: decodeEventTypes(row.event_types),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    secret: seal.open(row.secret, row.id),
    previousSecret: row.previous_secret === null ? null : seal.open(row.previous_secret, row.id),
    rotateAt: row.rotate_at,
    generation: row.generation,
    failingSince: row.failing_since,
    warnedAt: row.warned_at,
    noticeAt: row.notice_at,
    ...pickDetails({
      description: row.description === null ? null : decodeStoredText(row.description),
      metadata: row.metadata === null ? null : (JSON.parse(row.metadata) as Record<string, string>),
      filter: parseFilter(row.filter),
      headers: row.headers === null ? null : openHeaders(seal, row.headers, row.id),
      perSecond: row.per_second,
    }),
  });

export const decodeEventTypes = (text: string | null): readonly string[] | null =>
  text === null ? null : Object.freeze(JSON.parse(text) as string[]);

export const parseFilter = (text: string | null): EventFilter | null =>
  text === null ? null : Object.freeze(JSON.parse(text) as EventFilter);

/** The columns that a user's change may set. */
export const CONFIG_COLUMNS = [
  "subscriber_id",
  "url",
  "event_types",
  "secret",
  "previous_secret",
  "rotate_at",
  "description",
  "metadata",
  "filter",
  "headers",
] as const;

/** Returns the values of {@link CONFIG_COLUMNS}, with the secrets sealed. */
export const encodeConfig = (record: WebhookRecord, seal: Seal): SqlValues => [
  encodeStoredText(record.subscriberId),
  encodeStoredText(record.url),
  record.eventTypes === null ? null : JSON.stringify(record.eventTypes),
  seal.close(record.secret, record.id),
  record.previousSecret === null ? null : seal.close(record.previousSecret, record.id),
  record.rotateAt,
  record.description === undefined ? null : encodeStoredText(record.description),
  record.metadata === undefined ? null : JSON.stringify(record.metadata),
  record.filter === undefined ? null : JSON.stringify(record.filter),
  record.headers === undefined ? null : closeHeaders(seal, record.headers, record.id),
];

/** Reads webhooks by their positions. */
export const readWebhooks = (
  transaction: SqlTransaction,
  positions: readonly number[],
): Promise<readonly WebhookRow[]> =>
  transaction.forEach(
    `${SELECT} WHERE w.position = $1`,
    ["int"],
    positions.map((position) => [position]),
  );

export async function readWebhook(transaction: SqlTransaction, id: string): Promise<WebhookRow | undefined> {
  const [row] = await transaction.all<WebhookRow>(`${SELECT} WHERE w.id = $1`, [id]);
  return row;
}

/** Reads the webhooks of an account, as it is stored, after a position, oldest first. */
export const readWebhooksOfAccount = (
  transaction: SqlTransaction,
  account: string,
  { after, limit }: { after: number; limit: number },
): Promise<WebhookRow[]> =>
  transaction.all(`${SELECT} WHERE w.account = $1 AND w.position > $2 ORDER BY w.position LIMIT $3`, [
    account,
    after,
    limit,
  ]);

// Keeps the webhooks that claims need, so that their secrets are read and unsealed once.

const MAX_WEBHOOKS = 2_000;

export interface WebhookCache {
  /**
   * Returns the webhooks of endpoints by position, as they are now. Those whose secrets cannot be
   * opened are logged, and missing.
   */
  read(
    transaction: SqlTransaction,
    rows: readonly ServedEndpoint[],
  ): Promise<ReadonlyMap<number, WebhookRecord>>;
}

/** Returns a cached record with the health that its endpoint has now. */
function refresh(cached: WebhookRecord, row: ServedEndpoint): WebhookRecord {
  const isSame =
    cached.failingSince === row.failing_since &&
    cached.warnedAt === row.warned_at &&
    cached.noticeAt === row.notice_at;
  if (isSame) return cached;
  return Object.freeze({
    ...cached,
    status: row.status as WebhookStatus,
    failingSince: row.failing_since,
    warnedAt: row.warned_at,
    noticeAt: row.notice_at,
  });
}

export function createWebhookCache({ seal, logger }: { seal: Seal; logger: Logger }): WebhookCache {
  const cache = new LRUCache<number, WebhookRecord>({ max: MAX_WEBHOOKS });

  return {
    async read(transaction, rows) {
      const found = new Map<number, WebhookRecord>();
      const missing: number[] = [];
      for (const row of rows) {
        const cached = cache.get(row.position);
        // Every change that a user or the service makes gives a webhook a later time.
        if (cached?.id === row.id && cached.updatedAt === row.updated_at)
          found.set(row.position, refresh(cached, row));
        else missing.push(row.position);
      }
      for (const row of await readWebhooks(transaction, missing)) {
        try {
          const record = decodeWebhookRow(row, seal);
          cache.set(row.position, record);
          found.set(row.position, record);
        } catch (error) {
          const fields = { error, webhookId: row.id };
          logger.error(fields, "a stored webhook cannot be decoded; its deliveries wait");
        }
      }
      return found;
    },
  };
}
