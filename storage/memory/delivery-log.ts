/** The delivery log in memory: list, resend, recover. */

import { subscribes } from "../../src/webhooks/event-types/catalogue.js";
import { MAX_RESENT, RECOVERED_STATES } from "../../src/webhooks/store/records.js";
import type {
  Attempt,
  AttemptSummary,
  DeliveryRecord,
  RecoverableState,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { summariseAttempts } from "../queue/recent-attempts.js";
import { enqueue, offer } from "./claim-order.js";
import { collectPage, parsePageStart } from "./collections.js";
import { addDelivery } from "./delivery-queue.js";
import type { Account, MemoryDelivery, MemoryEndpoint, MemoryEvent } from "./records.js";
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

/** The most deliveries that one `recover` examines: an event may have a hundred to each webhook. */
const MAX_DELIVERIES = 1_000;

type RecoverRequest = Parameters<WebhookStore["recover"]>[0];

const isPending = (delivery: MemoryDelivery): boolean => delivery.state === "pending";

const toRecord = (delivery: MemoryDelivery): DeliveryRecord => ({
  id: deliveryId(delivery),
  webhookId: delivery.endpoint.record.id,
  eventId: delivery.event.record.id,
  type: delivery.event.record.type,
  subject: delivery.event.record.subject ?? null,
  state: delivery.state,
  reason: delivery.reason,
  createdAt: delivery.createdAt,
  startedAt: delivery.startedAt,
  step: delivery.step,
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

/** Returns how an event stands for an endpoint; `undefined` if it is pending or was delivered. */
function getRecoverableState(event: MemoryEvent, endpoint: MemoryEndpoint): RecoverableState | undefined {
  const states = new Set(filterDeliveries(event, endpoint).map(({ state }) => state));
  if (states.has("pending") || states.has("delivered")) return undefined;
  if (states.size === 0) return "missed";
  return states.has("withheld") ? "withheld" : "failed";
}

/**
 * True if `endpoint` subscribes to `event`, which has the type and one of the states asked for, and
 * was not sent again too often.
 */
function isRecoverable(
  event: MemoryEvent,
  endpoint: MemoryEndpoint,
  { type, states = RECOVERED_STATES }: Pick<RecoverRequest, "type" | "states">,
): boolean {
  const { isTest, record } = event;
  if (isTest || (type !== undefined && type !== record.type)) return false;
  if (!subscribes(endpoint.record.eventTypes, record.type)) return false;
  const state = getRecoverableState(event, endpoint);
  return state !== undefined && states.includes(state) && getNextSerial(event, endpoint) <= MAX_RESENT;
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

/** Errors: `storage_full` if new deliveries of `events` to one account would exceed a bound. */
function checkRoom(state: State, account: Account, events: MemoryEvent[], now: number): void {
  checkPending(state, account, events.length);
  if (!makeRoom(state, events.length * DELIVERY_BYTES, now, events)) throw memoryFull(state, "bytes");
}

export function createMemoryDeliveryLog(
  context: MemoryStoreContext,
): Pick<
  WebhookStore,
  "getDelivery" | "getEvent" | "listDeliveries" | "deliveryStats" | "resend" | "recover"
> {
  const { state } = context;
  return {
    async getDelivery(id) {
      const delivery = findDelivery(state, id);
      return delivery && toRecord(delivery);
    },

    async getEvent({ account, id }) {
      return state.accounts.get(account)?.events.get(id)?.record;
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

    async deliveryStats(webhookId, now) {
      const endpoint = state.endpoints.get(webhookId);
      if (!endpoint) return undefined;
      const { counts, failedTests, recent, pastHours, queue, lastAttempt } = endpoint;
      const head = queue.head();
      return {
        ...counts,
        failedTests,
        ...summariseAttempts(recent, pastHours, now),
        nextDueAt: head ? (head.extraAt ?? head.dueAt) : null,
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
        if ((waiting.extraAt ?? waiting.dueAt) > now) {
          waiting.extraAt = now;
          enqueue(waiting, now);
          offer(context, endpoint, now);
        }
        return { id: deliveryId(waiting), isInFlight: false };
      }
      checkRoom(state, endpoint.account, [event], now);
      const serial = getNextSerial(event, endpoint);
      const added = addDelivery(context, endpoint, event, { serial, now, dueAt: now });
      return { id: deliveryId(added), isInFlight: false };
    },

    async recover(request) {
      const { webhookId, account, since, dueAt, everyMs, now, cursor, limit } = request;
      expire(state, now);
      const endpoint = getEndpoint(state, account, webhookId);
      if (!endpoint) return undefined;
      const { events } = endpoint.account;
      const after = Math.max(parsePageStart(cursor) ?? 0, events.firstSince(since) - 1);
      const found = collectPage(events.after(after), Math.min(limit, MAX_RECOVERED));
      const rows = takeWithinBudget(found.rows);
      const next = rows.length < found.rows.length ? String(rows.at(-1)?.order) : found.next;
      const missed = rows.filter((event) => isRecoverable(event, endpoint, request));
      checkRoom(state, endpoint.account, missed, now);
      for (const [index, event] of missed.entries()) {
        addDelivery(context, endpoint, event, {
          serial: getNextSerial(event, endpoint),
          now,
          dueAt: dueAt + index * everyMs,
        });
      }
      return { count: missed.length, examined: rows.length, next };
    },
  };
}
