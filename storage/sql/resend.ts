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
import { lockEndpoint, offerAndSave } from "./endpoint-rows.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";
import { decodeEventTypes } from "./webhook-rows.js";
import type { EndpointRow } from "./webhook-tables.js";
import { type DeliveryRow, deliveries, queue } from "./webhook-tables.js";

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

// Creates deliveries of events that a webhook missed.

type RecoverRequest = Parameters<WebhookStore["recover"]>[0];
type RecoverResult = Awaited<ReturnType<WebhookStore["recover"]>>;

/** The most events that one call examines. */
const MOST_EXAMINED = 500;

/** The most later deliveries that one call examines: an event may have a hundred to a webhook. */
const MOST_DELIVERIES = 1_000;

/** The time and the position of the last event of the page before. */
const CURSOR = /^[0-9]{1,15}\.[0-9]{1,15}$/;

interface ExaminedRow {
  readonly position: number;
  readonly stored_at: number;
  readonly type: string;
  readonly is_test: number;
}

/**
 * The deliveries of an event to the webhook: how many, how many of them pending or delivered, how
 * many withheld, the last.
 */
interface StandingRow {
  readonly event: number;
  readonly count: number;
  readonly others: number;
  readonly withheld: number;
  readonly last: number | null;
}

const STANDING = `SELECT $2 AS event, count(*) AS count, coalesce(sum(CASE WHEN state IN ('failed', 'withheld') THEN 0 ELSE 1 END), 0) AS others,
    coalesce(sum(CASE WHEN state = 'withheld' THEN 1 ELSE 0 END), 0) AS withheld, max(serial) AS last
  FROM (SELECT state, serial FROM {deliveries} WHERE event = $2 AND endpoint = $1 ORDER BY serial DESC LIMIT ${MOST_DELIVERIES}) AS own`;

async function readExamined(
  transaction: SqlTransaction,
  { account, since, cursor, limit }: RecoverRequest,
): Promise<{ readonly rows: readonly ExaminedRow[]; readonly isMore: boolean }> {
  const [at = 0, position = 0] = (validateCursor(cursor, CURSOR) || "0.0").split(".").map(Number);
  const most = Math.min(limit, MOST_EXAMINED);
  const rows = await transaction.all<ExaminedRow>(
    `SELECT position, stored_at, type, is_test FROM {events}
      WHERE account = $1 AND stored_at >= $2 AND (stored_at, position) > ($3, $4) ORDER BY stored_at, position LIMIT $5`,
    [account, since, at, position, most + 1],
  );
  return { rows: rows.slice(0, most), isMore: rows.length > most };
}

/** Selects the first events that together have no more than {@link MOST_DELIVERIES}. */
function takeWithinBudget(standings: readonly StandingRow[]): number {
  let left = MOST_DELIVERIES;
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
  missed: readonly StandingRow[],
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
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<RecoverResult> {
  const { webhookId, account, now, type: wanted, states = RECOVERED_STATES } = request;
  const locked = await lockEndpoint(transaction, { id: webhookId, account });
  const [webhook] = locked
    ? await transaction.all<{ event_types: string | null }>(
        "SELECT event_types FROM {webhooks} WHERE position = $1",
        [locked.position],
      )
    : [];
  if (locked === undefined || webhook === undefined) return undefined;
  const endpoint = { ...locked };
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
  if (count > 0) await offerAndSave(transaction, [endpoint], { context, now, after });
  const last = rows[taken - 1];
  const next = (isMore || taken < rows.length) && last ? `${last.stored_at}.${last.position}` : null;
  return { count, examined: taken, next };
}
