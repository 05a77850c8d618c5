/** The calls that manage webhooks, as hosts and subscribers make them. */

import type { Subscriber } from "../access.js";
import type { List } from "../list.js";
import type { WebhookStatus } from "../store.js";
import type { Webhook } from "../webhook.js";
import type { EndpointSettings } from "./endpoint-settings.js";

/** A webhook with its new secret. */
export interface WebhookWithSecret {
  readonly webhook: Webhook;
  /**
   * `whsec_` and 256 random bits in Base64, unless the call passed another one. It is returned here
   * and never again.
   */
  readonly secret: string;
}

/** An endpoint to register. */
export interface NewRegistration extends EndpointSettings {
  url: string;
  /** Names, `prefix.*` or `*`. Default: every type, also future ones. */
  eventTypes?: readonly string[] | undefined;
  /**
   * For ten minutes, the same key of the same subscriber returns the same result, secret included;
   * later changes do not show in it. With other values it is refused with `idempotency_key_reused`.
   * Once the webhook was deleted or transferred or its secret rotated, the repetition is refused
   * with `webhook_deleted`, `webhook_owned_by_another_key` or `secret_rotated`. 1 to 256 characters
   * without NUL and lone surrogates.
   */
  idempotencyKey?: string | undefined;
  /**
   * Lets a team move from another sender without a change at its receivers: the secret that signs
   * already, `whsec_` and 24 to 64 bytes in padded Base64. Default: a new one.
   */
  secret?: string | undefined;
  /** A name for people: one line of at most 256 characters. */
  description?: string | null | undefined;
  /**
   * Texts of your own: at most 20 keys of 1 to 40 letters, digits, `_`, `.` or `-`, with values of
   * at most 500 characters.
   */
  metadata?: Readonly<Record<string, string>> | null | undefined;
}

/** The fields of a webhook to change. `null` removes a description, metadata or a setting. */
export interface RegistrationChange extends Partial<Omit<NewRegistration, "idempotencyKey" | "secret">> {
  id: string;
  status?: WebhookStatus | undefined;
}

/**
 * Manages the webhooks of one account with the rights of an API key:
 * `as(subscriber).registrations`. The REST routes call the same functions.
 *
 * The API key that created a webhook owns it. The owner, or a key that `access.canActFor` lets act
 * for it, may do everything. The other keys of the account may read, disable and delete.
 *
 * All calls throw `not_found`, `invalid_request`, `invalid_url`, `unknown_event_type` (with the
 * `field`), `webhook_limit_reached`, `webhook_owned_by_another_key`, `access_unavailable`, and the
 * errors of the storage.
 */
export interface SubscriberRegistrations {
  /** Registers an endpoint of the subscriber, ENABLED. */
  create(registration: NewRegistration): Promise<WebhookWithSecret>;
  /** Returns a webhook. */
  get(id: string): Promise<Webhook>;
  /**
   * Lists the webhooks of the account, oldest first. `limit` is the size of a page, 1 to 100,
   * default 50.
   */
  list(request?: {
    account?: string | undefined;
    cursor?: string | undefined;
    limit?: number | undefined;
  }): List<Webhook>;
  /**
   * Changes the fields that are present. Pending deliveries go to a new URL. A new URL or
   * re-enabling resets the health of the endpoint. Every key of the account may disable: `status:
   * "DISABLED"`, with all other fields absent or unchanged. If the webhook has secret headers, a
   * URL of another origin needs `headers` too: the same again, or `null`.
   *
   * @example
   * await webhooks.registrations.update({ id, status: "DISABLED" });
   */
  update(change: RegistrationChange): Promise<Webhook>;
  /** Removes the webhook and all its deliveries. Every key of the account may do this. */
  remove(id: string): Promise<void>;
  /**
   * Creates a new secret. The old one continues to sign for `overlapMs` (default 24 hours, 0 to 7
   * days), so that the subscriber can install the new one first. `X-Service-Signature` is made with
   * the old secret before `rotatesAt`, with the new one afterwards; `webhook-signature` is made
   * with both before. If the secret is rotated again before `rotatesAt`, the old one continues, and
   * the new secret that it was to be replaced with is dropped.
   *
   * @param request.secret the new secret, in the form that `create` takes. Default: a random one.
   */
  rotateSecret(request: {
    id: string;
    overlapMs?: number | undefined;
    secret?: string | undefined;
  }): Promise<{ readonly secret: string; readonly rotatesAt: Date }>;
  /**
   * Ends a rotation before `rotatesAt`: from now on, only the new secret signs. Call it once the
   * receiver accepts the new secret. Attempts that a process has already begun or claimed may still
   * be signed by both; if the receiver refuses one, it is retried. Does nothing if no rotation is
   * in progress.
   */
  finishRotation(id: string): Promise<void>;
}

/**
 * Manages the webhooks of all accounts from the host's code, with full authority. The calls are
 * those of {@link SubscriberRegistrations}; `webhooks.as(subscriber).registrations` has only the
 * rights of that API key.
 *
 * @example
 * const { webhook, secret } = await webhooks.registrations.create({
 *   subscriber: { id: "key-1", account: "clinic-7" },
 *   url: "https://example.org/hooks",
 *   eventTypes: ["patient.*"],
 * });
 */
export interface Registrations extends Omit<SubscriberRegistrations, "create" | "list"> {
  /** Registers an endpoint, ENABLED, which `subscriber` owns. */
  create(registration: NewRegistration & { subscriber: Subscriber }): Promise<WebhookWithSecret>;
  /**
   * Lists the webhooks of an account, oldest first. `limit` is the size of a page, 1 to 100,
   * default 50.
   *
   * @example
   * for await (const { url } of webhooks.registrations.list({ account })) console.log(url);
   */
  list(request: { account: string; cursor?: string | undefined; limit?: number | undefined }): List<Webhook>;
  /**
   * Transfers a webhook to another API key of its account, for example when a key is replaced. From
   * the next attempt on, `canRead` is called for the new key, also for pending deliveries. The URL
   * and the secret stay: whoever operates that URL receives what the new key may read. The new
   * owner also sees the excerpts of earlier responses in the log. Only the host can call it.
   *
   * @example
   * await webhooks.registrations.transfer({ id: webhook.id, subscriberId: "key-2" });
   */
  transfer(request: { id: string; subscriberId: string }): Promise<Webhook>;
}
