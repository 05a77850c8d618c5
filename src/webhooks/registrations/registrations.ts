/** Webhooks as the host and its subscribers see them: create, read, list, update, remove, rotate the secret. */

import { createHash } from "node:crypto";
import { PostbellError } from "../../core/errors.js";
import { checkUrl } from "../../outbound/address-policy.js";
import { newSecret } from "../../signature/signature.js";
import type { Actor, Subscriber } from "../access.js";
import { checkName, notFound, readCallArguments, readLimit } from "../call-arguments.js";
import type { Catalogue } from "../event-types/catalogue.js";
import { readEventTypes } from "../event-types/subscription.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { WebhookChange, WebhookRecord, WebhookStatus, WebhookStore } from "../store.js";
import { toWebhook, type Webhook } from "../webhook.js";
import { type Entitlement, isDisablingOnly, isOwnedByAnotherKey } from "./entitlement.js";

/** A registration with the secret that it was just given. */
export interface WebhookWithSecret {
  readonly webhook: Webhook;
  /** `whsec_` and 256 random bits in Base64. Given here and never again. */
  readonly secret: string;
}

/**
 * The registrations, in-process; the REST routes stand on the same functions.
 *
 * A webhook is owned by the API key that created it. A call without `as` acts as the host, with full authority; with `as` it is held to what that key may do:
 * its owner, or a key that `access.canActFor` lets act for it, may do everything, the other keys of the account may read, disable and delete.
 *
 * Errors of all: `not_found`, `invalid_request`, `invalid_url`, `unknown_event_type` (with the `field`), `webhook_limit_reached`, with `as` also
 * `webhook_owned_by_another_key` and `access_unavailable`, and those of the storage.
 */
export interface Registrations {
  /**
   * Registers an endpoint, ENABLED. The same `idempotencyKey` of the same subscriber returns the same answer, secret included, for ten minutes;
   * with other values it is refused with `idempotency_key_reused`. Other later changes do not show in that answer. Once the webhook was deleted, its secret
   * rotated or the webhook transferred, the repetition is refused: `webhook_deleted`, `secret_rotated` or `webhook_owned_by_another_key`.
   */
  create(
    subscriber: Subscriber,
    registration: {
      readonly url: string;
      readonly eventTypes?: readonly string[] | undefined;
      readonly idempotencyKey?: string | undefined;
    },
  ): Promise<WebhookWithSecret>;
  /** A webhook of any account; with `as`, of that key's account. */
  get(id: string, options?: Actor): Promise<Webhook>;
  /** Oldest first. `limit` 1 to 100, default 50; `next` is the cursor of the next page, `null` on the last. */
  list(request: {
    readonly account: string;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
  }): Promise<{ readonly webhooks: readonly Webhook[]; readonly next: string | null }>;
  /**
   * Changes what is given. Pending deliveries go to a new url; a new url or re-enabling gives the endpoint a clean record.
   * Every key of the account may disable: `status: "DISABLED"`, with `url` and `eventTypes` absent or as they are.
   */
  update(
    id: string,
    change: {
      readonly url?: string | undefined;
      readonly status?: WebhookStatus | undefined;
      readonly eventTypes?: readonly string[] | undefined;
    },
    options?: Actor,
  ): Promise<Webhook>;
  /** Removes the webhook and all its deliveries. Every key of the account may. */
  remove(id: string, options?: Actor): Promise<void>;
  /**
   * A new secret. The old one goes on signing for `overlapMs` (default 24 h, 0 to 7 days), so that the subscriber can learn the new one first: a notification carries one signature,
   * by the old secret before `rotatesAt` and by the new one from then on. Rotated again before that, the old one goes on, and the secret that had not signed yet never does.
   */
  rotateSecret(
    id: string,
    options?: { readonly overlapMs?: number | undefined } & Actor,
  ): Promise<{ readonly secret: string; readonly rotatesAt: Date }>;
  /**
   * Hands a webhook over to another API key of its account, for example when its key is replaced by a new one. From the next attempt on, `canRead` is asked for
   * the new key, also about pending deliveries. The url and the secret stay: whoever reads that url receives what the new key may read. The new owner also
   * sees the excerpts of earlier responses in the log. Only the host can call it.
   *
   * @example
   * await webhooks.registrations.transfer(webhook.id, { subscriberId: "key-2" });
   */
  transfer(id: string, to: { readonly subscriberId: string }): Promise<Webhook>;
}

const REPLAY_MS = 600_000;
const DAY_MS = 86_400_000;

const invalid = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

export function createRegistrations({
  store,
  settings: { destinations, limits },
  catalogue,
  entitlement,
}: {
  readonly store: WebhookStore;
  readonly settings: WebhooksSettings;
  readonly catalogue: Catalogue;
  readonly entitlement: Entitlement;
}): Registrations {
  const enabledLimit = limits.enabledWebhooks;

  const readUrl = (url: unknown): string => {
    if (url === undefined) throw invalid("url", "url is missing: give the HTTPS address of the endpoint.");
    if (typeof url !== "string") throw invalid("url", "url must be a string.");
    const verdict = checkUrl(url, destinations);
    if (verdict.ok) return url;
    throw new PostbellError("invalid_url", verdict.message, { field: "url" });
  };

  const readStatus = (status: unknown): WebhookStatus => {
    if (status === "ENABLED" || status === "DISABLED") return status;
    throw invalid("status", "status must be ENABLED or DISABLED.");
  };

  const limitReached = (message: string): PostbellError =>
    new PostbellError("webhook_limit_reached", message);
  const tooManyEnabled = (): PostbellError =>
    limitReached(
      `The account has ${enabledLimit} ENABLED webhooks, the most there may be; disable or delete one first.`,
    );
  const tooMany = (): PostbellError =>
    limitReached(`The account has ${limits.webhooks} webhooks, the most there may be; delete one first.`);

  const webhookDeleted = (): PostbellError =>
    new PostbellError(
      "webhook_deleted",
      "The webhook that this Idempotency-Key registered was deleted since; use a new key to register another one.",
      { field: "Idempotency-Key" },
    );

  const secretRotated = (id: string): PostbellError =>
    new PostbellError(
      "secret_rotated",
      `This Idempotency-Key registered the webhook ${id}, whose secret was rotated since; use the new secret, or rotate it again to get one.`,
      { field: "Idempotency-Key" },
    );

  const keyReused = (): PostbellError =>
    new PostbellError(
      "idempotency_key_reused",
      "This Idempotency-Key came before with another body; use a new key for a new request.",
      { field: "Idempotency-Key" },
    );

  /** `owner`: whom the change was judged by, so that it is not applied to a webhook that was handed over since. */
  const update = async (
    { id, account }: WebhookRecord,
    change: WebhookChange,
    owner?: string,
  ): Promise<WebhookRecord> => {
    const updated = await store.updateWebhook({ id, account, change, owner, enabledLimit, now: store.now() });
    if (updated.result === "updated") return updated.webhook;
    if (updated.result === "not_owner") throw isOwnedByAnotherKey();
    throw updated.result === "enabled_limit" ? tooManyEnabled() : notFound("webhook");
  };

  const updateAs = async (
    webhook: WebhookRecord,
    change: WebhookChange,
    actor: Actor,
  ): Promise<WebhookRecord> => {
    if (actor.as === undefined) return update(webhook, change);
    // Only the status is written: another key's request must not put back a url that the owner replaces at the same time.
    if (isDisablingOnly(webhook, change)) return update(webhook, { status: "DISABLED" });
    await entitlement.requireManager(webhook, actor);
    return update(webhook, change, webhook.subscriberId);
  };

  /** The first answer to a registration is given again only while the webhook exists and has the same owner and secret. */
  const requireSameOwnerAndSecret = async (created: WebhookRecord): Promise<void> => {
    const webhook = await store.getWebhook(created.id);
    if (!webhook) throw webhookDeleted();
    if (webhook.subscriberId !== created.subscriberId) throw isOwnedByAnotherKey();
    if (webhook.secret !== created.secret) throw secretRotated(created.id);
  };

  return Object.freeze<Registrations>({
    async create(subscriber, registration) {
      const {
        url: givenUrl,
        eventTypes: givenTypes,
        idempotencyKey,
      } = readCallArguments("create", registration, ["url", "eventTypes", "idempotencyKey"]);
      checkName("subscriber.id", subscriber.id);
      checkName("subscriber.account", subscriber.account);
      const url = readUrl(givenUrl);
      const eventTypes = readEventTypes(givenTypes, catalogue);
      const now = store.now();
      const created = await store.createWebhook({
        webhook: {
          id: store.newWebhookId(subscriber.account),
          account: subscriber.account,
          subscriberId: subscriber.id,
          url,
          status: "ENABLED",
          eventTypes,
          createdAt: now,
          updatedAt: now,
          secret: newSecret(),
          previousSecret: null,
          rotateAt: null,
          generation: 1,
          failingSince: null,
          warnedAt: null,
          noticeAt: null,
        },
        enabledLimit,
        accountLimit: limits.webhooks,
        idempotency:
          idempotencyKey === undefined
            ? null
            : {
                // A key of one subscriber must not fetch the secret made for another one.
                key: JSON.stringify([subscriber.id, idempotencyKey]),
                digest: createHash("sha256")
                  .update(JSON.stringify([url, eventTypes]))
                  .digest("hex"),
                expiresAt: now + REPLAY_MS,
              },
        now,
      });
      if (created.result === "replayed") await requireSameOwnerAndSecret(created.webhook);
      if ("webhook" in created)
        return { webhook: toWebhook(created.webhook), secret: created.webhook.secret };
      if (created.result === "key_reused") throw keyReused();
      throw created.result === "enabled_limit" ? tooManyEnabled() : tooMany();
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

    async update(id, given, options = {}) {
      const actor = readCallArguments("update", options, ["as"]);
      const { url, status, eventTypes } = readCallArguments("update", given, ["url", "status", "eventTypes"]);
      const change: WebhookChange = {
        ...(url === undefined ? {} : { url: readUrl(url) }),
        ...(status === undefined ? {} : { status: readStatus(status) }),
        ...(eventTypes === undefined ? {} : { eventTypes: readEventTypes(eventTypes, catalogue) }),
      };
      return toWebhook(await updateAs(await entitlement.find(id, actor), change, actor));
    },

    async remove(id, options = {}) {
      const { account } = await entitlement.find(id, readCallArguments("remove", options, ["as"]));
      if (!(await store.removeWebhook({ id, account, now: store.now() }))) throw notFound("webhook");
    },

    async rotateSecret(id, options = {}) {
      const { overlapMs = DAY_MS } = readCallArguments("rotateSecret", options, ["overlapMs", "as"]);
      if (!(Number.isSafeInteger(overlapMs) && overlapMs >= 0 && overlapMs <= 7 * DAY_MS)) {
        throw invalid("overlapMs", "overlapMs must be a whole number of milliseconds from 0 to 7 days.");
      }
      const webhook = await entitlement.find(id, options);
      const secret = newSecret();
      const rotateAt = store.now() + overlapMs;
      await updateAs(webhook, { rotation: { secret, rotateAt } }, options);
      return { secret, rotatesAt: new Date(rotateAt) };
    },

    async transfer(id, to) {
      const { subscriberId } = readCallArguments("transfer", to, ["subscriberId"]);
      checkName("subscriberId", subscriberId);
      return toWebhook(await update(await entitlement.find(id, {}), { subscriberId }));
    },
  });
}
