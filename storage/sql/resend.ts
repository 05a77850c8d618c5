/** Requests one more attempt of a delivery. */

import { type DeliveryKey, parseDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { reopenEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import { addDeliveries, getQueuePlace, toDeliveryId } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import { lockEndpoint, offerAndSave } from "./endpoint-rows.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";
import type { DeliveryRow } from "./webhook-tables.js";
import { deliveries, queue } from "./webhook-tables.js";

type ResendRequest = Parameters<WebhookStore["resend"]>[0];
type ResendResult = Awaited<ReturnType<WebhookStore["resend"]>>;

interface SiblingRow
  extends Pick<
    DeliveryRow,
    "position" | "event" | "serial" | "state" | "started_at" | "due_at" | "extra_at" | "queued_at"
  > {
  /** Its position if it waits in the queue; null if it is in flight, or completed. */
  readonly waiting: number | null;
}

/** The latest deliveries of an event to a webhook, the latest first. */
const SIBLINGS = `SELECT d.position, d.event, d.serial, d.state, d.started_at, d.due_at, d.extra_at, d.queued_at, q.delivery AS waiting
  FROM {events} ev JOIN {deliveries} d ON d.event = ev.position AND d.endpoint = $1
    LEFT JOIN {queue} q ON q.endpoint = d.endpoint AND q.at = d.queued_at AND q.delivery = d.position
  WHERE ev.account = $2 AND ev.id = $3 ORDER BY d.serial DESC`;

/** Moves a waiting delivery to now. */
async function moveToNow(
  transaction: SqlTransaction,
  waiting: SiblingRow,
  endpoint: EndpointRow,
  now: number,
): Promise<void> {
  const place = getQueuePlace({ ...waiting, extra_at: now }, now);
  await transaction.update(
    deliveries,
    ["position"],
    ["extra_at", "queued_at"],
    [[waiting.position, now, place]],
  );
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    [[endpoint.position, waiting.queued_at, waiting.position]],
  );
  await transaction.insert(
    queue,
    ["endpoint", "at", "delivery"],
    [[endpoint.position, place, waiting.position]],
  );
}

/** Adds a delivery of an event that is stored. Returns its serial; none if the event is gone. */
async function addLater(
  transaction: SqlTransaction,
  { event, serial }: SiblingRow,
  endpoint: EndpointRow,
  now: number,
): Promise<number | undefined> {
  const stored = await reopenEvents(transaction, [event]);
  if (!stored.has(event)) return undefined;
  await addDeliveries(
    transaction,
    [{ endpoint: endpoint.position, event, serial: serial + 1, dueAt: now }],
    now,
  );
  endpoint.pending += 1;
  return serial + 1;
}

/** Reads the deliveries of the same event to the same webhook, the latest first. */
async function readSiblings(
  transaction: SqlTransaction,
  { eventId, serial }: DeliveryKey,
  endpoint: EndpointRow,
): Promise<readonly SiblingRow[]> {
  const values = [endpoint.position, endpoint.account, eventId];
  const siblings = await transaction.all<SiblingRow>(SIBLINGS, values);
  return siblings.some((row) => row.serial === serial) ? siblings : [];
}

export async function resend(
  transaction: SqlTransaction,
  { id, account, force, now }: ResendRequest,
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<ResendResult> {
  const key = parseDeliveryId(id);
  if (key === undefined) return undefined;
  const { webhookId, eventId } = key;
  const locked = await lockEndpoint(transaction, { id: webhookId, account });
  if (locked === undefined) return undefined;
  const endpoint = { ...locked };
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
  if (waiting) await moveToNow(transaction, waiting, endpoint, now);
  const serial = waiting ? waiting.serial : await addLater(transaction, latest, endpoint, now);
  if (serial === undefined) return undefined;
  await offerAndSave(transaction, [endpoint], { context, now, after });
  return toResult(serial);
}
