/** The webhook store on SQL, put together from its parts. */

import { LRUCache } from "lru-cache";
import type { Storage, WebhookStore } from "../../src/webhooks/store.js";
import { encodeAccount } from "../stored-text.js";
import { createAppender } from "./append.js";
import { claimDeliveries } from "./claim.js";
import { createClaimedDeliveries, forgetClaimed } from "./claimed-deliveries.js";
import { createSqlDeliveryLog } from "./delivery-log.js";
import { createSqlHealthNotifications } from "./health-notifications.js";
import { recover } from "./recover.js";
import { createSqlRegistry } from "./registry.js";
import { resend } from "./resend.js";
import { settleDeliveries } from "./settle.js";
import { type SqlStoreContext, writeAndWake } from "./store-context.js";
import { readStoreStats } from "./store-stats.js";
import { createTidier } from "./tidier.js";
import { createWebhookCache } from "./webhook-cache.js";

/** The most accounts whose webhooks a process keeps. */
const MOST_ACCOUNTS = 2_000;

export interface SqlStoreOptions {
  /** The most concurrent appends, each in a transaction of its own. */
  readonly concurrency: number;
  readonly maxSleepMs: number;
  readonly now: () => number;
  readonly watch: WebhookStore["watch"];
}

export function createSqlWebhookStore(
  settings: Omit<SqlStoreContext, "webhookCache" | "receivers" | "claimed">,
  { concurrency, maxSleepMs, now, watch }: SqlStoreOptions,
): ReturnType<Storage["webhooks"]> {
  const context: SqlStoreContext = {
    ...settings,
    webhookCache: createWebhookCache(settings),
    receivers: new LRUCache({ max: MOST_ACCOUNTS }),
    claimed: createClaimedDeliveries(),
  };
  const { database, perEndpoint } = context;
  const tidier = createTidier(context);
  const registry = createSqlRegistry(context);
  return Object.freeze<WebhookStore>({
    maxSleepMs,
    now,
    watch,
    joinsTransactions: database.join !== undefined,
    partitionOf: () => 0,
    ...registry,
    async removeWebhook(request) {
      const isRemoved = await registry.removeWebhook(request);
      if (isRemoved) tidier.noteRemoved();
      return isRemoved;
    },
    ...createSqlHealthNotifications(context),
    ...createSqlDeliveryLog(context),
    append: createAppender(context, tidier, concurrency),
    async claim(request) {
      await tidier.tidy(request.now);
      return claimDeliveries(context, request);
    },
    async settle(given) {
      if (given.length === 0) return [];
      const settlements = given.map(encodeAccount);
      const results = await settleDeliveries(context, settlements);
      forgetClaimed(context.claimed, settlements);
      const completed = settlements.filter(({ outcome }) => outcome.state !== "pending");
      tidier.noteCompleted(completed.map(({ account }) => account));
      return results;
    },
    resend: (request) =>
      writeAndWake(context, (transaction, after) =>
        resend(transaction, encodeAccount(request), { context, after }),
      ),
    recover: (request) =>
      writeAndWake(context, (transaction, after) =>
        recover(transaction, encodeAccount(request), { context, after }),
      ),
    stats: () => database.read((transaction) => readStoreStats(transaction, now(), perEndpoint)),
  });
}
