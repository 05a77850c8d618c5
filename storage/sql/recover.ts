/** Repairs what a webhook did not get: creates deliveries of kept events, or moves waiting ones. */

import { subscribes } from "../../src/webhooks/event-types/catalogue.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import { createFilterTest } from "../../src/webhooks/events/notification.js";
import { MAX_RESENT, RECOVERED_STATES } from "../../src/webhooks/store/records.js";
import type { CreateFilterTest, WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { findStanding, isMovable } from "../queue/standing.js";
import { decodeStoredText } from "../stored-text.js";
import { reopenEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import { addDeliveries, type NewDelivery, requestExtra } from "./delivery-rows.js";
import { lockEndpoint, offerAndSave, type Writing } from "./endpoint-rows.js";
import { decodeEventTypes, parseFilter, readWebhooks } from "./webhook-rows.js";
import type { DeliveryRow, EndpointRow } from "./webhook-tables.js";

type RecoverRequest = Parameters<WebhookStore["recover"]>[0];
type RecoverResult = Awaited<ReturnType<WebhookStore["recover"]>>;

/** The most events that one call examines. */
const MAX_EXAMINED = 500;

/** The same with a filter, which has to read and parse the events. */
const MAX_FILTERED = 100;

/** The most later deliveries that one call examines: an event may have a hundred to a webhook. */
const MAX_DELIVERIES = 1_000;

/** The time and the position of the last event of the page before. */
const CURSOR = /^[0-9]{1,15}\.[0-9]{1,15}$/;

interface ExaminedRow {
  position: number;
  stored_at: number;
  type: string;
  subject: string | null;
  is_test: number;
}

/** The deliveries of an event to the webhook: how many, in which states, and the last serial. */
interface StandingRow {
  event: number;
  count: number;
  pending: number;
  delivered: number;
  withheld: number;
  last: number | null;
}

const STANDING = `SELECT $2 AS event, count(*) AS count,
    coalesce(sum(CASE WHEN state = 'pending' THEN 1 ELSE 0 END), 0) AS pending,
    coalesce(sum(CASE WHEN state = 'delivered' THEN 1 ELSE 0 END), 0) AS delivered,
    coalesce(sum(CASE WHEN state = 'withheld' THEN 1 ELSE 0 END), 0) AS withheld, max(serial) AS last
  FROM (SELECT state, serial FROM {deliveries} WHERE event = $2 AND endpoint = $1 ORDER BY serial DESC LIMIT ${MAX_DELIVERIES}) AS latest`;

/** The deliveries of an event to the webhook that wait in the queue, the first one first. */
const WAITING = `SELECT d.* FROM {deliveries} d
    JOIN {queue} q ON q.endpoint = d.endpoint AND q.at = d.queued_at AND q.delivery = d.position
  WHERE d.event = $2 AND d.endpoint = $1 AND d.state = 'pending' ORDER BY d.serial LIMIT ${MAX_DELIVERIES}`;

async function readExamined(
  transaction: SqlTransaction,
  { account, since, until, cursor, limit }: RecoverRequest,
  most: number,
): Promise<{ rows: ExaminedRow[]; isMore: boolean }> {
  const [at = 0, position = 0] = (validateCursor(cursor, CURSOR) || "0.0").split(".").map(Number);
  const count = Math.min(limit, most);
  const end = Math.min(until ?? Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  const rows = await transaction.all<ExaminedRow>(
    `SELECT position, stored_at, type, subject, is_test FROM {events}
      WHERE account = $1 AND stored_at >= $2 AND stored_at < $3 AND (stored_at, position) > ($4, $5)
      ORDER BY stored_at, position LIMIT $6`,
    [account, since, end, at, position, count + 1],
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

const getNextSerial = ({ last }: StandingRow): number => (last === null ? 0 : Number(last) + 1);

const getStanding = ({ count, pending, delivered, withheld }: StandingRow) =>
  findStanding({
    all: Number(count),
    pending: Number(pending),
    delivered: Number(delivered),
    withheld: Number(withheld),
  });

/** The webhook, with what decides which events it gets. */
interface Subscriber {
  position: number;
  /** `null`: every type. */
  subscribed: readonly string[] | null;
  filter: EventFilter | null;
}

/** An event with what is done for it: a waiting delivery is moved, or a new one is created. */
interface Repair {
  standing: StandingRow;
  /** In the order of their creation; none if a new one is created. */
  waiting: DeliveryRow[];
}

/** Stands for an event that the database has lost: it passes, and its attempt reports it. */
const LOST = { id: "", payload: "" };

/** Returns the events that a filter lets pass. */
async function selectPassing(
  transaction: SqlTransaction,
  standings: StandingRow[],
  filter: EventFilter,
  createTest: CreateFilterTest = createFilterTest,
): Promise<StandingRow[]> {
  const bodies = await transaction.forEach<{ event: number; id: string; payload: string }>(
    "SELECT b.event, e.id, b.payload FROM {bodies} b JOIN {events} e ON e.position = b.event WHERE b.event = $1",
    ["int"],
    standings.map(({ event }) => [Number(event)]),
  );
  const stored = new Map(
    bodies.map(({ event, id, payload }) => [Number(event), { id, payload: decodeStoredText(payload) }]),
  );
  return standings.filter(({ event }) => createTest(stored.get(Number(event)) ?? LOST)(filter));
}

/** Selects the events that the request asks for and that have something to create or to move. */
async function selectRepairs(
  transaction: SqlTransaction,
  { rows, standings }: { rows: ExaminedRow[]; standings: StandingRow[] },
  { position, subscribed, filter }: Subscriber,
  { types, subject, states = RECOVERED_STATES, createFilterTest: createTest }: RecoverRequest,
): Promise<Repair[]> {
  const wanted = standings.filter((standing, index) => {
    const row = rows[index];
    if (row === undefined || row.is_test === 1) return false;
    const type = decodeStoredText(row.type);
    if ((types !== undefined && !types.includes(type)) || !subscribes(subscribed, type)) return false;
    if (subject !== undefined && (row.subject === null || decodeStoredText(row.subject) !== subject))
      return false;
    return states.includes(getStanding(standing));
  });
  const selected = filter === null ? wanted : await selectPassing(transaction, wanted, filter, createTest);
  const pending = selected.filter((standing) => getStanding(standing) === "pending");
  const waiting = await transaction.forEach<DeliveryRow>(
    WAITING,
    ["int", "int"],
    pending.map(({ event }) => [position, Number(event)]),
  );
  return selected.map((standing) => ({
    standing,
    waiting: waiting.filter(({ event }) => event === Number(standing.event)),
  }));
}

/** The deliveries that a call moves and creates. */
interface PlannedRepairs {
  moved: { row: DeliveryRow; at: number }[];
  created: NewDelivery[];
}

/** Gives each repair its turn, `everyMs` after the one before. Leaves out what cannot be done. */
function planRepairs(
  repairs: Repair[],
  endpoint: EndpointRow,
  { dueAt, everyMs }: RecoverRequest,
): PlannedRepairs {
  const planned: PlannedRepairs = { moved: [], created: [] };
  for (const { standing, waiting } of repairs) {
    const at = dueAt + (planned.moved.length + planned.created.length) * everyMs;
    if (getStanding(standing) === "pending") {
      const row = waiting.find((delivery) =>
        isMovable({ startedAt: delivery.started_at, dueAt: delivery.due_at, extraAt: delivery.extra_at }, at),
      );
      if (row !== undefined) planned.moved.push({ row, at });
    } else if (getNextSerial(standing) <= MAX_RESENT) {
      const event = Number(standing.event);
      planned.created.push({
        endpoint: endpoint.position,
        event,
        serial: getNextSerial(standing),
        dueAt: at,
      });
    }
  }
  return planned;
}

/** Creates deliveries of events that are still stored. Returns how many. */
async function create(
  transaction: SqlTransaction,
  created: NewDelivery[],
  endpoint: EndpointRow,
  now: number,
): Promise<number> {
  const stored = await reopenEvents(
    transaction,
    created.map(({ event }) => event),
  );
  const added = created.filter(({ event }) => stored.has(event));
  await addDeliveries(transaction, added, now);
  endpoint.pending += added.length;
  return added.length;
}

export async function recover(
  transaction: SqlTransaction,
  request: RecoverRequest,
  writing: Writing,
): Promise<RecoverResult> {
  const { webhookId, account, now, isDryRun } = request;
  const endpoint = await lockEndpoint(transaction, { id: webhookId, account });
  if (endpoint === undefined) return undefined;
  const { position } = endpoint;
  const [webhook] = await readWebhooks(transaction, [position]);
  const subscribed = decodeEventTypes(webhook?.event_types ?? null);
  const filter = parseFilter(webhook?.filter ?? null);
  const most = filter === null ? MAX_EXAMINED : MAX_FILTERED;
  const { rows, isMore } = await readExamined(transaction, request, most);
  const standings = await transaction.forEach<StandingRow>(
    STANDING,
    ["int", "int"],
    rows.map((row) => [position, row.position]),
  );
  const taken = takeWithinBudget(standings);
  const examined = { rows: rows.slice(0, taken), standings: standings.slice(0, taken) };
  const repairs = await selectRepairs(transaction, examined, { position, subscribed, filter }, request);
  const { moved, created } = planRepairs(repairs, endpoint, request);
  let count = moved.length + created.length;
  if (!isDryRun && count > 0) {
    count = moved.length + (await create(transaction, created, endpoint, now));
    if (moved.length > 0) await requestExtra(transaction, moved, now);
    await offerAndSave(transaction, [endpoint], writing);
  }
  const last = rows[taken - 1];
  const next = (isMore || taken < rows.length) && last ? `${last.stored_at}.${last.position}` : null;
  return { count, examined: taken, next };
}
