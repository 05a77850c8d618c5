/** A webhook as the host and its subscribers see it. */

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
  /** ISO 8601 in UTC, like all dates here. */
  readonly createdDate: string;
  readonly updatedDate: string;
  /** Since when every attempt has failed; `null` while the endpoint is healthy or untried. */
  readonly failingSince: string | null;
  /** A name for people; `null` if it has none. */
  readonly description: string | null;
  /** Texts by name; `null` if it has none. */
  readonly metadata: Readonly<Record<string, string>> | null;
}

/** Converts a stored record to what a host may see: dates as text, no secrets. */
export const toWebhook = (record: WebhookRecord): Webhook => ({
  id: record.id,
  account: record.account,
  subscriberId: record.subscriberId,
  url: record.url,
  status: record.status,
  eventTypes: record.eventTypes,
  createdDate: new Date(record.createdAt).toISOString(),
  updatedDate: new Date(record.updatedAt).toISOString(),
  failingSince: record.failingSince === null ? null : new Date(record.failingSince).toISOString(),
  description: record.description ?? null,
  metadata: record.metadata ?? null,
});
