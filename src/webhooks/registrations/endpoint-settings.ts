/**
 * The settings of an endpoint that the option `registrations` turns on: a filter, secret headers,
 * and a rate. Checks them, and says which of them a caller may pass.
 */

import { invalidField } from "../call-arguments.js";
import type { WebhooksConfig } from "../config/config.js";
import { type Catalogue, isPlain, subscribes } from "../event-types/catalogue.js";
import { type EventFilter, readFilter } from "../event-types/event-filter.js";
import { findHeaderFault } from "../sender.js";
import type { WebhookChange, WebhookRecord } from "../store.js";

/** The settings as a call passes them. `null` removes one. */
export interface EndpointSettings {
  /**
   * The conditions on the data of events that the webhook gets; see `EventFilter`. The webhook must
   * subscribe to plain event types only. An event that the filter refuses is counted as `filtered`
   * in its statistics, and not stored for it. Needs the option `registrations.filters`.
   */
  filter?: EventFilter | null | undefined;
  /**
   * Secret headers of its deliveries, such as an API key of the receiver: at most 10 of visible
   * ASCII, 1 024 bytes each. Names are stored in lower case. No call returns the values. Those of
   * Postbell and of the connection cannot be set; those of `delivery.headers` replace one of the
   * same name. Needs the option `registrations.headers`.
   */
  headers?: Readonly<Record<string, string>> | null | undefined;
  /**
   * How many of its deliveries may be claimed in one second, 1 to 10 000, in place of
   * `delivery.perSecond`. Subscribers may set it with the option `registrations.perSecond`.
   */
  perSecond?: number | null | undefined;
}

type Setting = keyof EndpointSettings;

/** Lists the settings that a caller may pass. The host may always set the rate. */
export function listSettings(
  { filters, headers, perSecond }: WebhooksConfig["registrations"],
  isForHost: boolean,
): Setting[] {
  const offered: Record<Setting, boolean> = { filter: filters, headers, perSecond: perSecond || isForHost };
  return (Object.keys(offered) as Setting[]).filter((name) => offered[name]);
}

/** The bounds of the secret headers. `delivery.headers` may send larger ones. */
export const HEADER_BOUNDS = { count: 10, nameCharacters: 128, valueBytes: 1_024 } as const;

export const MAX_PER_SECOND = 10_000;

/** Returns headers by lower-case name. Throws `invalid_request`, without a value. */
function readHeaders(headers: unknown, signatureHeader: string): Record<string, string> | null {
  if (headers === null) return null;
  if (Object.prototype.toString.call(headers) !== "[object Object]")
    throw invalidField("headers", "headers must be an object of texts by name; null removes them.");
  const entries = Object.entries(headers as object) as [string, unknown][];
  const { count, valueBytes } = HEADER_BOUNDS;
  if (entries.length === 0 || entries.length > count) {
    const seen = `1 to ${count} names (got ${entries.length})`;
    throw invalidField("headers", `headers must have ${seen}; null removes them.`);
  }
  const read = new Map<string, string>();
  for (const [name, value] of entries) {
    const key = name.toLowerCase();
    const fault =
      key === "__proto__"
        ? "the header __proto__ cannot be set"
        : findHeaderFault(name, value, {
            signatureName: signatureHeader.toLowerCase(),
            maxLength: valueBytes,
          });
    if (fault !== undefined) throw invalidField("headers", `headers: ${fault}.`);
    if (read.has(key)) throw invalidField("headers", `headers: the header ${key} is there twice.`);
    read.set(key, value as string);
  }
  return Object.fromEntries([...read].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function readPerSecond(perSecond: unknown): number | null {
  if (perSecond === null) return null;
  const isRate = Number.isInteger(perSecond) && (perSecond as number) >= 1;
  if (isRate && (perSecond as number) <= MAX_PER_SECOND) return perSecond as number;
  const expected = `a whole number from 1 to ${MAX_PER_SECOND}`;
  throw invalidField("perSecond", `perSecond must be ${expected}; null removes it.`);
}

/** Checks and copies the settings that are present. Throws `invalid_request`. */
export const readSettings = (
  { filter, headers, perSecond }: EndpointSettings,
  { signature }: WebhooksConfig,
): EndpointSettings => ({
  ...(filter !== undefined && { filter: readFilter(filter) }),
  ...(headers !== undefined && { headers: readHeaders(headers, signature.header) }),
  ...(perSecond !== undefined && { perSecond: readPerSecond(perSecond) }),
});

/**
 * Throws `invalid_request` if a webhook with a filter would subscribe to an event type with a FHIR
 * resource: filters apply to plain events only.
 */
export function checkFilteredTypes({ filter, eventTypes }: WebhookChange, { types }: Catalogue): void {
  if (filter == null) return;
  const withResource = [...types].find(
    ([type, entry]) => !isPlain(entry) && subscribes(eventTypes ?? null, type),
  );
  if (withResource === undefined) return;
  throw invalidField(
    "filter",
    `filter applies to events with data only, and this webhook subscribes to ${withResource[0]}, which has a FHIR resource: name the types that have data in its event types.`,
  );
}

/**
 * Throws `invalid_request` if a change does not go with the settings of a webhook. Secret headers
 * stay with the origin of the URL: whoever sends them elsewhere must know them.
 */
export function checkSettings(webhook: WebhookRecord, change: WebhookChange, catalogue: Catalogue): void {
  if (change.filter !== undefined || change.eventTypes !== undefined)
    checkFilteredTypes({ ...webhook, ...change }, catalogue);
  if (webhook.headers === undefined || change.headers !== undefined || change.url === undefined) return;
  if (new URL(change.url).origin === new URL(webhook.url).origin) return;
  throw invalidField(
    "headers",
    "headers are secret, and url has another origin than they were set for: pass headers again, or null to remove them.",
  );
}
