/**
 * The JSON that the page and the server exchange. Types only, since both sides are compiled with
 * them. The webhook API gives the same objects as the service does in-process, with dates as ISO
 * 8601.
 */

import type { Delivery, DeliveryAttempt, DeliveryCounts } from "../webhooks/delivery/deliveries.js";
import type { AuditEntry, Webhook } from "../webhooks/webhook.js";

/** A value after `JSON.stringify` and `JSON.parse`. */
type Serialised<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Serialised<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: Serialised<T[Key]> }
      : T;

/** The visitor, and what the visitor may see. */
export interface SessionJson {
  readonly title: string;
  /** The address of the host's logo. */
  readonly logo: string | null;
  /** The visitor's name. */
  readonly name: string;
  readonly parts: { readonly webhooks: boolean; readonly content: boolean };
  /** True if the visitor may see the bodies of notifications. */
  readonly canReadRecords: boolean;
  /** True if the service keeps an audit log, otherwise absent. */
  readonly hasAuditLog?: boolean;
  /** True if the host may know an editor for posts and pages, otherwise absent. */
  readonly hasEditor?: boolean;
  /** When the attempts of a delivery are due, in milliseconds after its first one. */
  readonly schedule: readonly number[];
  /** The server's time. */
  readonly now: string;
}

export interface ErrorJson {
  readonly error: {
    readonly code: string;
    readonly message: string;
    /** The field of the request at fault. */
    readonly field?: string;
  };
}

export type WebhookJson = Pick<Webhook, "id" | "url" | "status" | "createdDate" | "updatedDate">;

export type StatsJson = Serialised<DeliveryCounts>;

/** The attempts of an hour. */
export type HourJson = StatsJson["hours"][number];

/** A webhook that was read with `include=details`. */
export type NamedWebhookJson = WebhookJson & Pick<Webhook, "description" | "metadata">;

/** A webhook that was read with `include=stats,details`. */
export type WebhookWithStatsJson = NamedWebhookJson & { readonly stats: StatsJson };

export interface WebhookListJson<T = WebhookWithStatsJson> {
  readonly webhooks: readonly T[];
  readonly next: string | null;
}

/** A page of webhooks that were read with `include=event_types,details`. */
export type SubscriptionPageJson = WebhookListJson<
  NamedWebhookJson & { readonly event_types: readonly string[] }
>;

export interface CreatedWebhookJson {
  readonly webhook: WebhookJson;
  readonly secret: string;
}

export interface RotatedSecretJson {
  readonly secret: string;
  readonly rotatesAt: string;
}

export type AttemptJson = Serialised<DeliveryAttempt>;

/** The result of an attempt; a list also has its duration. */
export type AttemptResultJson = Pick<AttemptJson, "at" | "kind" | "status" | "code"> &
  Partial<Pick<AttemptJson, "durationMs">>;

export type DeliveryJson = Serialised<Delivery>;
export type DeliveryStateJson = Delivery["state"];

/** A delivery in a list. It has its attempts only if they were asked for. */
export interface DeliveryRowJson extends Omit<DeliveryJson, "attempts"> {
  readonly attemptCount: number;
  readonly lastAttempt: AttemptResultJson | null;
  readonly attempts?: readonly AttemptJson[];
}

export interface DeliveryPageJson {
  readonly deliveries: readonly DeliveryRowJson[];
  readonly next: string | null;
}

/** The request that an attempt sends. */
export interface DeliveryRequestJson {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The size of the body. */
  readonly bytes: number;
  /** `null` unless it was asked for and the caller may see it. */
  readonly body: string | null;
}

export interface EventTypesJson {
  readonly eventTypes: readonly string[];
}

export interface EventTypeJson {
  readonly type: string;
  readonly description: string | null;
  /** The resource types of its record; `null` for an event without a FHIR resource. */
  readonly resourceTypes: readonly string[] | null;
  readonly schema: object | null;
}

/** The event types that were read with `include=details`. */
export interface CatalogueJson extends EventTypesJson {
  readonly details: readonly EventTypeJson[];
}

export type AuditEntryJson = Serialised<Omit<AuditEntry, "account">>;

export interface AuditPageJson {
  readonly entries: readonly AuditEntryJson[];
  readonly next: string | null;
}
