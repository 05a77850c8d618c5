/**
 * Decides who may manage a webhook: the one rule behind the REST routes, the portal and the calls in-process.
 * `docs/decisions/webhook-owner.md` says why it is this one.
 */

import { type Clock, withTimeout } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { isUuid } from "../../core/uuid.js";
import type { Actor, Subscriber } from "../access.js";
import { checkName, notFound } from "../call-arguments.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { WebhookChange, WebhookRecord, WebhookStore } from "../store.js";

/** Holds calls to the rule: what a webhook sends, where, and under which secret is up to its owner key. */
export interface Entitlement {
  /** Loads a webhook. Errors: `not_found`, also for another account's; `invalid_argument` for an `as` that names nobody. */
  readonly find: (id: string, actor: Actor) => Promise<WebhookRecord>;
  /** Whether the actor is the host, the owner key, or a key that `access.canActFor` lets act for it. Errors: `access_unavailable`. */
  readonly canManage: (webhook: WebhookRecord, actor: Actor) => Promise<boolean>;
  /** Errors: `webhook_owned_by_another_key`, `access_unavailable`. */
  readonly requireManager: (webhook: WebhookRecord, actor: Actor) => Promise<void>;
}

/** What a key is told that may not manage a webhook of its account. */
export const isOwnedByAnotherKey = (): PostbellError =>
  new PostbellError(
    "webhook_owned_by_another_key",
    "Another API key of the account owns this webhook: use that key. With this one you can read, disable or delete the webhook.",
  );

const isSameList = (a: readonly string[] | null, b: readonly string[] | null): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** Whether a change does nothing but disable the webhook, which every key of the account may. Pure. */
export const isDisablingOnly = (
  { url, eventTypes }: Pick<WebhookRecord, "url" | "eventTypes">,
  change: WebhookChange,
): boolean =>
  change.status === "DISABLED" &&
  change.rotation === undefined &&
  change.subscriberId === undefined &&
  (change.url === undefined || change.url === url) &&
  (change.eventTypes === undefined || isSameList(change.eventTypes, eventTypes));

function checkActor(actor: Actor): void {
  if (!("as" in actor)) return;
  const { as } = actor;
  if (typeof as !== "object" || as === null) {
    throw new PostbellError(
      "invalid_argument",
      "as must be a subscriber with id and account; leave it out to act as the host.",
      { field: "as" },
    );
  }
  checkName("as.id", as.id);
  checkName("as.account", as.account);
}

export function createEntitlement({
  store,
  settings: { access, limits },
  clock,
}: {
  readonly store: Pick<WebhookStore, "getWebhook">;
  readonly settings: WebhooksSettings;
  readonly clock: Clock;
}): Entitlement {
  const askHost = async (as: Subscriber, owner: Subscriber): Promise<boolean> => {
    try {
      const asked = (async () => access.canActFor?.(as, owner) ?? false)();
      const answer: unknown = await withTimeout(
        clock,
        limits.hookMs,
        asked,
        () => new Error("no answer in time"),
      );
      if (typeof answer === "boolean") return answer;
      throw new TypeError("neither true nor false");
    } catch (cause) {
      throw new PostbellError(
        "access_unavailable",
        "access.canActFor gave no usable answer, so nothing was done; try again later.",
        { cause },
      );
    }
  };

  const canManage: Entitlement["canManage"] = async ({ account, subscriberId }, { as }) => {
    if (as === undefined) return true;
    if (as.account !== account) return false;
    if (as.id === subscriberId) return true;
    return askHost({ id: as.id, account }, { id: subscriberId, account });
  };

  return Object.freeze<Entitlement>({
    async find(id, actor) {
      checkActor(actor);
      // What is no UUID names no webhook; no storage should have to make a key of it.
      const webhook = isUuid(id) ? await store.getWebhook(id) : undefined;
      if (!webhook || (actor.as !== undefined && actor.as.account !== webhook.account)) {
        throw notFound("webhook");
      }
      return webhook;
    },
    canManage,
    async requireManager(webhook, actor) {
      if (!(await canManage(webhook, actor))) throw isOwnedByAnotherKey();
    },
  });
}
