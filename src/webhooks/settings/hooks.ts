/** The host's functions that the service calls while it emits and delivers. */

import type { FhirResource } from "../fhir.js";
import type { Attempt } from "../store.js";
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

/** Describes an endpoint that fails to its owner. */
export interface FailingEndpoint {
  readonly webhook: Webhook;
  readonly failingSince: Date;
  /** The last attempt, which failed; `null` if it is not known any more. */
  readonly lastFailure: EndpointFailure | null;
  /** How many deliveries wait for an attempt. */
  readonly pending: number;
}

/** A failed attempt. `kind`, `status` and `code` are those of the delivery log. */
export interface EndpointFailure extends Pick<Attempt, "kind" | "status" | "code"> {
  readonly at: Date;
}

/** Describes an endpoint that will be disabled to its owner. */
export interface EndpointWarning extends FailingEndpoint {
  readonly disableAt: Date;
  /** No waiting delivery is attempted after this time, unless the endpoint recovers. */
  readonly retriedUntil: Date;
}

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
  warning?: ((event: EndpointWarning) => Awaitable<unknown>) | undefined;
  /** Called when Postbell has disabled an endpoint that failed for `health.disableAfterMs`. */
  disabled?: ((event: FailingEndpoint) => Awaitable<unknown>) | undefined;
  /** Called at the end of `stop()`. Release here what the notifiers hold, such as a connection. */
  close?: (() => Awaitable<unknown>) | undefined;
}
