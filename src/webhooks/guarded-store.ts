/**
 * Puts every storage call behind the circuit. `core/storage-circuit.ts` describes the behaviour
 * during an outage.
 */

import type { StorageCircuit } from "../core/storage-circuit.js";
import type { WebhookStore } from "./store.js";

/** Returns the same store with a time limit on each call, and without calls during an outage. */
export function guardWebhookStore(store: WebhookStore, circuit: StorageCircuit): WebhookStore {
  const bounded = circuit.connect({
    // Reads a webhook that does not exist.
    ping: () => store.getWebhook(store.newWebhookId("ping")),
    connectionProblem: () => store.connectionProblem?.(),
  });
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
