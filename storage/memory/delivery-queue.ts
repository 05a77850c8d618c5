/** The queue of deliveries in memory: append, claim and settle. */

import { isPostbellError } from "../../src/core/errors.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import { formatDeliveryId } from "../../src/webhooks/store/records.js";
import type {
  AppendRequest,
  AppendResult,
  Attempt,
  EndpointReport,
  EventRecord,
  EventToAppend,
  Settlement,
  SettleResult,
  WebhookStore,
} from "../../src/webhooks/store.js";
import {
  applyFilters,
  compareKnown,
  copyEvent,
  type FilteredReceivers,
  isKept,
  receives,
} from "../queue/append.js";
import { MAX_ATTEMPTS, MAX_HOURS } from "../queue/constants.js";
import { applyReport, classifySettlement } from "../queue/endpoint.js";
import { addRecentAttempts, toAddedAttempts } from "../queue/recent-attempts.js";
import { claimDue, enqueue, moveToLane, offer, releaseLease } from "./claim-order.js";
import type { MemoryAccount, MemoryDelivery, MemoryEndpoint, MemoryEvent } from "./records.js";
import { completeEvent, expire, freeRemoved, makeRoom, markCompleted, reopen } from "./retention.js";
import {
  attemptBytes,
  checkPending,
  DELIVERY_BYTES,
  eventBytes,
  findDelivery,
  type MemoryStoreContext,
  memoryFull,
  resize,
  type State,
  scoped,
  updateRecord,
} from "./state.js";

const listDeliveries = (eventId: string, receivers: string[]): { id: string; webhookId: string }[] =>
  receivers.map((webhookId) => ({ id: formatDeliveryId({ webhookId, eventId, serial: 0 }), webhookId }));

/** Finds an event with the same id that is stored or remembered. */
function findEarlier(
  state: State,
  account: MemoryAccount | undefined,
  { account: name, id }: EventRecord,
  now: number,
): { digest: string; receivers: string[] } | undefined {
  const stored = account?.events.get(id);
  if (stored) return { digest: stored.record.digest, receivers: stored.receivers };
  return state.remembered.get(scoped(name, id), now);
}

const getFilter = ({ record }: MemoryEndpoint): EventFilter | undefined => record.filter;

/** Lists the ENABLED webhooks that get an event. `webhookId`: the only one that gets a test. */
function listReceivers(
  account: MemoryAccount | undefined,
  event: EventRecord,
  request: AppendRequest,
): FilteredReceivers<MemoryEndpoint> {
  const endpoints = [...(account?.endpoints.after(0) ?? [])];
  const subscribed = endpoints.filter(({ record }) => receives(record, event.type, request.webhookId));
  return applyFilters(subscribed, getFilter, event, request);
}

/** Adds an event to its account, without deliveries. The caller has checked that there is room. */
function addEvent(
  state: State,
  account: MemoryAccount,
  event: EventToAppend,
  { rememberMs, now, webhookId, receivers }: AppendRequest & { receivers: string[] },
): MemoryEvent {
  const stored: MemoryEvent = {
    id: event.id,
    order: ++state.order,
    record: copyEvent(event),
    account,
    bytes: 0,
    storedAt: now,
    rememberUntil: now + rememberMs,
    deliveries: [],
    receivers,
    keepMs: event.keepMs ?? null,
    isTest: webhookId !== undefined,
    open: 0,
    ended: null,
    place: null,
    queuedAt: now,
    turn: 0,
    previous: null,
    next: null,
  };
  account.events.add(stored, now);
  account.lastEventAt = now;
  account.index.add(stored);
  return stored;
}

const NO_ATTEMPTS: readonly Attempt[] = Object.freeze([]);

/** A delivery that `resend` or `recover` adds to an event after it was stored. */
export interface LaterDelivery {
  serial: number;
  now: number;
  dueAt: number;
}

function createDelivery(
  order: number,
  endpoint: MemoryEndpoint,
  event: MemoryEvent,
  later: LaterDelivery | undefined,
): MemoryDelivery {
  const dueAt = later === undefined ? event.storedAt : later.dueAt;
  return {
    serial: later === undefined ? 0 : later.serial,
    order,
    endpoint,
    event,
    createdAt: later === undefined ? event.storedAt : later.now,
    state: "pending",
    reason: null,
    startedAt: null,
    step: 0,
    dueAt,
    endedAt: null,
    attempts: NO_ATTEMPTS,
    postponed: 0,
    crashes: 0,
    extraAt: null,
    isRecovered: false,
    lease: null,
    place: null,
    queuedAt: dueAt,
    turn: 0,
    previous: null,
    next: null,
  };
}

/**
 * Adds a delivery of `event`. Without `later` it is a first delivery, due when the event is stored.
 * The caller has checked that there is room.
 */
export function addDelivery(
  context: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  event: MemoryEvent,
  later?: LaterDelivery,
): MemoryDelivery {
  const { state } = context;
  const delivery = createDelivery(++state.order, endpoint, event, later);
  const now = delivery.createdAt;
  endpoint.deliveries.add(delivery, now);
  endpoint.counts.pending += 1;
  // Most events have one delivery, and an array that grows reserves space for sixteen more.
  if (event.deliveries.length === 0) event.deliveries = [delivery];
  else event.deliveries.push(delivery);
  event.open += 1;
  reopen(state, event);
  resize(state, event, DELIVERY_BYTES);
  endpoint.account.pending += 1;
  state.pending += 1;
  state.deliveries += 1;
  enqueue(delivery, now);
  offer(context, endpoint, now);
  return delivery;
}

function countFiltered(endpoints: MemoryEndpoint[]): void {
  for (const endpoint of endpoints) endpoint.filtered += 1;
}

/** @throws `storage_full`. */
function appendEvent(
  context: MemoryStoreContext,
  event: EventToAppend,
  request: AppendRequest,
): AppendResult {
  const { state, retention } = context;
  const { rememberMs, now, webhookId } = request;
  const account = state.accounts.get(event.account);
  const webhooks = account?.endpoints.size ?? 0;
  const earlier = findEarlier(state, account, event, now);
  if (earlier) {
    const result = compareKnown(earlier.digest, event.digest);
    if (result === "conflict") return { result };
    return { result, deliveries: listDeliveries(event.id, earlier.receivers), webhooks };
  }
  const { receivers: endpoints, filtered } = listReceivers(account, event, request);
  const receivers = endpoints.map(({ id }) => id);
  const deliveries = listDeliveries(event.id, receivers);
  const isTest = webhookId !== undefined;
  const retentionMs = event.keepMs ?? retention.keepMs;
  if (!account || !isKept({ isTest, receivers: receivers.length, webhooks, retentionMs })) {
    countFiltered(filtered);
    const remembered = { digest: event.digest, receivers, expiresAt: now + rememberMs };
    state.remembered.set(scoped(event.account, event.id), remembered);
    return { result: "stored", deliveries, webhooks };
  }

  checkPending(state, account, endpoints.length);
  const bytes = eventBytes(event);
  if (!makeRoom(state, bytes + endpoints.length * DELIVERY_BYTES, now)) throw memoryFull(state, "bytes");
  const stored = addEvent(state, account, event, { ...request, receivers });
  resize(state, stored, bytes);
  for (const endpoint of endpoints) addDelivery(context, endpoint, stored);
  if (endpoints.length === 0) completeEvent(context, stored, now);
  countFiltered(filtered);
  return { result: "stored", deliveries, webhooks };
}

export function createMemoryDeliveryQueue(
  context: MemoryStoreContext,
): Pick<WebhookStore, "partitionOf" | "append" | "claim" | "settle"> {
  const { state } = context;

  return {
    partitionOf: () => 0,

    async append(request) {
      expire(state, request.now);
      freeRemoved(context, request.now);
      const results: AppendResult[] = [];
      for (const event of request.events) {
        try {
          const appended = appendEvent(context, event, request);
          results.push(appended);
          if (appended.result === "conflict") break;
        } catch (error) {
          if (!isPostbellError(error)) throw error;
          results.push({ result: "refused", error });
          break;
        }
      }
      return { results, ...(request.claim && { claimed: claimDue(context, request.claim) }) };
    },

    async claim(request) {
      expire(state, request.now);
      freeRemoved(context, request.now);
      return claimDue(context, request);
    },

    settle: async (settlements) => settleAll(context, settlements),
  };
}

const DELIVERED = { state: "delivered", reason: null } as const;

/**
 * Adds an attempt, and makes it the last one of its endpoint. The result of an attempt is never
 * refused: at a bound, the delivery drops its oldest attempts.
 */
function addAttempt(state: State, delivery: MemoryDelivery, attempt: Attempt, now: number): void {
  const { event, endpoint } = delivery;
  // The excerpt too: a slice of a longer text would keep all of that text on the heap.
  const excerpt = attempt.excerpt === null ? null : structuredClone(attempt.excerpt);
  const copy = { ...attempt, excerpt };
  endpoint.lastAttempt = excerpt === null ? copy : { ...copy, excerpt: null };
  // A completed event may be freed for new data, but not for its attempt.
  reopen(state, event);
  // Most deliveries have one attempt, and an array that grows reserves space for sixteen more.
  delivery.attempts = delivery.attempts.length === 0 ? [copy] : [...delivery.attempts, copy];
  resize(state, event, attemptBytes(copy));
  while (
    delivery.attempts.length > 1 &&
    (delivery.attempts.length > MAX_ATTEMPTS || !makeRoom(state, 0, now))
  ) {
    const [oldest, ...others] = delivery.attempts;
    delivery.attempts = others;
    if (oldest) resize(state, event, -attemptBytes(oldest));
  }
}

/** Changes an endpoint as the report of an attempt says. */
function changeEndpoint(
  { state, perEndpoint }: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  report: EndpointReport,
): void {
  const { generation, status, failingSince } = endpoint.record;
  const { slowStart } = endpoint;
  const change = applyReport({ generation, status, failingSince, slowStart }, report, 1, perEndpoint);
  if (change === undefined) return;
  moveToLane(state, endpoint, change.lane);
  endpoint.slowStart = change.slowStart;
  if (change.health !== undefined) updateRecord(state, endpoint, change.health);
}

/** Finds the delivery that a settlement is for, or the reason why the settlement is not applied. */
function findSettled(state: State, settlement: Settlement): MemoryDelivery | "stale" | "gone" {
  const { id, account } = settlement;
  const delivery = state.leased.get(id) ?? findDelivery(state, id);
  if (delivery === undefined) return "gone";
  const { endpoint, lease } = delivery;
  if (endpoint.isRemoved || endpoint.account.name !== account) return "gone";
  const result = classifySettlement(delivery.state, lease?.token ?? null, settlement);
  return result === "settled" ? delivery : result;
}

/** Applies one settlement. The caller offers the endpoint again. */
function apply(context: MemoryStoreContext, delivery: MemoryDelivery, settlement: Settlement): void {
  const { state } = context;
  const { id, now, outcome, startedAt, attempt, endpoint: seen } = settlement;
  releaseLease(state, delivery, id);
  delivery.startedAt = startedAt ?? delivery.startedAt;
  delivery.isRecovered = false;
  if (attempt !== null) addAttempt(state, delivery, attempt, now);
  if (seen !== null) changeEndpoint(context, delivery.endpoint, seen);
  if (attempt !== null && seen !== null) {
    const { endpoint } = delivery;
    const { newest, past } = addRecentAttempts(endpoint.recent, now, toAddedAttempts(seen.ok, attempt));
    endpoint.recent = newest;
    if (past !== null) endpoint.pastHours = [...endpoint.pastHours, past].slice(1 - MAX_HOURS);
  }
  if (outcome.state === "pending") {
    delivery.step = outcome.step;
    delivery.dueAt = outcome.dueAt;
    delivery.extraAt = outcome.extraAt ?? null;
    delivery.postponed = outcome.postponed;
    delivery.crashes = outcome.crashes;
    enqueue(delivery, now);
  } else {
    markCompleted(context, delivery, outcome.state === "delivered" ? DELIVERED : outcome, now);
  }
}

/** Applies settlements one by one, and then offers each of their endpoints once. */
function settleAll(context: MemoryStoreContext, settlements: readonly Settlement[]): SettleResult[] {
  const changed = new Map<MemoryEndpoint, number>();
  try {
    return settlements.map((settlement) => {
      const delivery = findSettled(context.state, settlement);
      if (typeof delivery === "string") return delivery;
      changed.set(delivery.endpoint, settlement.now);
      apply(context, delivery, settlement);
      return "settled";
    });
  } finally {
    for (const [endpoint, now] of changed) offer(context, endpoint, now);
  }
}
