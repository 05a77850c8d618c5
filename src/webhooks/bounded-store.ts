/** The storage behind a time limit: whatever a backend does, each call settles, so that nothing of the service can hang on it. */

import { type Clock, withTimeout } from "../clock.js";
import { PostbellError } from "../errors.js";
import type { WebhookStore } from "./store.js";

/** A registration request has to be answered within five seconds. */
const LIMIT_MS = 4_000;

/** The same store, except that a call which has not settled after four seconds rejects with `storage_unavailable`. What it did is unknown then. */
export function boundedStore(store: WebhookStore, clock: Clock): WebhookStore {
  const late = (): PostbellError =>
    new PostbellError(
      "storage_unavailable",
      "The storage did not answer in time; whether it did what was asked is unknown.",
    );
  const bounded =
    <A extends readonly unknown[], R>(call: (...given: A) => Promise<R>): ((...given: A) => Promise<R>) =>
    (...given) =>
      withTimeout(clock, LIMIT_MS, call(...given), late);
  return Object.freeze<WebhookStore>({
    maxSleepMs: store.maxSleepMs,
    now: () => store.now(),
    watch: (listener) => store.watch(listener),
    newWebhookId: (account) => store.newWebhookId(account),
    createWebhook: bounded((request) => store.createWebhook(request)),
    getWebhook: bounded((id) => store.getWebhook(id)),
    listWebhooks: bounded((request) => store.listWebhooks(request)),
    updateWebhook: bounded((request) => store.updateWebhook(request)),
    removeWebhook: bounded((request) => store.removeWebhook(request)),
    append: bounded((request) => store.append(request)),
    claim: bounded((request) => store.claim(request)),
    settle: bounded((settlement) => store.settle(settlement)),
    getDelivery: bounded((id) => store.getDelivery(id)),
    listDeliveries: bounded((request) => store.listDeliveries(request)),
    resend: bounded((request) => store.resend(request)),
    recover: bounded((request) => store.recover(request)),
    claimNotices: bounded((request) => store.claimNotices(request)),
    settleNotice: bounded((request) => store.settleNotice(request)),
    stats: bounded(() => store.stats()),
  });
}
