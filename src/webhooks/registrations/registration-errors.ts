/** The errors of calls that create or change a webhook. */

import { PostbellError } from "../../core/errors.js";

export const tooManyEnabled = (limit: number): PostbellError =>
  new PostbellError(
    "webhook_limit_reached",
    `The account has ${limit} ENABLED webhooks, which is the limit; disable or delete one first.`,
  );

export const tooManyWebhooks = (limit: number): PostbellError =>
  new PostbellError(
    "webhook_limit_reached",
    `The account has ${limit} webhooks, which is the limit; delete one first.`,
  );

/** For a key that may not manage a webhook of its account. */
export const ownedByAnotherKey = (): PostbellError =>
  new PostbellError(
    "webhook_owned_by_another_key",
    "Another API key of the account owns this webhook: use that key. With this one you can read, disable or delete the webhook.",
  );

const keyError = (
  code: "webhook_deleted" | "secret_rotated" | "idempotency_key_reused",
  message: string,
): PostbellError => new PostbellError(code, message, { field: "Idempotency-Key" });

export const webhookDeleted = (): PostbellError =>
  keyError(
    "webhook_deleted",
    "The webhook that this Idempotency-Key registered was deleted; use a new key to register another one.",
  );

export const secretRotated = (id: string): PostbellError =>
  keyError(
    "secret_rotated",
    `The secret of the webhook ${id}, which this Idempotency-Key registered, was rotated; use the new secret, or rotate it again to get one.`,
  );

export const keyReused = (): PostbellError =>
  keyError(
    "idempotency_key_reused",
    "This Idempotency-Key was used with another body; use a new key for a new request.",
  );
