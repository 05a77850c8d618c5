/** The delivery log in memory: list, resend, recover. */

import { subscribes } from "../../src/webhooks/event-types/catalogue.js";
import { createFilterTest } from "../../src/webhooks/events/notification.js";
import { MAX_RESENT, RECOVERED_STATES } from "../../src/webhooks/store/records.js";
import type {
  Attempt,
  AttemptSummary,
  DeliveryLogStore,
  DeliveryRecord,
  DeliveryState,
  EventStanding,
} from "../../src/webhooks/store.js";
import { countFreeSlots, findOpenTime } from "../queue/endpoint.js";
import { summariseAttempts } from "../queue/recent-attempts.js";
import { findStanding, isMovable } from "../queue/standing.js";
import { enqueue, offer } from "./claim-order.js";
import { collectPage, parsePageStart } from "./collections.js";
import { addDelivery } from "./delivery-queue.js";
import type { MemoryAccount, MemoryDelivery, MemoryEndpoint, MemoryEvent } from "./records.js";
import { expire, makeRoom } from "./retention.js";
import {
  checkPending,
  DELIVERY_BYTES,
  deliveryId,
  findDelivery,
  getEndpoint,
  type MemoryStoreContext,
  memoryFull,
  type State,
} from "./state.js";

/** The most events that one `recover` examines, because it blocks the event loop meanwhile. */
const MAX_RECOVERED = 500;

/** The same with a filter, which has to parse the events. */
const MAX_FILTERED = 100;

/** The most deliveries that one call examines: an event may have a hundred to each webhook. */
const MAX_DELIVERIES = 1_000;

type RecoverRequest = Parameters<DeliveryLogStore["recover"]>[0];

const isPending = (delivery: MemoryDelivery): boolean => delivery.state === "pending";

const toRecord = (delivery: MemoryDelivery): DeliveryRecord => ({
  id: deliveryId(delivery),
  webhookId: delivery.endpoint.record.id,
  eventId: delivery.event.record.id,
  type: delivery.event.record.type,
  subject: delivery.event.record.subject ?? null,
  tags: delivery.event.record.tags ?? [],
  state: delivery.state,
  reason: delivery.reason,
  createdAt: delivery.createdAt,
  startedAt: delivery.startedAt,
  step: delivery.step,
  isInFlight: delivery.lease !== null,
  dueAt: isPending(delivery) ? delivery.dueAt : null,
  endedAt: delivery.endedAt,
  attempts: delivery.attempts.map((attempt) => ({ ...attempt })),
});

const toSummary = ({ at, kind, status, code }: Attempt): AttemptSummary => ({ at, kind, status, code });

/** Lists the deliveries of one event to one endpoint, in the order of their creation. */
const filterDeliveries = (event: MemoryEvent, endpoint: MemoryEndpoint): MemoryDelivery[] =>
  event.deliveries.filter((delivery) => delivery.endpoint === endpoint);

const getNextSerial = (event: MemoryEvent, endpoint: MemoryEndpoint): number =>
  (filterDeliveries(event, endpoint).at(-1)?.serial ?? -1) + 1;

function getStanding(deliveries: MemoryDelivery[]): EventStanding {
  const count = (wanted: DeliveryState): number =>
    deliveries.reduce((sum, { state }) => (state === wanted ? sum + 1 : sum), 0);
  return findStanding({
    all: deliveries.length,
    pending: count("pending"),
    delivered: count("delivered"),
    withheld: count("withheld"),
  });
}

/**
 * True if `endpoint` subscribes to `event`, and its filter lets it pass. The event is what the
 * request asks for, and no test.
 */
function isSelected(
  { isTest, storedAt, record }: MemoryEvent,
  endpoint: MemoryEndpoint,
  { until, types, subject, createFilterTest: createTest = createFilterTest }: RecoverRequest,
): boolean {
  const { type } = record;
  const { eventTypes, filter } = endpoint.record;
  return (
    !isTest &&
    (until === undefined || storedAt < until) &&
    (types === undefined || types.includes(type)) &&
    (subject === undefined || subject === record.subject) &&
    subscribes(eventTypes, type) &&
    (filter === undefined || createTest(record)(filter))
  );
}

/** A change for an event at `dueAt`: a waiting delivery is moved, or a new one is created. */
interface Repair {
  event: MemoryEvent;
  dueAt: number;
  waiting: MemoryDelivery | undefined;
  serial: number;
}

/** Finds out what is to be done for an event at `dueAt`; `undefined` for nothing. */
function planRepair(
  event: MemoryEvent,
  endpoint: MemoryEndpoint,
  dueAt: number,
  request: RecoverRequest,
): Repair | undefined {
  const { states = RECOVERED_STATES } = request;
  if (!isSelected(event, endpoint, request)) return undefined;
  const deliveries = filterDeliveries(event, endpoint);
  const standing = getStanding(deliveries);
  if (!states.includes(standing)) return undefined;
  const serial = getNextSerial(event, endpoint);
  if (standing !== "pending") {
    return serial <= MAX_RESENT ? { event, dueAt, waiting: undefined, serial } : undefined;
  }
  const waiting = deliveries.find(
    (delivery) => isPending(delivery) && delivery.lease === null && isMovable(delivery, dueAt),
  );
  return waiting && { event, dueAt, waiting, serial };
}

/** Plans the repairs of events, each `everyMs` after the one before. */
function planRepairs(events: MemoryEvent[], endpoint: MemoryEndpoint, request: RecoverRequest): Repair[] {
  const repairs: Repair[] = [];
  for (const event of events) {
    const dueAt = request.dueAt + repairs.length * request.everyMs;
    const repair = planRepair(event, endpoint, dueAt, request);
    if (repair !== undefined) repairs.push(repair);
  }
  return repairs;
}

/** Returns the first of these events, up to the one that fills the budget of deliveries. */
function takeWithinBudget(events: MemoryEvent[]): MemoryEvent[] {
  let deliveries = 0;
  const last = events.findIndex((event) => {
    deliveries += event.deliveries.length;
    return deliveries >= MAX_DELIVERIES;
  });
  return last < 0 ? events : events.slice(0, last + 1);
}

/** Yields deliveries from the newest on, until one was created before `since`. */
function* takeCreatedSince(newestFirst: Iterable<MemoryDelivery>, since: number): Iterable<MemoryDelivery> {
  for (const delivery of newestFirst) {
    if (delivery.createdAt < since) return;
    yield delivery;
  }
}

/** Yields events from the oldest on, until one has the order `end` or a greater one. */
function* takeBefore(oldestFirst: Iterable<MemoryEvent>, end: number): Iterable<MemoryEvent> {
  for (const event of oldestFirst) {
    if (event.order >= end) return;
    yield event;
  }
}

/** Has a waiting delivery attempted at `at`, in addition to its schedule. */
function requestExtra(context: MemoryStoreContext, waiting: MemoryDelivery, at: number, now: number): void {
  waiting.extraAt = at;
  enqueue(waiting, now);
  offer(context, waiting.endpoint, now);
}

/** Yields deliveries from the oldest on, until one was created at `until` or later. */
function* takeCreatedBefore(oldestFirst: Iterable<MemoryDelivery>, until: number): Iterable<MemoryDelivery> {
  for (const delivery of oldestFirst) {
    if (delivery.createdAt >= until) return;
    yield delivery;
  }
}

/** Errors: `storage_full` if new deliveries of `events` to one account would exceed a bound. */
function checkRoom(state: State, account: MemoryAccount, events: MemoryEvent[], now: number): void {
  checkPending(state, account, events.length);
  if (!makeRoom(state, events.length * DELIVERY_BYTES, now, events)) throw memoryFull(state, "bytes");
}

export function createMemoryDeliveryLog(context: MemoryStoreContext): DeliveryLogStore {
  const { state, perEndpoint, perSecond } = context;
  return {
    async getDelivery(id) {
      const delivery = findDelivery(state, id);
      return delivery && toRecord(delivery);
    },

    async getEvent({ account, id }) {
      const event = state.accounts.get(account)?.events.get(id);
      return event && { ...event.record, storedAt: event.storedAt };
    },

    async listDeliveries({ webhookId, state: wanted, type, since, until, cursor, limit }) {
      const start = parsePageStart(cursor) ?? Number.POSITIVE_INFINITY;
      const log = state.endpoints.get(webhookId)?.deliveries;
      const before = log && until !== undefined ? Math.min(start, log.firstSince(until)) : start;
      let examinedTo: number | undefined;
      const { rows, next } = collectPage(
        takeCreatedSince(log?.before(before) ?? [], since ?? Number.NEGATIVE_INFINITY),
        limit,
        (delivery) => {
          // At the end, that of the first delivery behind the page: those after it were examined.
          examinedTo = delivery.createdAt;
          return (
            (wanted === undefined || delivery.state === wanted) &&
            (type === undefined || delivery.event.record.type === type)
          );
        },
      );
      return { deliveries: rows.map(toRecord), next, ...(next !== null && { examinedTo }) };
    },

    async readDeliveriesAfter({ webhookId, after, since, until, limit }) {
      const log = state.endpoints.get(webhookId)?.deliveries;
      const start = Math.max(parsePageStart(after) ?? 0, (log?.firstSince(since) ?? 1) - 1);
      const { rows, next } = collectPage(takeCreatedBefore(log?.after(start) ?? [], until), limit);
      return {
        rows: rows.map((delivery) => ({ delivery: toRecord(delivery), cursor: String(delivery.order) })),
        after: rows.length > 0 ? String(rows.at(-1)?.order) : after,
        hasMore: next !== null,
      };
    },

    async findEvents({ account, key, webhookId, idsOnly = false, cursor, limit }) {
      const before = parsePageStart(cursor) ?? Number.POSITIVE_INFINITY;
      const found = collectPage(state.accounts.get(account)?.index.before(key, before) ?? [], limit);
      const rows = idsOnly ? found.rows : takeWithinBudget(found.rows);
      const events = rows.map(({ id, deliveries }) => ({
        id,
        deliveries: (idsOnly ? [] : deliveries)
          .filter(({ endpoint }) => webhookId === undefined || endpoint.id === webhookId)
          .slice(-MAX_DELIVERIES)
          .reverse()
          .map(toRecord),
      }));
      return { events, next: rows.length < found.rows.length ? String(rows.at(-1)?.order) : found.next };
    },

    async deliveryStats(webhookId, now) {
      const endpoint = state.endpoints.get(webhookId);
      if (!endpoint) return undefined;
      const { counts, failedTests, filtered, recent, pastHours, queue, lastAttempt } = endpoint;
      const head = queue.head();
      return {
        ...counts,
        failedTests,
        filtered,
        ...summariseAttempts(recent, pastHours, now),
        nextDueAt: head ? (head.extraAt ?? head.dueAt) : null,
        inFlight: endpoint.inFlight,
        slots: countFreeSlots(endpoint.slowStart, 0, perEndpoint),
        openAt: findOpenTime(endpoint.record.perSecond ?? perSecond, endpoint.claimed, now),
        lastAttempt: lastAttempt && toSummary(lastAttempt),
      };
    },

    async resend({ id, account, force, now }) {
      expire(state, now);
      const requested = findDelivery(state, id);
      if (requested?.endpoint.account.name !== account) return undefined;
      const { endpoint, event } = requested;
      const open = filterDeliveries(event, endpoint).filter(isPending);
      const inFlight = open.findLast(({ lease }) => lease !== null);
      if (inFlight && !force) return { id: deliveryId(inFlight), isInFlight: true };
      const waiting = open.find(({ lease }) => lease === null);
      if (waiting) {
        if ((waiting.extraAt ?? waiting.dueAt) > now) requestExtra(context, waiting, now, now);
        return { id: deliveryId(waiting), isInFlight: false };
      }
      checkRoom(state, endpoint.account, [event], now);
      const serial = getNextSerial(event, endpoint);
      const added = addDelivery(context, endpoint, event, { serial, now, dueAt: now });
      return { id: deliveryId(added), isInFlight: false };
    },

    async recover(request) {
      const { webhookId, account, since, until, now, cursor, limit } = request;
      expire(state, now);
      const endpoint = getEndpoint(state, account, webhookId);
      if (!endpoint) return undefined;
      const { events } = endpoint.account;
      const after = Math.max(parsePageStart(cursor) ?? 0, events.firstSince(since) - 1);
      const end = until === undefined ? Number.POSITIVE_INFINITY : events.firstSince(until);
      const most = endpoint.record.filter === undefined ? MAX_RECOVERED : MAX_FILTERED;
      const found = collectPage(takeBefore(events.after(after), end), Math.min(limit, most));
      const rows = takeWithinBudget(found.rows);
      const next = rows.length < found.rows.length ? String(rows.at(-1)?.order) : found.next;
      const repairs = planRepairs(rows, endpoint, request);
      const result = { count: repairs.length, examined: rows.length, next };
      if (request.isDryRun) return result;
      const created = repairs.filter(({ waiting }) => waiting === undefined).map(({ event }) => event);
      checkRoom(state, endpoint.account, created, now);
      for (const { event, dueAt, waiting, serial } of repairs) {
        if (waiting === undefined) addDelivery(context, endpoint, event, { serial, now, dueAt });
        else requestExtra(context, waiting, dueAt, now);
      }
      return result;
    },
  };
}
