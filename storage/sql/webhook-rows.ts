/** Reads and writes webhooks: what users set in one table, what deliveries change in another. */

import type { WebhookRecord, WebhookStatus } from "../../src/webhooks/store.js";
import type { Seal } from "../seal.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import type { EndpointRow } from "./endpoint-row.js";
import type { RowOf } from "./table.js";
import type { webhooks } from "./webhook-tables.js";

type ConfigRow = RowOf<typeof webhooks>;

/** A webhook as `readWebhooks` selects it. */
export type WebhookRow = ConfigRow &
  Pick<EndpointRow, "status" | "updated_at" | "generation" | "failing_since" | "warned_at" | "notice_at">;

const SELECT = `SELECT w.*, e.status, e.updated_at, e.generation, e.failing_since, e.warned_at, e.notice_at
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
  });

export const decodeEventTypes = (text: string | null): readonly string[] | null =>
  text === null ? null : Object.freeze(JSON.parse(text) as string[]);

/** The columns that a user's change may set. */
export const CONFIG_COLUMNS = [
  "subscriber_id",
  "url",
  "event_types",
  "secret",
  "previous_secret",
  "rotate_at",
] as const;

/** Returns the values of {@link CONFIG_COLUMNS}, with the secrets sealed. */
export const encodeConfig = (record: WebhookRecord, seal: Seal): SqlValues => [
  encodeStoredText(record.subscriberId),
  encodeStoredText(record.url),
  record.eventTypes === null ? null : JSON.stringify(record.eventTypes),
  seal.close(record.secret, record.id),
  record.previousSecret === null ? null : seal.close(record.previousSecret, record.id),
  record.rotateAt,
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
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly WebhookRow[]> =>
  transaction.all(`${SELECT} WHERE w.account = $1 AND w.position > $2 ORDER BY w.position LIMIT $3`, [
    account,
    after,
    limit,
  ]);
