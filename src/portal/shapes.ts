/**
 * The JSON that the page and the server exchange. Types only, since both sides are compiled with
 * them. The webhook API gives the same objects as the service does in-process, with dates as ISO
 * 8601.
 */

import type { Account } from "../webhooks/accounts.js";
import type { Delivery, DeliveryAttempt, DeliveryCounts } from "../webhooks/delivery/deliveries.js";
import type { Examination, ExaminationCheck } from "../webhooks/delivery/examination.js";
import type { Explanation } from "../webhooks/delivery/explanation.js";
import type { AuditEntry, Webhook } from "../webhooks/webhook.js";

/** A value after `JSON.stringify` and `JSON.parse`. */
type Serialised<T> = T extends Date
  ? string
  : T extends (infer Item)[]
    ? Serialised<Item>[]
    : T extends object
      ? { [Key in keyof T]: Serialised<T[Key]> }
      : T;

/** The visitor, and what the visitor may see. */
export interface SessionJson {
  title: string;
  /** The address of the host's logo. */
  logo: string | null;
  /** The visitor's name. */
  name: string;
  parts: { webhooks: boolean; content: boolean };
  /** True if the visitor may see the bodies of notifications. */
  canReadRecords: boolean;
  /** True if the service keeps an audit log, otherwise absent. */
  hasAuditLog?: boolean;
  /** The account that an operator looks at; otherwise absent. */
  account?: string;
  /** True for an operator, who may list all accounts; otherwise absent. */
  isOperator?: boolean;
  /** True if the host may know an editor for posts and pages, otherwise absent. */
  hasEditor?: boolean;
  /** When the attempts of a delivery are due, in milliseconds after its first one. */
  schedule: readonly number[];
  /** The server's time. */
  now: string;
}

export interface ErrorJson {
  error: {
    code: string;
    message: string;
    /** The field of the request at fault. */
    field?: string;
  };
}

export interface WebhookJson extends Pick<Webhook, "id" | "url" | "status"> {
  createdDate: string;
  updatedDate: string;
}

export type StatsJson = Serialised<DeliveryCounts>;

/** The attempts of an hour. */
export type HourJson = StatsJson["hours"][number];

/** A webhook that was read with `include=details`. */
export type NamedWebhookJson = WebhookJson & Pick<Webhook, "description" | "metadata">;

/** A webhook that was read with `include=stats,details`. */
export type WebhookWithStatsJson = NamedWebhookJson & { stats: StatsJson } & EndpointOptionsJson;

/** The settings that the service offers, as the API names them. Absent: not offered. */
interface EndpointOptionsJson {
  filter?: object | null;
  header_names?: string[];
  per_second?: number | null;
}

export interface WebhookListJson<T = WebhookWithStatsJson> {
  webhooks: T[];
  next: string | null;
}

/** A page of webhooks that were read with `include=event_types,details`. */
export type SubscriptionPageJson = WebhookListJson<NamedWebhookJson & { event_types: string[] }>;

export interface CreatedWebhookJson {
  webhook: WebhookJson;
  secret: string;
}

export interface RotatedSecretJson {
  secret: string;
  rotatesAt: string;
}

export type AttemptJson = Serialised<DeliveryAttempt>;

/** The result of an attempt; a list also has its duration. */
export type AttemptResultJson = Pick<AttemptJson, "at" | "kind" | "status" | "code"> &
  Partial<Pick<AttemptJson, "durationMs">>;

export type DeliveryJson = Serialised<Delivery>;
export type DeliveryStateJson = Delivery["state"];

/** A delivery in a list. It has its attempts only if they were asked for. */
export interface DeliveryRowJson extends Omit<DeliveryJson, "attempts"> {
  attemptCount: number;
  lastAttempt: AttemptResultJson | null;
  attempts?: AttemptJson[];
}

export interface DeliveryPageJson {
  deliveries: DeliveryRowJson[];
  next: string | null;
}

/** The request that an attempt sends. */
export interface DeliveryRequestJson {
  method: string;
  url: string;
  headers: Record<string, string>;
  /** The size of the body. */
  bytes: number;
  /** `null` unless it was asked for and the caller may see it. */
  body: string | null;
}

export interface EventTypesJson {
  eventTypes: string[];
}

export interface EventTypeJson {
  type: string;
  description: string | null;
  /** The resource types of its record; `null` for an event without a FHIR resource. */
  resourceTypes: string[] | null;
  schema: object | null;
}

/** The event types that were read with `include=details`. */
export interface CatalogueJson extends EventTypesJson {
  details: EventTypeJson[];
}

export type AuditEntryJson = Serialised<Omit<AuditEntry, "account" | "webhookId">> & { webhookId: string };

/** An account in the list of an operator. */
export type AccountJson = Serialised<Account>;

export interface AccountPageJson {
  items: AccountJson[];
  next: string | null;
}

/** An account that an operator's search has found, and where. */
export interface FoundAccountJson {
  account: string;
  kind: "account" | "endpoint" | "event";
  webhookId?: string;
  deliveryId?: string;
}

export interface AuditPageJson {
  entries: AuditEntryJson[];
  next: string | null;
}

export type ExaminationCheckJson = ExaminationCheck;

export interface ExaminationJson extends Serialised<Omit<Examination, "checks">> {
  checks: ExaminationCheckJson[];
}

export type ExplanationJson = Serialised<Explanation>;
