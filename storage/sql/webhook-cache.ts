/** Keeps the webhooks that claims need, so that their secrets are read and unsealed once. */

import { LRUCache } from "lru-cache";
import type { Logger } from "../../src/core/logger.js";
import type { WebhookRecord, WebhookStatus } from "../../src/webhooks/store.js";
import type { Seal } from "../seal.js";
import type { ServedEndpoint, SqlTransaction } from "./database.js";
import { decodeWebhookRow, readWebhooks } from "./webhook-rows.js";

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
function refresh(known: WebhookRecord, row: ServedEndpoint): WebhookRecord {
  const isSame =
    known.failingSince === row.failing_since &&
    known.warnedAt === row.warned_at &&
    known.noticeAt === row.notice_at;
  if (isSame) return known;
  return Object.freeze({
    ...known,
    status: row.status as WebhookStatus,
    failingSince: row.failing_since,
    warnedAt: row.warned_at,
    noticeAt: row.notice_at,
  });
}

export function createWebhookCache({
  seal,
  logger,
}: {
  readonly seal: Seal;
  readonly logger: Logger;
}): WebhookCache {
  const cache = new LRUCache<number, WebhookRecord>({ max: MAX_WEBHOOKS });

  const find = (row: ServedEndpoint): WebhookRecord | undefined => {
    const known = cache.get(row.position);
    // Every change that a user or the service makes gives a webhook a later time.
    return known?.id === row.id && known.updatedAt === row.updated_at ? refresh(known, row) : undefined;
  };

  return {
    async read(transaction, rows) {
      const found = new Map<number, WebhookRecord>();
      const missing: number[] = [];
      for (const row of rows) {
        const known = find(row);
        if (known === undefined) missing.push(row.position);
        else found.set(row.position, known);
      }
      for (const row of await readWebhooks(transaction, missing)) {
        try {
          const record = decodeWebhookRow(row, seal);
          cache.set(row.position, record);
          found.set(row.position, record);
        } catch (error) {
          logger.error(
            { error, webhookId: row.id },
            "a stored webhook cannot be decoded; its deliveries wait",
          );
        }
      }
      return found;
    },
  };
}
