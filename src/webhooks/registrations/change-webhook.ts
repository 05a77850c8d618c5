/** Applies a change to a webhook, on behalf of the host or of an API key. */

import type { Actor } from "../access.js";
import { notFound } from "../call-arguments.js";
import type { WebhookChange, WebhookRecord, WebhookStore } from "../store.js";
import { type Entitlement, isDisablingOnly } from "./entitlement.js";
import { ownedByAnotherKey, tooManyEnabled } from "./registration-errors.js";

/** Returns the changed record. Throws if the actor may not make this change. */
export type ChangeWebhook = (
  webhook: WebhookRecord,
  change: WebhookChange,
  actor: Actor,
) => Promise<WebhookRecord>;

export function createChangeWebhook({
  store,
  entitlement,
  enabledLimit,
}: {
  readonly store: Pick<WebhookStore, "updateWebhook" | "now">;
  readonly entitlement: Pick<Entitlement, "requireManager">;
  readonly enabledLimit: number;
}): ChangeWebhook {
  /**
   * `owner`: the key that the change was permitted for. If the webhook was transferred meanwhile,
   * nothing changes.
   */
  const update = async (
    { id, account }: WebhookRecord,
    change: WebhookChange,
    owner?: string,
  ): Promise<WebhookRecord> => {
    const updated = await store.updateWebhook({ id, account, change, owner, enabledLimit, now: store.now() });
    if (updated.result === "updated") return updated.webhook;
    if (updated.result === "not_owner") throw ownedByAnotherKey();
    throw updated.result === "enabled_limit" ? tooManyEnabled(enabledLimit) : notFound("webhook");
  };

  return async (webhook, change, actor) => {
    if (actor.as === undefined) return update(webhook, change);
    // Writes only the status: a request of another key must not restore a URL that the owner
    // replaces meanwhile.
    if (isDisablingOnly(webhook, change)) return update(webhook, { status: "DISABLED" });
    await entitlement.requireManager(webhook, actor);
    return update(webhook, change, webhook.subscriberId);
  };
}
