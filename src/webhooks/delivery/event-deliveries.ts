/** Lists the deliveries of one event to one webhook, without searching the log. */

import { PostbellError } from "../../core/errors.js";
import { invalidField } from "../../core/invalid-field.js";
import { isUuid } from "../../core/uuid.js";
import type { DeliveryRecord, Page, WebhookStore } from "../store.js";
import { formatDeliveryId } from "./delivery-id.js";

/** Deliveries that are read together. Most events have one. */
const READ_TOGETHER = 10;

/** The most deliveries of an event that are read: `recover` may create them without a limit. */
const MAX_READ = 200;

/** @throws `invalid_argument` for a text that is not a UUID. */
export function readEventId(eventId: string): string {
  if (typeof eventId === "string" && isUuid(eventId)) return eventId.toLowerCase();
  throw new PostbellError("invalid_argument", "The id of an event must be a UUID.", { field: "eventId" });
}

/** Reads the deliveries of an event, oldest first. Their serials count up without a gap. */
async function readAll(
  store: Pick<WebhookStore, "getDelivery">,
  webhookId: string,
  eventId: string,
): Promise<readonly DeliveryRecord[]> {
  const found: DeliveryRecord[] = [];
  while (found.length < MAX_READ) {
    const ids = Array.from({ length: READ_TOGETHER }, (_, index) =>
      formatDeliveryId({ webhookId, eventId, serial: found.length + index }),
    );
    const records = await Promise.all(ids.map((id) => store.getDelivery(id)));
    const end = records.indexOf(undefined);
    found.push(...records.slice(0, end === -1 ? undefined : end).filter((record) => record !== undefined));
    if (end !== -1) break;
  }
  return found;
}

type ListRequest = Parameters<WebhookStore["listDeliveries"]>[0];

const isWanted = (
  { state, type, createdAt }: DeliveryRecord,
  wanted: Pick<ListRequest, "state" | "type" | "since" | "until">,
): boolean =>
  (wanted.state === undefined || state === wanted.state) &&
  (wanted.type === undefined || type === wanted.type) &&
  createdAt >= (wanted.since ?? Number.NEGATIVE_INFINITY) &&
  createdAt < (wanted.until ?? Number.POSITIVE_INFINITY);

/** The cursor is the number of deliveries on the previous pages. */
function parseCursor(cursor: Page["cursor"]): number {
  if (cursor === undefined) return 0;
  if (/^[0-9]{1,9}$/.test(cursor)) return Number(cursor);
  throw invalidField("cursor", "cursor must be the `next` of the previous page.");
}

/** Lists deliveries like `listDeliveries` of the store, but those of one event. */
export async function listEventDeliveries(
  store: Pick<WebhookStore, "getDelivery">,
  eventId: string,
  { webhookId, cursor, limit, ...wanted }: ListRequest,
): ReturnType<WebhookStore["listDeliveries"]> {
  const from = parseCursor(cursor);
  const all = await readAll(store, webhookId, eventId);
  const matching = all.filter((record) => isWanted(record, wanted)).reverse();
  const end = from + limit;
  return { deliveries: matching.slice(from, end), next: end < matching.length ? String(end) : null };
}
