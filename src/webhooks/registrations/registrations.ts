/**
 * The calls that manage webhooks: create, get, list, update, remove, rotate the secret, transfer.
 */

import { PostbellError } from "../../core/errors.js";
import { type AddressPolicy, type AddressRefusal, checkUrl } from "../../outbound/address-policy.js";
import { createAddressPolicy } from "../../outbound/destination-options.js";
import { newSecret } from "../../signature/signature.js";
import type { Actor, Subscriber } from "../access.js";
import { recordChange, toAuditActor } from "../audit.js";
import {
  checkName,
  invalidField,
  notFound,
  readCallArguments,
  readDescription,
  readLimit,
  readMetadata,
  readSecret,
} from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { readEventTypes } from "../event-types/catalogue.js";
import { getRotation } from "../store/records.js";
import type { WebhookChange, WebhookRecord, WebhookStatus } from "../store.js";
import { toWebhook, type Webhook } from "../webhook.js";
import { type Entitlement, isDisablingOnly, ownedByAnotherKey, tooManyEnabled } from "./entitlement.js";
import { registerWebhook } from "./register-webhook.js";

/** A webhook with the secret that it was just given. */
export interface WebhookWithSecret {
  readonly webhook: Webhook;
  /**
   * `whsec_` and 256 random bits in Base64, unless the call passed another one. It is returned here
   * and never again.
   */
  readonly secret: string;
}

/**
 * Manages webhooks from the host's own code. The REST routes call the same functions.
 *
 * The API key that created a webhook owns it. A call without `as` acts as the host, with full
 * authority. With `as`, it may do what that key may do: the owner, or a key that `access.canActFor`
 * lets act for it, may do everything. The other keys of the account may read, disable and delete.
 *
 * All calls throw `not_found`, `invalid_request`, `invalid_url`, `unknown_event_type` (with the
 * `field`), `webhook_limit_reached`, and the errors of the storage. With `as` they also throw
 * `webhook_owned_by_another_key` and `access_unavailable`.
 *
 * @example
 * const { webhook, secret } = await webhooks.registrations.create(
 *   { id: "key-1", account: "clinic-7" },
 *   { url: "https://example.org/hooks", eventTypes: ["patient.*"] },
 * );
 */
export interface Registrations {
  /**
   * Registers an endpoint, ENABLED. For ten minutes, the same `idempotencyKey` of the same
   * subscriber returns the same result, secret included; later changes do not show in it. With
   * other values it is refused with `idempotency_key_reused`. Once the webhook was deleted or
   * transferred or its secret rotated, the repetition is refused with `webhook_deleted`,
   * `webhook_owned_by_another_key` or `secret_rotated`. The key has 1 to 256 characters without NUL
   * and lone surrogates.
   *
   * @param registration.secret lets a team move from another sender without a change at its
   * receivers: the secret that signs already, `whsec_` and 24 to 64 bytes in padded Base64. By
   * default a new one is made.
   * @param registration.description a name for people: one line of at most 256 characters.
   * @param registration.metadata texts of your own: at most 20 keys of 1 to 40 letters, digits,
   * `_`, `.` or `-`, with values of at most 500 characters.
   */
  create(
    subscriber: Subscriber,
    registration: {
      readonly url: string;
      readonly eventTypes?: readonly string[] | undefined;
      readonly idempotencyKey?: string | undefined;
      readonly secret?: string | undefined;
      readonly description?: string | null | undefined;
      readonly metadata?: Readonly<Record<string, string>> | null | undefined;
    },
  ): Promise<WebhookWithSecret>;
  /** Returns a webhook of any account; with `as`, of that key's account. */
  get(id: string, options?: Actor): Promise<Webhook>;
  /**
   * Returns the webhooks of an account, oldest first. `limit` is 1 to 100, default 50. `next` is
   * the cursor of the next page, `null` on the last.
   */
  list(request: {
    readonly account: string;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
  }): Promise<{ readonly webhooks: readonly Webhook[]; readonly next: string | null }>;
  /**
   * Changes the given fields. Pending deliveries go to a new URL. A new URL or re-enabling resets
   * the health of the endpoint. `null` removes a description or metadata. Every key of the account
   * may disable: `status: "DISABLED"`, with all other fields absent or unchanged.
   */
  update(
    id: string,
    change: {
      readonly url?: string | undefined;
      readonly status?: WebhookStatus | undefined;
      readonly eventTypes?: readonly string[] | undefined;
      readonly description?: string | null | undefined;
      readonly metadata?: Readonly<Record<string, string>> | null | undefined;
    },
    options?: Actor,
  ): Promise<Webhook>;
  /** Removes the webhook and all its deliveries. Every key of the account may do this. */
  remove(id: string, options?: Actor): Promise<void>;
  /**
   * Creates a new secret. The old one continues to sign for `overlapMs` (default 24 hours, 0 to 7
   * days), so that the subscriber can install the new one first. `X-Service-Signature` is made with
   * the old secret before `rotatesAt`, with the new one afterwards; `webhook-signature` is made
   * with both before. If the secret is rotated again before `rotatesAt`, the old one continues, and
   * the new secret that it was to be replaced with is dropped.
   *
   * @param options.secret the new secret, in the form that `create` takes. Default: a random one.
   */
  rotateSecret(
    id: string,
    options?: { readonly overlapMs?: number | undefined; readonly secret?: string | undefined } & Actor,
  ): Promise<{ readonly secret: string; readonly rotatesAt: Date }>;
  /**
   * Ends a rotation before `rotatesAt`: from now on, only the new secret signs. Call it once the
   * receiver accepts the new secret. Attempts that a process has already begun or claimed may still
   * be signed by both; if the receiver refuses one, it is retried. Does nothing if no rotation is
   * in progress.
   */
  finishRotation(id: string, options?: Actor): Promise<void>;
  /**
   * Transfers a webhook to another API key of its account, for example when a key is replaced. From
   * the next attempt on, `canRead` is called for the new key, also for pending deliveries. The URL
   * and the secret stay: whoever operates that URL receives what the new key may read. The new
   * owner also sees the excerpts of earlier responses in the log. Only the host can call it.
   *
   * @example
   * await webhooks.registrations.transfer(webhook.id, { subscriberId: "key-2" });
   */
  transfer(id: string, to: { readonly subscriberId: string }): Promise<Webhook>;
}

const DAY_MS = 86_400_000;

/** Tells a host which option would allow a URL that the address policy refuses. */
const OPTION_HINTS: Record<NonNullable<AddressRefusal["allowedBy"]>, string> = {
  allow: " To allow this host, list it or its network in the option destinations.allow.",
  allowHttp: " To allow http:// URLs, set the option destinations.allowHttp.",
};

function readUrl(url: unknown, policy: AddressPolicy, namesOptions: boolean): string {
  if (url === undefined) {
    throw invalidField("url", "url is missing: pass the HTTPS address of the endpoint.");
  }
  if (typeof url !== "string") throw invalidField("url", "url must be a string.");
  const checked = checkUrl(url, policy);
  if (checked.ok) return url;
  const hint = namesOptions && checked.allowedBy !== undefined ? OPTION_HINTS[checked.allowedBy] : "";
  throw new PostbellError("invalid_url", checked.message + hint, { field: "url" });
}

function readStatus(status: unknown): WebhookStatus {
  if (status === "ENABLED" || status === "DISABLED") return status;
  throw invalidField("status", "status must be ENABLED or DISABLED.");
}

/** Reads a field that a call may leave out. */
const ifGiven = <T, R>(value: T | undefined, read: (value: T) => R): R | undefined =>
  value === undefined ? undefined : read(value);

function checkOverlap(overlapMs: number): void {
  if (Number.isSafeInteger(overlapMs) && overlapMs >= 0 && overlapMs <= 7 * DAY_MS) return;
  throw invalidField("overlapMs", "overlapMs must be a whole number of milliseconds from 0 to 7 days.");
}

/** @param isForHost true if the caller is the host, who can change the options in a message. */
export function createRegistrations(
  { store, config: { destinations, limits }, catalogue, audit }: ServiceBase,
  entitlement: Entitlement,
  isForHost: boolean,
): Registrations {
  const policy = createAddressPolicy(destinations);
  const { enabledWebhooks: enabledLimit } = limits;

  const report = (
    action: "webhook.created" | "webhook.deleted",
    { id: webhookId, account }: WebhookRecord,
    actor: Actor,
  ): void => audit.record({ account, action, actor: toAuditActor(actor), webhookId });

  /**
   * `owner`: the key that the change was permitted for. If the webhook was transferred meanwhile,
   * nothing changes.
   */
  const updateRecord = async (
    webhook: WebhookRecord,
    change: WebhookChange,
    actor: Actor,
    owner?: string,
  ): Promise<WebhookRecord> => {
    const { id, account } = webhook;
    const updated = await store.updateWebhook({ id, account, change, owner, enabledLimit, now: store.now() });
    if (updated.result === "updated") {
      recordChange(audit, webhook, change, actor);
      return updated.webhook;
    }
    if (updated.result === "not_owner") throw ownedByAnotherKey();
    throw updated.result === "enabled_limit" ? tooManyEnabled(enabledLimit) : notFound("webhook");
  };

  /** Returns the changed record. Throws if the actor may not make this change. */
  const changeWebhook = async (
    webhook: WebhookRecord,
    change: WebhookChange,
    actor: Actor,
  ): Promise<WebhookRecord> => {
    if (actor.as === undefined) return updateRecord(webhook, change, actor);
    // Writes only the status: a request of another key must not restore a URL that the owner
    // replaces meanwhile.
    if (isDisablingOnly(webhook, change)) return updateRecord(webhook, { status: "DISABLED" }, actor);
    await entitlement.requireManager(webhook, actor);
    return updateRecord(webhook, change, actor, webhook.subscriberId);
  };

  return Object.freeze<Registrations>({
    async create(subscriber, registration) {
      const { url, eventTypes, idempotencyKey, secret, description, metadata } = readCallArguments(
        "create",
        registration,
        ["url", "eventTypes", "idempotencyKey", "secret", "description", "metadata"],
      );
      checkName("subscriber.id", subscriber.id);
      checkName("subscriber.account", subscriber.account);
      if (idempotencyKey !== undefined) checkName("idempotencyKey", idempotencyKey);
      const { record, isNew } = await registerWebhook(store, limits, {
        subscriber,
        url: readUrl(url, policy, isForHost),
        eventTypes: readEventTypes(eventTypes, catalogue),
        idempotencyKey,
        secret: ifGiven(secret, readSecret),
        description: ifGiven(description, readDescription),
        metadata: ifGiven(metadata, readMetadata),
      });
      const actor = isForHost ? {} : { as: subscriber };
      if (isNew) report("webhook.created", record, actor);
      return { webhook: toWebhook(record), secret: record.secret };
    },

    async get(id, options = {}) {
      return toWebhook(await entitlement.find(id, readCallArguments("get", options, ["as"])));
    },

    async list(request) {
      const { account, cursor, limit } = readCallArguments("list", request, ["account", "cursor", "limit"]);
      checkName("account", account);
      const { webhooks, next } = await store.listWebhooks({ account, cursor, limit: readLimit(limit) });
      return { webhooks: webhooks.map(toWebhook), next };
    },

    async update(id, fields, options = {}) {
      const actor = readCallArguments("update", options, ["as"]);
      const { url, status, eventTypes, description, metadata } = readCallArguments("update", fields, [
        "url",
        "status",
        "eventTypes",
        "description",
        "metadata",
      ]);
      const change: WebhookChange = {
        ...(url === undefined ? {} : { url: readUrl(url, policy, isForHost) }),
        ...(status === undefined ? {} : { status: readStatus(status) }),
        ...(eventTypes === undefined ? {} : { eventTypes: readEventTypes(eventTypes, catalogue) }),
        ...(description === undefined ? {} : { description: readDescription(description) }),
        ...(metadata === undefined ? {} : { metadata: readMetadata(metadata) }),
      };
      return toWebhook(await changeWebhook(await entitlement.find(id, actor), change, actor));
    },

    async remove(id, options = {}) {
      const actor = readCallArguments("remove", options, ["as"]);
      const webhook = await entitlement.find(id, actor);
      const { account } = webhook;
      if (!(await store.removeWebhook({ id, account, now: store.now() }))) throw notFound("webhook");
      report("webhook.deleted", webhook, actor);
    },

    async rotateSecret(id, options = {}) {
      const names = ["overlapMs", "secret", "as"] as const;
      const { overlapMs = DAY_MS, secret: chosen } = readCallArguments("rotateSecret", options, names);
      checkOverlap(overlapMs);
      const secret = ifGiven(chosen, readSecret) ?? newSecret();
      const webhook = await entitlement.find(id, options);
      const rotateAt = store.now() + overlapMs;
      await changeWebhook(webhook, { rotation: { secret, rotateAt } }, options);
      return { secret, rotatesAt: new Date(rotateAt) };
    },

    async finishRotation(id, options = {}) {
      const actor = readCallArguments("finishRotation", options, ["as"]);
      const webhook = await entitlement.find(id, actor);
      if (getRotation(webhook, store.now()) === null) await entitlement.requireManager(webhook, actor);
      else await changeWebhook(webhook, { rotation: { finish: true } }, actor);
    },

    async transfer(id, to) {
      const { subscriberId } = readCallArguments("transfer", to, ["subscriberId"]);
      checkName("subscriberId", subscriberId);
      return toWebhook(await changeWebhook(await entitlement.find(id, {}), { subscriberId }, {}));
    },
  });
}
