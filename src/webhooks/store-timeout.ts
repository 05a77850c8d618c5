/**
 * Limits the time of every storage call. `core/call-timeout.ts` describes the behaviour during an
 * outage.
 */

import { withCallTimeout } from "../core/call-timeout.js";
import type { Clock } from "../core/clock.js";
import type { WebhookStore } from "./store.js";

/** Returns the same store with a time limit on each call; see `withCallTimeout`. */
export function withWebhookStoreTimeout(store: WebhookStore, clock: Clock): WebhookStore {
  const bounded = withCallTimeout(clock);
  return Object.freeze<WebhookStore>({
    maxSleepMs: store.maxSleepMs,
    joinsTransactions: store.joinsTransactions,
    now: () => store.now(),
    watch: (listener) => store.watch(listener),
    partitionOf: (webhookId) => store.partitionOf(webhookId),
    newWebhookId: (account) => store.newWebhookId(account),
    createWebhook: bounded((request) => store.createWebhook(request)),
    getWebhook: bounded((id) => store.getWebhook(id)),
    listWebhooks: bounded((request) => store.listWebhooks(request)),
    updateWebhook: bounded((request) => store.updateWebhook(request)),
    removeWebhook: bounded((request) => store.removeWebhook(request)),
    append: bounded((request) => store.append(request)),
    claim: bounded((request) => store.claim(request)),
    settle: bounded((settlements) => store.settle(settlements)),
    getDelivery: bounded((id) => store.getDelivery(id)),
    getEvent: bounded((request) => store.getEvent(request)),
    listDeliveries: bounded((request) => store.listDeliveries(request)),
    deliveryStats: bounded((webhookId, now) => store.deliveryStats(webhookId, now)),
    resend: bounded((request) => store.resend(request)),
    recover: bounded((request) => store.recover(request)),
    claimHealthNotifications: bounded((request) => store.claimHealthNotifications(request)),
    settleHealthNotification: bounded((request) => store.settleHealthNotification(request)),
    stats: bounded(() => store.stats()),
  });
}
