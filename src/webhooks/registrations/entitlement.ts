/**
 * Decides who may manage a webhook, for the REST routes, the portal and the host's calls alike.
 * `docs/decisions/webhook-owner.md` explains the rule.
 */

import { isDeepStrictEqual } from "node:util";
import { callHook } from "../../core/clock.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { isUuid } from "../../core/uuid.js";
import { type Actor, hasAuthority, type Subscriber } from "../access.js";
import { isOfAccount, notFound, selectAccount } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { parseDeliveryId } from "../store/records.js";
import type { DeliveryRecord, WebhookChange, WebhookRecord } from "../store.js";

/**
 * Enforces the rule: its owner key decides what a webhook sends, where to, and under which secret.
 */
export interface Entitlement {
  /** Loads a webhook. Throws `not_found`, also for a webhook of another account. */
  find: (id: string, actor: Actor) => Promise<WebhookRecord>;
  /**
   * Loads a delivery and its webhook. Throws `not_found`, also for a delivery of another account.
   */
  findDelivery: (id: string, actor: Actor) => Promise<{ delivery: DeliveryRecord; webhook: WebhookRecord }>;
  /**
   * True for the host, for an operator, for the owner key, and for a key that `access.canActFor`
   * lets act for it. Throws `access_unavailable`.
   */
  canManage: (webhook: WebhookRecord, actor: Actor) => Promise<boolean>;
  /**
   * Loads all webhooks of an account, oldest first. Throws `not_found` for an actor of another
   * account.
   */
  findAll: (account: string, actor: Actor) => Promise<WebhookRecord[]>;
  /** Throws `webhook_owned_by_another_key` or `access_unavailable`. */
  requireManager: (webhook: WebhookRecord, actor: Actor) => Promise<void>;
}

/** `null` and `["*"]` both mean every type. */
const isSameSubscription = (a: readonly string[] | null, b: readonly string[] | null): boolean =>
  JSON.stringify(a ?? ["*"]) === JSON.stringify(b ?? ["*"]);

/** The fields that a change may repeat. */
type Repeatable = Pick<
  WebhookRecord,
  "url" | "eventTypes" | "description" | "metadata" | "filter" | "perSecond"
>;

/**
 * True if a change leaves the details as they are. Headers cannot be repeated, since the response
 * would tell another key if it has guessed them.
 */
const keepsDetails = (webhook: Repeatable, change: WebhookChange): boolean =>
  change.headers === undefined &&
  (change.filter === undefined || isDeepStrictEqual(change.filter, webhook.filter ?? null)) &&
  (change.perSecond === undefined || change.perSecond === (webhook.perSecond ?? null)) &&
  (change.description === undefined || change.description === (webhook.description ?? null)) &&
  (change.metadata === undefined || isDeepStrictEqual(change.metadata, webhook.metadata ?? null));

/** True if a change only disables the webhook, which every key of the account may do. Pure. */
export const isDisablingOnly = (webhook: Repeatable, change: WebhookChange): boolean =>
  change.status === "DISABLED" &&
  change.rotation === undefined &&
  change.subscriberId === undefined &&
  (change.url === undefined || change.url === webhook.url) &&
  (change.eventTypes === undefined || isSameSubscription(change.eventTypes, webhook.eventTypes)) &&
  keepsDetails(webhook, change);

/** Webhooks that one call reads. */
const PAGE = 100;

export function createEntitlement({ store, config }: ServiceBase): Entitlement {
  const { access, limits, clock } = config;
  const canActFor = async (subscriber: Subscriber, owner: Subscriber): Promise<boolean> => {
    try {
      const call = (): unknown => access.canActFor?.(subscriber, owner) ?? false;
      const allowed = await callHook(clock, limits.hookMs, call);
      if (typeof allowed === "boolean") return allowed;
      throw new TypeError("neither true nor false");
    } catch (cause) {
      throw new PostbellError(
        "access_unavailable",
        "access.canActFor threw, took too long or returned neither true nor false; nothing was changed. Try again later.",
        { cause },
      );
    }
  };

  const canManage: Entitlement["canManage"] = async ({ account, subscriberId }, actor) => {
    if (!isOfAccount(actor, account)) return false;
    if (hasAuthority(actor)) return true;
    if (actor.id === subscriberId) return true;
    return canActFor({ id: actor.id, account }, { id: subscriberId, account });
  };

  const find: Entitlement["find"] = async (id, actor) => {
    // An id that is not a UUID names no webhook, and no storage should have to build a key from it.
    const webhook = isUuid(id) ? await store.getWebhook(id) : undefined;
    if (!webhook || !isOfAccount(actor, webhook.account)) throw notFound("webhook");
    return webhook;
  };

  return Object.freeze<Entitlement>({
    find,
    async findDelivery(id, actor) {
      const delivery = parseDeliveryId(id) && (await store.getDelivery(id));
      if (!delivery) throw notFound("delivery");
      try {
        return { delivery, webhook: await find(delivery.webhookId, actor) };
      } catch (error) {
        throw isPostbellError(error, "not_found") ? notFound("delivery") : error;
      }
    },
    async findAll(account, actor) {
      selectAccount(account, actor);
      const found: WebhookRecord[] = [];
      let cursor: string | undefined;
      do {
        const page = await store.listWebhooks({ account, cursor, limit: PAGE });
        found.push(...page.webhooks);
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      return found;
    },
    canManage,
    async requireManager(webhook, actor) {
      if (!(await canManage(webhook, actor))) throw ownedByAnotherKey();
    },
  });
}

// The errors of calls that create and of calls that change a webhook.

export const tooManyEnabled = (limit: number): PostbellError =>
  new PostbellError(
    "webhook_limit_reached",
    `The account has ${limit} ENABLED webhooks, which is the limit; disable or delete one first.`,
  );

/** For a key that may not manage a webhook of its account. */
export const ownedByAnotherKey = (): PostbellError =>
  new PostbellError(
    "webhook_owned_by_another_key",
    "Another API key of the account owns this webhook: use that key. With this one you can read, disable or delete the webhook.",
  );
