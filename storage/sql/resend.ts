/** Requests one more attempt of a delivery. */

import { type DeliveryKey, parseDeliveryId } from "../../src/webhooks/store/records.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { reopenEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import { addDeliveries, requestExtra, toDeliveryId } from "./delivery-rows.js";
import { lockEndpoint, offerAndSave, type Writing } from "./endpoint-rows.js";
import type { DeliveryRow, EndpointRow } from "./webhook-tables.js";

type ResendRequest = Parameters<WebhookStore["resend"]>[0];
type ResendResult = Awaited<ReturnType<WebhookStore["resend"]>>;

/** `waiting`: its position if it waits in the queue; null if it is in flight, or completed. */
type SiblingRow = DeliveryRow & { waiting: number | null };

/** The latest deliveries of an event to a webhook, the latest first. */
const SIBLINGS = `SELECT d.*, q.delivery AS waiting
  FROM {events} ev JOIN {deliveries} d ON d.event = ev.position AND d.endpoint = $1
    LEFT JOIN {queue} q ON q.endpoint = d.endpoint AND q.at = d.queued_at AND q.delivery = d.position
  WHERE ev.account = $2 AND ev.id = $3 ORDER BY d.serial DESC`;

/** Adds a delivery of an event that is stored. Returns its serial; none if the event is gone. */
async function addLater(
  transaction: SqlTransaction,
  { event, serial }: SiblingRow,
  endpoint: EndpointRow,
  now: number,
): Promise<number | undefined> {
  const stored = await reopenEvents(transaction, [event]);
  if (!stored.has(event)) return undefined;
  const added = { endpoint: endpoint.position, event, serial: serial + 1, dueAt: now };
  await addDeliveries(transaction, [added], now);
  endpoint.pending += 1;
  return serial + 1;
}

/** Reads the deliveries of the same event to the same webhook, the latest first. */
async function readSiblings(
  transaction: SqlTransaction,
  { eventId, serial }: DeliveryKey,
  endpoint: EndpointRow,
): Promise<SiblingRow[]> {
  const values = [endpoint.position, endpoint.account, eventId];
  const siblings = await transaction.all<SiblingRow>(SIBLINGS, values);
  return siblings.some((row) => row.serial === serial) ? siblings : [];
}

export async function resend(
  transaction: SqlTransaction,
  { id, account, force, now }: ResendRequest,
  writing: Writing,
): Promise<ResendResult> {
  const key = parseDeliveryId(id);
  if (key === undefined) return undefined;
  const { webhookId, eventId } = key;
  const endpoint = await lockEndpoint(transaction, { id: webhookId, account });
  if (endpoint === undefined) return undefined;
  const siblings = await readSiblings(transaction, key, endpoint);
  const [latest] = siblings;
  if (latest === undefined) return undefined;
  const toResult = (serial: number, isInFlight = false) => ({
    id: toDeliveryId(webhookId, eventId, serial),
    isInFlight,
  });
  const open = siblings.filter(({ state }) => state === "pending");
  const inFlight = open.find((row) => row.waiting === null);
  if (inFlight && !force) return toResult(inFlight.serial, true);
  const waiting = open.findLast((row) => row.waiting !== null);
  if (waiting && (waiting.extra_at ?? waiting.due_at) <= now) return toResult(waiting.serial);
  if (waiting) await requestExtra(transaction, [{ row: waiting, at: now }], now);
  const serial = waiting ? waiting.serial : await addLater(transaction, latest, endpoint, now);
  if (serial === undefined) return undefined;
  await offerAndSave(transaction, [endpoint], writing);
  return toResult(serial);
}
