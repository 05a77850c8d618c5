/** Reads the delivery log on SQL. */

import { parseDeliveryId } from "../../src/webhooks/store/records.js";
import type {
  Attempt,
  AttemptSummary,
  DeliveryRecord,
  DeliveryState,
  DeliveryStats,
  StoredEventRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { countFreeSlots, findOpenTime } from "../queue/endpoint.js";
import { summariseAttempts } from "../queue/recent-attempts.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import { readChangesOf } from "./changes.js";
import type { SqlTransaction, SqlValue } from "./database.js";
import { decodeEventRow, decodeTags, toDeliveryId } from "./delivery-rows.js";
import { getClaimed, getPerSecond, getRecentHour } from "./endpoint-rows.js";
import type { SqlStoreContext } from "./store-context.js";
import type { DeliveryRow, EndpointRow, EventTexts, HourRow } from "./webhook-tables.js";

/** The most deliveries that a page with a filter examines. */
const MAX_EXAMINED = 1_000;

/** The time and the position of the last delivery of the page before. */
const CURSOR = /^[0-9]{1,15}\.[0-9]{1,15}$/;

/** A pending delivery that is not in the queue is in flight. */
const IN_FLIGHT = `CASE WHEN d.state = 'pending' AND NOT EXISTS (
  SELECT 1 FROM {queue} q WHERE q.endpoint = d.endpoint AND q.at = d.queued_at AND q.delivery = d.position
) THEN 1 ELSE 0 END`;

const SELECT = `SELECT d.*, ${IN_FLIGHT} AS in_flight, ep.id AS webhook_id, ev.id AS event_id, ev.type, ev.subject, ev.tags
  FROM {deliveries} d JOIN {events} ev ON ev.position = d.event JOIN {endpoints} ep ON ep.position = d.endpoint`;

type LoggedRow = DeliveryRow & {
  in_flight: number;
  webhook_id: string;
  event_id: string;
  type: string;
  subject: string | null;
  tags: string | null;
};

const decodeAttempts = (lines: string): Attempt[] =>
  lines === "" ? [] : lines.split("\n").map((line) => JSON.parse(decodeStoredText(line)) as Attempt);

const toRecord = (row: LoggedRow): DeliveryRecord => ({
  id: toDeliveryId(row.webhook_id, row.event_id, row.serial),
  webhookId: row.webhook_id,
  eventId: row.event_id,
  type: decodeStoredText(row.type),
  subject: row.subject === null ? null : decodeStoredText(row.subject),
  tags: decodeTags(row.tags),
  state: row.state as DeliveryState,
  reason: row.reason,
  createdAt: row.created_at,
  startedAt: row.started_at,
  step: row.step,
  isInFlight: Number(row.in_flight) === 1,
  dueAt: row.state === "pending" ? row.due_at : null,
  endedAt: row.ended_at,
  attempts: decodeAttempts(row.attempts),
});

/** Finds a delivery by its id. */
async function findLoggedDelivery(transaction: SqlTransaction, id: string): Promise<LoggedRow | undefined> {
  const key = parseDeliveryId(id);
  if (key === undefined) return undefined;
  const [row] = await transaction.all<LoggedRow>(
    `${SELECT} WHERE ep.id = $1 AND ev.account = ep.account AND ev.id = $2 AND d.serial = $3`,
    [key.webhookId, key.eventId, key.serial],
  );
  return row;
}

type ListRequest = Parameters<WebhookStore["listDeliveries"]>[0];

interface ExaminedRow {
  position: number;
  created_at: number;
  state: string;
  type: string;
}

const readExamined = (
  transaction: SqlTransaction,
  endpoint: number,
  { since, until, cursor }: ListRequest,
  limit: number,
): Promise<ExaminedRow[]> => {
  const [at, position] = (validateCursor(cursor, CURSOR) || `${Number.MAX_SAFE_INTEGER}.0`)
    .split(".")
    .map(Number);
  const values: SqlValue[] = [
    endpoint,
    since ?? 0,
    Math.min(until ?? Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    at ?? 0,
    position ?? 0,
    limit,
  ];
  return transaction.all<ExaminedRow>(
    `SELECT d.position, d.created_at, d.state, ev.type
      FROM {deliveries} d JOIN {events} ev ON ev.position = d.event
      WHERE d.endpoint = $1 AND d.created_at >= $2 AND d.created_at < $3 AND (d.created_at, d.position) < ($4, $5)
      ORDER BY d.created_at DESC, d.position DESC LIMIT $6`,
    values,
  );
};

async function listDeliveries(
  transaction: SqlTransaction,
  request: ListRequest,
): Promise<Awaited<ReturnType<WebhookStore["listDeliveries"]>>> {
  const { webhookId, state, type, limit } = request;
  validateCursor(request.cursor, CURSOR);
  const [endpoint] = await transaction.all<{ position: number }>(
    "SELECT position FROM {endpoints} WHERE id = $1",
    [webhookId],
  );
  if (endpoint === undefined) return { deliveries: [], next: null };
  const stored = type === undefined ? undefined : encodeStoredText(type);
  const isFiltered = state !== undefined || type !== undefined;
  const count = isFiltered ? MAX_EXAMINED : limit + 1;
  const examined = await readExamined(transaction, endpoint.position, request, count);
  const wanted = examined.filter(
    (row) => (state === undefined || row.state === state) && (stored === undefined || row.type === stored),
  );
  const shown = wanted.slice(0, limit);
  const rows = await transaction.forEach<LoggedRow>(
    `${SELECT} WHERE d.position = $1`,
    ["int"],
    shown.map(({ position }) => [position]),
  );
  const isMore = wanted.length > limit || (isFiltered && examined.length === count);
  const last = wanted.length > limit ? shown.at(-1) : examined.at(-1);
  const page = { deliveries: rows.map(toRecord), next: null };
  if (!isMore || last === undefined) return page;
  return { ...page, next: `${last.created_at}.${last.position}`, examinedTo: last.created_at };
}

type FeedRequest = Parameters<WebhookStore["readDeliveriesAfter"]>[0];

async function readDeliveriesAfter(
  transaction: SqlTransaction,
  { webhookId, after, since, until, limit }: FeedRequest,
): Promise<Awaited<ReturnType<WebhookStore["readDeliveriesAfter"]>>> {
  const [at = 0, position = 0] = (validateCursor(after, CURSOR) || "0.0").split(".").map(Number);
  const rows = await transaction.all<LoggedRow>(
    `${SELECT} WHERE d.endpoint = (SELECT position FROM {endpoints} WHERE id = $1)
      AND d.created_at >= $2 AND d.created_at < $3 AND (d.created_at, d.position) > ($4, $5)
      ORDER BY d.created_at, d.position LIMIT $6`,
    [webhookId, since, Math.min(until, Number.MAX_SAFE_INTEGER), at, position, limit + 1],
  );
  const found = rows
    .slice(0, limit)
    .map((row) => ({ delivery: toRecord(row), cursor: `${row.created_at}.${row.position}` }));
  return { rows: found, after: found.at(-1)?.cursor ?? after, hasMore: rows.length > limit };
}

type FindRequest = Parameters<WebhookStore["findEvents"]>[0];

/** The position of the last event of the page before. */
const EVENT_CURSOR = /^[0-9]{1,15}$/;

/** The most deliveries that a page of found events has, and that one of them has. */
const MAX_FOUND = 1_000;

const BY_SUBJECT = `SELECT position, id, deliveries FROM {events}
  WHERE account = $1 AND subject = $2 AND position < $3 ORDER BY position DESC LIMIT $4`;

const BY_TAG = `SELECT ev.position, ev.id, ev.deliveries FROM {event_tags} t JOIN {events} ev ON ev.position = t.event
  WHERE t.account = $1 AND t.tag = $2 AND t.event < $3 ORDER BY t.event DESC LIMIT $4`;

/** The deliveries of an event to one webhook, or to all. */
const OF_EVENT = `${SELECT} WHERE d.event = $1 AND ($2 = '' OR ep.id = $2) ORDER BY d.position DESC LIMIT ${MAX_FOUND}`;

interface KeyedEvent {
  position: number;
  id: string;
  /** How many deliveries it has had. */
  deliveries: number;
}

/** Returns the first of these events, up to the one that fills the budget of deliveries. */
function takeWithinBudget(events: KeyedEvent[]): KeyedEvent[] {
  let count = 0;
  const last = events.findIndex(({ deliveries }) => {
    count += deliveries;
    return count >= MAX_FOUND;
  });
  return last < 0 ? events : events.slice(0, last + 1);
}

async function findEvents(
  transaction: SqlTransaction,
  { account, key, webhookId = "", idsOnly = false, cursor, limit }: FindRequest,
): Promise<Awaited<ReturnType<WebhookStore["findEvents"]>>> {
  const before = Number(validateCursor(cursor, EVENT_CURSOR) || Number.MAX_SAFE_INTEGER);
  const found = await transaction.all<KeyedEvent>(key.subject === undefined ? BY_TAG : BY_SUBJECT, [
    encodeStoredText(account),
    encodeStoredText(key.subject ?? key.tag),
    before,
    limit + 1,
  ]);
  const page = found.slice(0, limit);
  const taken = idsOnly ? page : takeWithinBudget(page);
  const read = idsOnly ? [] : taken;
  const rows = await transaction.forEach<LoggedRow>(
    OF_EVENT,
    ["int", "text"],
    read.map(({ position }) => [position, webhookId]),
  );
  const events = taken.map(({ position, id }) => ({
    id,
    deliveries: rows.filter(({ event }) => event === position).map(toRecord),
  }));
  const next = taken.length < found.length ? String(taken.at(-1)?.position) : null;
  return { events, next };
}

const toSummary = ({ at, kind, status, code }: Attempt): AttemptSummary => ({ at, kind, status, code });

async function readStats(
  transaction: SqlTransaction,
  webhookId: string,
  now: number,
  { perEndpoint, perSecond }: SqlStoreContext,
): Promise<DeliveryStats | undefined> {
  const [endpoint] = await transaction.all<EndpointRow>("SELECT * FROM {endpoints} WHERE id = $1", [
    webhookId,
  ]);
  if (endpoint === undefined) return undefined;
  const { position } = endpoint;
  const added = await readChangesOf(transaction, position);
  const [head] = await transaction.all<Pick<DeliveryRow, "extra_at" | "due_at">>(
    `SELECT d.extra_at, d.due_at FROM {queue} q JOIN {deliveries} d ON d.position = q.delivery
      WHERE q.endpoint = $1 ORDER BY q.at, q.delivery LIMIT 1`,
    [position],
  );
  const rows = await transaction.all<HourRow>("SELECT * FROM {hours} WHERE endpoint = $1", [position]);
  const past = rows.map((row) => ({ ...row, durationMs: row.duration_ms }));
  const last = endpoint.last_attempt === null ? null : (JSON.parse(endpoint.last_attempt) as Attempt);
  return {
    pending: endpoint.pending + (added?.pending ?? 0),
    delivered: endpoint.delivered + (added?.delivered ?? 0),
    failed: endpoint.failed + (added?.failed ?? 0),
    withheld: endpoint.withheld + (added?.withheld ?? 0),
    failedTests: endpoint.failed_tests + (added?.failed_tests ?? 0),
    filtered: endpoint.filtered + (added?.filtered ?? 0),
    ...summariseAttempts(getRecentHour(endpoint), past, now),
    nextDueAt: head ? (head.extra_at ?? head.due_at) : null,
    inFlight: endpoint.in_flight,
    slots: countFreeSlots(endpoint.slow_start, 0, perEndpoint),
    openAt: findOpenTime(getPerSecond(endpoint, perSecond), getClaimed(endpoint), now),
    lastAttempt: last && toSummary(last),
  };
}

async function readEvent(
  transaction: SqlTransaction,
  account: string,
  id: string,
): Promise<StoredEventRecord | undefined> {
  const [row] = await transaction.all<EventTexts & { stored_at: number }>(
    `SELECT ev.stored_at, ev.type, ev.subject, ev.tags, ev.digest, b.payload FROM {events} ev JOIN {bodies} b ON b.event = ev.position
      WHERE ev.account = $1 AND ev.id = $2`,
    [encodeStoredText(account), id],
  );
  return row && { ...decodeEventRow(id, account, row), storedAt: row.stored_at };
}

export function createSqlDeliveryLog(
  context: SqlStoreContext,
): Pick<
  WebhookStore,
  "getDelivery" | "getEvent" | "listDeliveries" | "readDeliveriesAfter" | "findEvents" | "deliveryStats"
> {
  const { database } = context;
  return {
    async getDelivery(id) {
      const row = await database.read((transaction) => findLoggedDelivery(transaction, id));
      return row && toRecord(row);
    },
    getEvent: ({ account, id }) => database.read((transaction) => readEvent(transaction, account, id)),
    listDeliveries: (request) => database.read((transaction) => listDeliveries(transaction, request)),
    readDeliveriesAfter: (request) =>
      database.read((transaction) => readDeliveriesAfter(transaction, request)),
    findEvents: (request) => database.read((transaction) => findEvents(transaction, request)),
    deliveryStats: (webhookId, now) =>
      database.read((transaction) => readStats(transaction, webhookId, now, context)),
  };
}
