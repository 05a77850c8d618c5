/** Requests one more attempt of a delivery. */

import { subscribes } from "../../src/webhooks/event-types/catalogue.js";
import {
  type DeliveryKey,
  MAX_RESENT,
  parseDeliveryId,
  RECOVERED_STATES,
} from "../../src/webhooks/store/records.js";
import type { RecoverableState, WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { decodeStoredText } from "../stored-text.js";
import { reopenEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import { addDeliveries, getQueuePlace, type NewDelivery, toDeliveryId } from "./delivery-rows.js";
import { lockEndpoint, offerAndSave, type Writing } from "./endpoint-rows.js";
import { decodeEventTypes, readWebhooks } from "./webhook-rows.js";
import { type DeliveryRow, deliveries, type EndpointRow, queue } from "./webhook-tables.js";

type ResendRequest = Parameters<WebhookStore["resend"]>[0];
type ResendResult = Awaited<ReturnType<WebhookStore["resend"]>>;

/** `waiting`: its position if it waits in the queue; null if it is in flight, or completed. */
type SiblingRow = DeliveryRow & { waiting: number | null };

/** The latest deliveries of an event to a webhook, the latest first. */
const SIBLINGS = `SELECT d.*, q.delivery AS waiting
  FROM {events} ev JOIN {deliveries} d ON d.event = ev.position AND d.endpoint = $1
    LEFT JOIN {queue} q ON q.endpoint = d.endpoint AND q.at = d.queued_at AND q.delivery = d.position
  WHERE ev.account = $2 AND ev.id = $3 ORDER BY d.serial DESC`;

/** Moves a waiting delivery to now. */
async function moveToNow(transaction: SqlTransaction, waiting: SiblingRow, now: number): Promise<void> {
  const { endpoint, position, queued_at } = waiting;
  const place = getQueuePlace({ ...waiting, extra_at: now }, now);
  const columns = ["endpoint", "at", "delivery"];
  await transaction.update(deliveries, ["position"], ["extra_at", "queued_at"], [[position, now, place]]);
  await transaction.remove(queue, columns, [[endpoint, queued_at, position]]);
  await transaction.insert(queue, columns, [[endpoint, place, position]]);
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
  if (waiting) await moveToNow(transaction, waiting, now);
  const serial = waiting ? waiting.serial : await addLater(transaction, latest, endpoint, now);
  if (serial === undefined) return undefined;
  await offerAndSave(transaction, [endpoint], writing);
  return toResult(serial);
}

// Creates deliveries of events that a webhook missed.

type RecoverRequest = Parameters<WebhookStore["recover"]>[0];
type RecoverResult = Awaited<ReturnType<WebhookStore["recover"]>>;

/** The most events that one call examines. */
const MAX_EXAMINED = 500;

/** The most later deliveries that one call examines: an event may have a hundred to a webhook. */
const MAX_DELIVERIES = 1_000;

/** The time and the position of the last event of the page before. */
const CURSOR = /^[0-9]{1,15}\.[0-9]{1,15}$/;

interface ExaminedRow {
  position: number;
  stored_at: number;
  type: string;
  is_test: number;
}

/**
 * The deliveries of an event to the webhook: how many, how many of them pending or delivered, how
 * many withheld, the last.
 */
interface StandingRow {
  event: number;
  count: number;
  others: number;
  withheld: number;
  last: number | null;
}

const STANDING = `SELECT $2 AS event, count(*) AS count, coalesce(sum(CASE WHEN state IN ('failed', 'withheld') THEN 0 ELSE 1 END), 0) AS others,
    coalesce(sum(CASE WHEN state = 'withheld' THEN 1 ELSE 0 END), 0) AS withheld, max(serial) AS last
  FROM (SELECT state, serial FROM {deliveries} WHERE event = $2 AND endpoint = $1 ORDER BY serial DESC LIMIT ${MAX_DELIVERIES}) AS latest`;

async function readExamined(
  transaction: SqlTransaction,
  { account, since, cursor, limit }: RecoverRequest,
): Promise<{ rows: ExaminedRow[]; isMore: boolean }> {
  const [at = 0, position = 0] = (validateCursor(cursor, CURSOR) || "0.0").split(".").map(Number);
  const count = Math.min(limit, MAX_EXAMINED);
  const rows = await transaction.all<ExaminedRow>(
    `SELECT position, stored_at, type, is_test FROM {events}
      WHERE account = $1 AND stored_at >= $2 AND (stored_at, position) > ($3, $4) ORDER BY stored_at, position LIMIT $5`,
    [account, since, at, position, count + 1],
  );
  return { rows: rows.slice(0, count), isMore: rows.length > count };
}

/** Selects the first events that together have no more than {@link MAX_DELIVERIES}. */
function takeWithinBudget(standings: StandingRow[]): number {
  let left = MAX_DELIVERIES;
  const full = standings.findIndex(({ count }) => {
    left -= Number(count);
    return left <= 0;
  });
  return full < 0 ? standings.length : full + 1;
}

/** Returns how an event stands for the webhook; `undefined` if it is pending or was delivered. */
function getRecoverableState({ count, others, withheld }: StandingRow): RecoverableState | undefined {
  if (Number(others) > 0) return undefined;
  if (Number(count) === 0) return "missed";
  return Number(withheld) > 0 ? "withheld" : "failed";
}

const getNextSerial = ({ last }: StandingRow): number => (last === null ? 0 : Number(last) + 1);

async function addMissed(
  transaction: SqlTransaction,
  missed: StandingRow[],
  endpoint: EndpointRow,
  { dueAt, everyMs, now }: RecoverRequest,
): Promise<number> {
  const stored = await reopenEvents(
    transaction,
    missed.map(({ event }) => Number(event)),
  );
  const added = missed
    .filter(({ event }) => stored.has(Number(event)))
    .map(
      (standing, index): NewDelivery => ({
        endpoint: endpoint.position,
        event: Number(standing.event),
        serial: getNextSerial(standing),
        dueAt: dueAt + index * everyMs,
      }),
    );
  await addDeliveries(transaction, added, now);
  endpoint.pending += added.length;
  return added.length;
}

export async function recover(
  transaction: SqlTransaction,
  request: RecoverRequest,
  writing: Writing,
): Promise<RecoverResult> {
  const { webhookId, account, type: wanted, states = RECOVERED_STATES } = request;
  const endpoint = await lockEndpoint(transaction, { id: webhookId, account });
  const [webhook] = endpoint ? await readWebhooks(transaction, [endpoint.position]) : [];
  if (endpoint === undefined || webhook === undefined) return undefined;
  const types = decodeEventTypes(webhook.event_types);
  const { rows, isMore } = await readExamined(transaction, request);
  const standings = await transaction.forEach<StandingRow>(
    STANDING,
    ["int", "int"],
    rows.map(({ position }) => [endpoint.position, position]),
  );
  const taken = takeWithinBudget(standings);
  const missed = standings.filter((standing, index) => {
    const row = rows[index];
    if (row === undefined || index >= taken || row.is_test === 1) return false;
    const type = decodeStoredText(row.type);
    if ((wanted !== undefined && type !== wanted) || !subscribes(types, type)) return false;
    const state = getRecoverableState(standing);
    return state !== undefined && states.includes(state) && getNextSerial(standing) <= MAX_RESENT;
  });
  const count = await addMissed(transaction, missed, endpoint, request);
  if (count > 0) await offerAndSave(transaction, [endpoint], writing);
  const last = rows[taken - 1];
  const next = (isMore || taken < rows.length) && last ? `${last.stored_at}.${last.position}` : null;
  return { count, examined: taken, next };
}
