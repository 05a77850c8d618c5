/** Lists the deliveries of the events that have a subject or a tag. */

import { PostbellError } from "../../core/errors.js";
import type { EventKey, WebhookRecord, WebhookStore } from "../store.js";
import type { Delivery } from "./deliveries.js";
import { isWanted, type LogQuery, type LogRow } from "./delivery-lists.js";

/** A search in the log of an account. */
export interface KeySearch extends LogQuery {
  account: string;
  key: EventKey;
  /** Only deliveries to this webhook. */
  webhookId?: string | undefined;
  /** The webhooks of the account that the caller may see. */
  webhooks: readonly WebhookRecord[];
  /** Converts deliveries for the caller, in order. */
  show: (rows: LogRow[]) => Promise<Delivery[]>;
}

/** Events that one call of the storage reads. */
const EVENTS_PER_CALL = 50;

/** The most calls of the storage for one page. */
const MAX_CALLS = 20;

/** The place of a page: deliveries to skip, and the cursor of the storage. */
const CURSOR = /^([0-9]{1,6})\.([\x21-\x7e]{0,200})$/;

function parsePlace(cursor: string | undefined): { skip: number; page: string | undefined } {
  if (cursor === undefined) return { skip: 0, page: undefined };
  const [, skip, page] = (typeof cursor === "string" && CURSOR.exec(cursor)) || [];
  if (skip !== undefined) return { skip: Number(skip), page: page || undefined };
  const message = "cursor must be the `next` of the previous page.";
  throw new PostbellError("invalid_argument", message, { field: "cursor" });
}

/** True if the caller is shown the key: it must not learn of records that it may not read. */
const isShown = ({ subject, tags }: Delivery, key: EventKey): boolean =>
  key.subject === undefined ? tags.includes(key.tag) : subject === key.subject;

/**
 * Lists deliveries, those of the newest event first. Only those are listed whose key is shown to
 * the caller. A full page looks ahead for one more, so that `next` does not tell of others.
 */
export async function listByKey(
  store: WebhookStore,
  { account, key, webhookId, webhooks, show, cursor, limit, ...filter }: KeySearch,
): Promise<{ items: Delivery[]; next: string | null }> {
  const byId = new Map(webhooks.map((webhook) => [webhook.id, webhook]));
  const place = parsePlace(cursor);
  const found: Delivery[] = [];
  for (let calls = 0; calls < MAX_CALLS; calls++) {
    const { page } = place;
    const request = { account, key, webhookId, cursor: page, limit: EVENTS_PER_CALL };
    const { events, next } = await store.findEvents(request);
    const rows: LogRow[] = [];
    const places: number[] = [];
    for (const [index, delivery] of events.flatMap(({ deliveries }) => deliveries).entries()) {
      const webhook = byId.get(delivery.webhookId);
      if (webhook === undefined || index < place.skip || !isWanted(delivery, filter)) continue;
      rows.push({ delivery, webhook });
      places.push(index);
    }
    for (const [index, delivery] of (await show(rows)).entries()) {
      if (!isShown(delivery, key)) continue;
      if (found.length === limit) return { items: found, next: `${places[index]}.${page ?? ""}` };
      found.push(delivery);
    }
    if (next === null) return { items: found, next: null };
    place.page = next;
    place.skip = 0;
  }
  return { items: found, next: `0.${place.page ?? ""}` };
}
