/** Registers a webhook once, however often the same request is repeated. */

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { PostbellError } from "../../core/errors.js";
import { newSecret } from "../../signature/signature.js";
import type { Subscriber } from "../access.js";
import type { WebhooksConfig } from "../config/config.js";
import { pickDetails } from "../store/records.js";
import type { WebhookRecord, WebhookStore } from "../store.js";
import type { EndpointSettings } from "./endpoint-settings.js";
import { ownedByAnotherKey, tooManyEnabled } from "./entitlement.js";

/** How long a repeated request gets the first response. */
const REPLAY_MS = 600_000;

interface NewWebhook extends EndpointSettings {
  subscriber: Subscriber;
  url: string;
  eventTypes: readonly string[] | null;
  idempotencyKey: string | undefined;
  /** Default: a new one. */
  secret: string | undefined;
  description: string | null | undefined;
  metadata: Record<string, string> | null | undefined;
}

/**
 * Stores a webhook, ENABLED, with a new secret or that of the request. Returns the record of the
 * first call if it is a repetition: then it is not new.
 */
export async function registerWebhook(
  store: WebhookStore,
  limits: WebhooksConfig["limits"],
  request: NewWebhook,
): Promise<{ record: WebhookRecord; isNew: boolean }> {
  const now = store.now();
  const created = await store.createWebhook({
    webhook: buildRecord(store.newWebhookId(request.subscriber.account), request, now),
    enabledLimit: limits.enabledWebhooks,
    accountLimit: limits.webhooks,
    idempotency: toIdempotency(request, now),
    now,
  });
  if (created.result === "replayed") {
    if (!isDeepStrictEqual(created.webhook.headers ?? null, request.headers ?? null)) throw keyReused();
    await requireSameOwnerAndSecret(store, created.webhook);
  }
  if ("webhook" in created) return { record: created.webhook, isNew: created.result === "created" };
  if (created.result === "enabled_limit") throw tooManyEnabled(limits.enabledWebhooks);
  throw created.result === "key_reused"
    ? keyReused()
    : new PostbellError(
        "webhook_limit_reached",
        `The account has ${limits.webhooks} webhooks, which is the limit; delete one first.`,
      );
}

const buildRecord = (
  id: string,
  { subscriber, url, eventTypes, secret, ...details }: NewWebhook,
  now: number,
): WebhookRecord => ({
  id,
  account: subscriber.account,
  subscriberId: subscriber.id,
  url,
  status: "ENABLED",
  eventTypes,
  createdAt: now,
  updatedAt: now,
  secret: secret ?? newSecret(),
  previousSecret: null,
  rotateAt: null,
  generation: 1,
  failingSince: null,
  warnedAt: null,
  noticeAt: null,
  ...pickDetails(details),
});

function toIdempotency(
  { subscriber, url, eventTypes, idempotencyKey, secret, headers, ...details }: NewWebhook,
  now: number,
): Parameters<WebhookStore["createWebhook"]>[0]["idempotency"] {
  if (idempotencyKey === undefined) return null;
  // Of headers only the names: a digest of a short value could be tried out.
  const names = headers == null ? undefined : Object.keys(headers);
  const chosen = {
    ...(secret !== undefined && { secret }),
    ...pickDetails(details),
    ...(names !== undefined && { headers: names }),
  };
  return {
    // Includes the subscriber, so that no key can fetch the secret that was made for another one.
    key: JSON.stringify([subscriber.id, idempotencyKey]),
    digest: createHash("sha256")
      .update(JSON.stringify([url, eventTypes, ...(Object.keys(chosen).length === 0 ? [] : [chosen])]))
      .digest("hex"),
    expiresAt: now + REPLAY_MS,
  };
}

/**
 * The first response may be repeated only while the webhook exists and has the same owner and
 * secret.
 */
async function requireSameOwnerAndSecret(store: WebhookStore, created: WebhookRecord): Promise<void> {
  const webhook = await store.getWebhook(created.id);
  if (!webhook) {
    throw keyError(
      "webhook_deleted",
      "The webhook that this Idempotency-Key registered was deleted; use a new key to register another one.",
    );
  }
  if (webhook.subscriberId !== created.subscriberId) throw ownedByAnotherKey();
  if (webhook.secret === created.secret) return;
  throw keyError(
    "secret_rotated",
    `The secret of the webhook ${created.id}, which this Idempotency-Key registered, was rotated; use the new secret, or rotate it again to get one.`,
  );
}

const keyError = (
  code: "webhook_deleted" | "secret_rotated" | "idempotency_key_reused",
  message: string,
): PostbellError => new PostbellError(code, message, { field: "Idempotency-Key" });

const keyReused = (): PostbellError =>
  keyError(
    "idempotency_key_reused",
    "This Idempotency-Key was used with another body; use a new key for a new request.",
  );
