/** The host's functions that the service calls while it emits and delivers. */

import type { FhirResource } from "../fhir.js";
import type { Webhook } from "../webhook.js";

type Awaitable<T> = T | PromiseLike<T>;

/**
 * Loads a referenced resource that `emit` was not given in `related`. If it returns nothing, throws
 * or takes too long (`limits.hookMs`), the event is stored without an entry for it.
 *
 * @example
 * resolveReference: (reference, { account }) => db.loadResource(account, reference)
 */
export type ResolveReference = (
  reference: string,
  context: { readonly account: string; readonly eventType: string },
) => Awaitable<FhirResource | null | undefined>;

/**
 * Reports endpoints that fail to their owners. A hook that throws or takes longer than 5 seconds
 * (`limits.hookMs`) is called again later. `smtpNotifier` of `postbell/smtp` sends e-mails.
 *
 * @example
 * const notify: Notify = {
 *   warning: ({ webhook, disableAt }) => mail(webhook.account, `will be disabled at ${disableAt}`),
 *   disabled: ({ webhook }) => mail(webhook.account, `${webhook.url} was disabled`),
 * };
 */
export interface Notify {
  /**
   * Called when an endpoint has not responded with a 2xx for `health.warnAfterMs`. Called once for
   * each such period, and again only after a throw, a timeout or a crash.
   */
  warning?:
    | ((event: {
        readonly webhook: Webhook;
        readonly failingSince: Date;
        readonly disableAt: Date;
      }) => Awaitable<unknown>)
    | undefined;
  /** Called when Postbell has disabled an endpoint that failed for `health.disableAfterMs`. */
  disabled?:
    | ((event: { readonly webhook: Webhook; readonly failingSince: Date }) => Awaitable<unknown>)
    | undefined;
  /** Called at the end of `stop()`. Release here what the notifiers hold, such as a connection. */
  close?: (() => Awaitable<unknown>) | undefined;
}
