/**
 * Encodes and decodes stored webhooks. The Lua functions read and write their first line:
 * library/endpoints.lua.
 */

import { createHash } from "node:crypto";
import { isPostbellError, PostbellError } from "../../src/core/errors.js";
import type { Logger } from "../../src/core/logger.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import { pickDetails } from "../../src/webhooks/store/records.js";
import type { WebhookRecord, WebhookStatus } from "../../src/webhooks/store.js";
import { closeHeaders, openHeaders, type Seal } from "../seal.js";
import { decodeNumber, encodeText } from "./codec.js";

export const encodeStatus = (status: WebhookStatus): string => (status === "ENABLED" ? "E" : "D");

/**
 * Names a filter by its content, so that a filter that is known by its name is the one that the
 * webhook has.
 */
export const getFilterName = (filter: EventFilter): string =>
  createHash("sha256").update(JSON.stringify(filter)).digest("base64url").slice(0, 22);

/**
 * Encodes what a webhook subscribes to, for the record of its account: the types, and the name of
 * its filter.
 */
export const encodeSubscription = ({
  eventTypes,
  filter,
}: Pick<WebhookRecord, "eventTypes" | "filter">): string => {
  const types = eventTypes === null ? "|*|" : `|${eventTypes.map(encodeText).join("|")}|`;
  return filter === undefined ? types : types + getFilterName(filter);
};

/** The part of a webhook that only users change. Scripts do not read it. */
interface Config {
  id: string;
  account: string;
  subscriberId: string;
  url: string;
  eventTypes: readonly string[] | null;
  createdAt: number;
  secret: string;
  previousSecret: string | null;
  rotateAt: number | null;
  /** Not stored if the webhook has none. */
  description: string | undefined;
  metadata: Readonly<Record<string, string>> | undefined;
  filter: EventFilter | undefined;
  /** A JSON object of secret headers, sealed. */
  headers: string | undefined;
  /** A nonce of the latest change, so that no two configs are equal. */
  change: string;
}

/**
 * A webhook's config with its secrets sealed, as `change` makes it. What it is given beyond the
 * known fields (by a later version) stays.
 */
export function encodeWebhook(record: WebhookRecord, seal: Seal, change: string, stored = "{}"): string {
  const { id, account, subscriberId, url, eventTypes, createdAt, secret, previousSecret, rotateAt } = record;
  const { description, metadata, filter, headers } = record;
  const config: Config = {
    id,
    account,
    subscriberId,
    url,
    eventTypes,
    createdAt,
    secret: seal.close(secret, id),
    previousSecret: previousSecret && seal.close(previousSecret, id),
    rotateAt,
    description,
    metadata,
    filter,
    headers: headers && closeHeaders(seal, headers, id),
    change,
  };
  return JSON.stringify({ ...(JSON.parse(stored) as object), ...config });
}

export interface StoredWebhook {
  readonly record: WebhookRecord;
  /** The stored text, which an update compares. */
  readonly config: string;
}

/** Errors: `storage_unavailable` if it cannot be read, or its secret cannot be opened. */
export function decodeWebhook(text: string, seal: Seal): StoredWebhook {
  try {
    return parseWebhook(text, seal);
  } catch (error) {
    if (isPostbellError(error)) throw error;
    throw new PostbellError(
      "storage_unavailable",
      "A stored webhook cannot be read. Restore Redis from a copy.",
    );
  }
}

function parseWebhook(text: string, seal: Seal): StoredWebhook {
  const feed = text.indexOf("\n");
  const config = text.slice(feed + 1);
  const [, , status, generation, updatedAt, failingSince, warnedAt, noticeAt, , , perSecond] = text
    .slice(0, feed)
    .split(",");
  const parsed = JSON.parse(config) as Config;
  const { id, account, subscriberId, url, eventTypes, createdAt, secret, previousSecret, rotateAt } = parsed;
  const record: WebhookRecord = {
    id,
    account,
    subscriberId,
    url,
    status: status === "E" ? "ENABLED" : "DISABLED",
    eventTypes,
    createdAt,
    updatedAt: Number(updatedAt),
    secret: seal.open(secret, id),
    previousSecret: previousSecret && seal.open(previousSecret, id),
    rotateAt,
    generation: Number(generation),
    failingSince: decodeNumber(failingSince),
    warnedAt: decodeNumber(warnedAt),
    noticeAt: decodeNumber(noticeAt),
    ...pickDetails({
      ...parsed,
      headers: parsed.headers === undefined ? null : openHeaders(seal, parsed.headers, id),
      perSecond: decodeNumber(perSecond),
    }),
  };
  return { record, config };
}

/**
 * Decodes the webhooks that can be read. One that cannot be read is logged, and does not hide the
 * others.
 */
export const decodeReadable = (
  texts: readonly (string | null)[],
  { seal, logger }: { seal: Seal; logger: Logger },
): WebhookRecord[] =>
  texts.flatMap((text) => {
    try {
      return text ? [decodeWebhook(text, seal).record] : [];
    } catch (error) {
      logger.error({ error }, "a stored webhook cannot be decoded");
      return [];
    }
  });

/** Decodes the filter of a stored webhook, even if its secret cannot be opened. */
export function decodeFilter(text: string): EventFilter | undefined {
  try {
    return (JSON.parse(text.slice(text.indexOf("\n") + 1)) as Config).filter;
  } catch {
    return undefined;
  }
}

/** Decodes whose webhook it is, even if its secret cannot be opened. */
export function decodeOwner(text: string): { readonly id: string; readonly account: string } | undefined {
  try {
    const { id, account } = JSON.parse(text.slice(text.indexOf("\n") + 1)) as Config;
    return { id, account };
  } catch {
    return undefined;
  }
}
