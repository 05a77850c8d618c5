/** The webhook store on SQL, put together from its parts. */

import { LRUCache } from "lru-cache";
import type { ClaimRequest, Storage, WebhookStore } from "../../src/webhooks/store.js";
import { encodeAccount } from "../stored-text.js";
import { createAppender } from "./append.js";
import { type ClaimAttempt, leaseDue } from "./claim.js";
import { createClaimedDeliveries, forgetClaimed } from "./claimed-deliveries.js";
import { createSqlDeliveryLog } from "./delivery-log.js";
import { createSqlHealthNotifications } from "./health-notifications.js";
import { recover } from "./recover.js";
import { createSqlRegistry } from "./registry.js";
import { resend } from "./resend.js";
import { recordSettlements } from "./settle.js";
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

/** How often a claim is tried that finds the locks of all endpoints taken. */
const MOST_TRIES = 5;

async function claimOnce(
  context: SqlStoreContext,
  request: ClaimRequest,
  isWaiting: boolean,
): Promise<ClaimAttempt> {
  const respond = await writeAndWake(
    context,
    (transaction, after) => leaseDue(transaction, request, { context, after, isWaiting }),
    // A lost lease has its deliveries claimed again, as if the process had died.
    { isDurable: false },
  );
  return respond();
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
      for (let tries = 1; ; tries++) {
        const { response, isLocked } = await claimOnce(context, request, tries > 1);
        // A caller must not take what others have locked for nothing that is due.
        if (!isLocked || tries === MOST_TRIES) return response;
      }
    },
    async settle(given) {
      if (given.length === 0) return [];
      const settlements = given.map(encodeAccount);
      const results = await writeAndWake(context, (transaction, after) =>
        recordSettlements(transaction, settlements, { context, after }),
      );
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
