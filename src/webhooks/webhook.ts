/** A webhook, and what was done to it, as the host and its subscribers see them. */

import type { EventFilter } from "./event-types/event-filter.js";
import type { List } from "./list.js";
import type { WebhookRecord, WebhookStatus } from "./store.js";

/** A registered webhook, without its secret. */
export interface Webhook {
  readonly id: string;
  readonly account: string;
  /** Identifies the API key that owns the webhook. The webhook receives what this key may read. */
  readonly subscriberId: string;
  readonly url: string;
  readonly status: WebhookStatus;
  /** `null`: every type, including types that are added later. */
  readonly eventTypes: readonly string[] | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Since when every attempt has failed; `null` while the endpoint is healthy or untried. */
  readonly failingSince: Date | null;
  /** A name for people; `null` if it has none. */
  readonly description: string | null;
  /** Texts by name; `null` if it has none. */
  readonly metadata: Readonly<Record<string, string>> | null;
  /** The conditions on the data of events that it gets. Absent if it has none. */
  readonly filter?: EventFilter;
  /** The names of its secret headers, in lower case. Absent if it has none. */
  readonly headerNames?: readonly string[];
  /** The rate of this webhook. Absent if it has none. */
  readonly perSecond?: number;
}

/** Converts a stored record to what a host may see: without secrets. */
export const toWebhook = (record: WebhookRecord): Webhook => ({
  id: record.id,
  account: record.account,
  subscriberId: record.subscriberId,
  url: record.url,
  status: record.status,
  eventTypes: record.eventTypes,
  createdAt: new Date(record.createdAt),
  updatedAt: new Date(record.updatedAt),
  failingSince: record.failingSince === null ? null : new Date(record.failingSince),
  description: record.description ?? null,
  metadata: record.metadata ?? null,
  ...(record.filter !== undefined && { filter: record.filter }),
  ...(record.headers !== undefined && { headerNames: Object.keys(record.headers) }),
  ...(record.perSecond !== undefined && { perSecond: record.perSecond }),
});

/** An action that the audit log reports. */
export type AuditAction =
  | "webhook.created"
  | "webhook.changed"
  | "webhook.enabled"
  | "webhook.disabled"
  | "webhook.rotated"
  | "webhook.rotation_finished"
  | "webhook.transferred"
  | "webhook.deleted"
  | "webhook.recovered"
  | "webhook.replayed"
  | "webhook.tested"
  | "webhook.examined"
  | "delivery.resent"
  | "delivery.failed"
  | "delivery.withheld"
  | "account.erased"
  | "accounts.listed"
  | "events.erased";

/**
 * Who did it: the host's code, an API key by the id of its subscriber, an operator of the
 * portal by the name that `authorize` gave, or Postbell itself.
 */
export type AuditActor =
  | { readonly type: "host" }
  | { readonly type: "key"; readonly id: string }
  | { readonly type: "operator"; readonly name: string }
  | { readonly type: "service" };

/** An entry of the audit log. It never has secrets, records or responses of endpoints. */
export interface AuditEntry {
  readonly at: Date;
  /** Empty for `accounts.listed`. */
  readonly account: string;
  readonly action: AuditAction;
  readonly actor: AuditActor;
  /**
   * Absent for `account.erased`, `accounts.listed` and `events.erased`, which are reported to the
   * `audit` hook and not stored.
   */
  readonly webhookId?: string | undefined;
  /** Of `webhook.tested` and of the actions on deliveries: the one that was created or ended. */
  readonly deliveryId?: string | undefined;
  readonly eventId?: string | undefined;
  /** Of `webhook.changed`: the names of the fields, such as `url` and `eventTypes`. */
  readonly fields?: readonly string[] | undefined;
  /** Of `delivery.failed` and `delivery.withheld`: the `reason` in the delivery log. */
  readonly reason?: string | undefined;
  /**
   * Of `webhook.recovered` and `webhook.replayed`: the number of deliveries, at least 1. Of
   * `events.erased`: the number of events. It is 0 if no event was found, also because an earlier
   * attempt, whose reply was lost, had erased them.
   */
  readonly count?: number | undefined;
}

/** The audit log of one account: `as(subscriber).audit`. */
export interface SubscriberAuditLog {
  /** True if the service keeps the log: `limits.auditEntries` is above 0. */
  readonly isKept: boolean;
  /**
   * Lists the entries of the account, newest first. `limit` is the size of a page, 1 to 100, by
   * default 50.
   *
   * @throws `invalid_argument` if the service keeps no log.
   */
  list(request?: {
    account?: string | undefined;
    cursor?: string | undefined;
    limit?: number | undefined;
  }): List<AuditEntry>;
}

/** The audit log, as a host reads it. */
export interface AuditLog extends Pick<SubscriberAuditLog, "isKept"> {
  /**
   * Lists the entries of an account, newest first. `limit` is the size of a page, 1 to 100, by
   * default 50.
   *
   * @throws `invalid_argument` if the service keeps no log.
   *
   * @example
   * for await (const { at, action } of webhooks.audit.list({ account: "clinic-7" }))
   *   console.log(at, action);
   */
  list(request: {
    account: string;
    cursor?: string | undefined;
    limit?: number | undefined;
  }): List<AuditEntry>;
}
