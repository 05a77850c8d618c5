/** Health notifications on SQL: claims the steps that are due, and records what was decided. */

import type { WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { encodeAccount } from "../stored-text.js";
import type { SqlTransaction } from "./database.js";
import type { EndpointRow } from "./endpoint-row.js";
import { lockEndpoint, saveHealth } from "./endpoint-rows.js";
import { noteWake, type SqlStoreContext, writeAndWake } from "./store-context.js";
import { decodeWebhookRow, readWebhooks } from "./webhook-rows.js";

type HealthMethods = Pick<WebhookStore, "claimHealthNotifications" | "settleHealthNotification">;
type ClaimRequest = Parameters<WebhookStore["claimHealthNotifications"]>[0];

const DUE = `SELECT min(notice_at) AS at FROM {endpoints} WHERE notice_at IS NOT NULL`;

async function claimSteps(
  transaction: SqlTransaction,
  { now, leaseUntil, limit }: ClaimRequest,
  { seal, logger }: SqlStoreContext,
): Promise<Awaited<ReturnType<WebhookStore["claimHealthNotifications"]>>> {
  const due = await transaction.all<EndpointRow>(
    `SELECT * FROM {endpoints} WHERE notice_at <= $1 ORDER BY notice_at LIMIT $2${transaction.skipLocked}`,
    [now, limit],
  );
  await saveHealth(
    transaction,
    due.map((endpoint) => ({ ...endpoint, notice_at: leaseUntil })),
  );
  const rows = await readWebhooks(
    transaction,
    due.map(({ position }) => position),
  );
  const webhooks = rows.flatMap((row): WebhookRecord[] => {
    try {
      return [decodeWebhookRow(row, seal)];
    } catch (error) {
      logger.error({ error, webhookId: row.id }, "a stored webhook cannot be decoded; its health step waits");
      return [];
    }
  });
  const [next] = await transaction.all<{ at: number | null }>(DUE);
  return { webhooks, nextAt: next?.at ?? null };
}

export function createSqlHealthNotifications(context: SqlStoreContext): HealthMethods {
  return {
    async claimHealthNotifications(request) {
      // Most often nothing is due, and then nothing is written.
      const [next] = await context.database.read((transaction) =>
        transaction.all<{ at: number | null }>(DUE),
      );
      const nextAt = next?.at ?? null;
      if (nextAt === null || nextAt > request.now) return { webhooks: [], nextAt };
      return context.database.write((transaction) => claimSteps(transaction, request, context));
    },

    settleHealthNotification: ({ id, account, failingSince, from, status, warnedAt, noticeAt, now }) =>
      writeAndWake(context, async (transaction, after) => {
        const endpoint = await lockEndpoint(transaction, encodeAccount({ id, account }));
        if (endpoint === undefined || endpoint.failing_since !== failingSince || endpoint.status !== from)
          return false;
        const updatedAt = status === from ? endpoint.updated_at : Math.max(now, endpoint.updated_at + 1);
        const changed = { status, warned_at: warnedAt, notice_at: noticeAt, updated_at: updatedAt };
        await saveHealth(transaction, [{ ...endpoint, ...changed }]);
        if (noticeAt !== null) noteWake(after, noticeAt);
        return true;
      }),
  };
}
