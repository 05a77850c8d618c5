/** Completing deliveries and events, and freeing them when their retention is over. */

import { type DeliveryState, TEST_FAILED } from "../../src/webhooks/store.js";
import { findFreePlace } from "../queue/append.js";
import { releaseLease } from "./claim-order.js";
import type { CompletedEvent, MemoryDelivery, MemoryEndpoint, MemoryEvent } from "./records.js";
import { deliveryBytes, dropIfEmpty, type MemoryStoreContext, resize, type State, scoped } from "./state.js";

/** The most that one call frees, so that no caller pays for a large clean-up. */
const MAX_PER_CALL = 200;

/** Removes a pending delivery from the counts of open deliveries. */
function close(state: State, delivery: MemoryDelivery): void {
  releaseLease(state, delivery);
  delivery.endpoint.queue.delete(delivery);
  delivery.event.open -= 1;
  delivery.endpoint.account.pending -= 1;
  state.pending -= 1;
}

/** Adds `by` to the counts of its endpoint that a delivery belongs to. */
function countDelivery({ endpoint, state, reason }: MemoryDelivery, by: 1 | -1): void {
  endpoint.counts[state] += by;
  if (reason === TEST_FAILED) endpoint.failedTests += by;
}

/** Completes a delivery. With its last open delivery the event is completed. */
export function markCompleted(
  context: MemoryStoreContext,
  delivery: MemoryDelivery,
  outcome: { state: Exclude<DeliveryState, "pending">; reason: string | null },
  now: number,
): void {
  if (delivery.state === "pending") close(context.state, delivery);
  countDelivery(delivery, -1);
  delivery.state = outcome.state;
  delivery.reason = outcome.reason;
  countDelivery(delivery, 1);
  delivery.endedAt = now;
  if (delivery.event.open === 0) completeEvent(context, delivery.event, now);
}

/** Deletes a delivery of a removed webhook. */
function forget(context: MemoryStoreContext, delivery: MemoryDelivery, now: number): void {
  const { state } = context;
  const { event } = delivery;
  const wasOpen = delivery.state === "pending";
  if (wasOpen) close(state, delivery);
  event.deliveries = event.deliveries.filter((other) => other !== delivery);
  state.deliveries -= 1;
  resize(state, event, -deliveryBytes(delivery));
  if (wasOpen && event.open === 0) completeEvent(context, event, now);
}

/** Frees some deliveries of removed webhooks. */
export function freeRemoved(context: MemoryStoreContext, now: number): void {
  const { removals } = context.state;
  let left = MAX_PER_CALL;
  for (const [endpoint, after] of removals) {
    for (const delivery of endpoint.deliveries.after(after)) {
      if (left === 0) return;
      forget(context, delivery, now);
      removals.set(endpoint, delivery.order);
      left -= 1;
    }
    removals.delete(endpoint);
  }
}

/**
 * Starts the retention of an event without open deliveries, and frees the oldest events if the
 * account has too many.
 */
export function completeEvent(
  { state, retention }: MemoryStoreContext,
  event: MemoryEvent,
  now: number,
): void {
  const keepMs = event.keepMs ?? retention.keepMs;
  if (keepMs === 0) {
    free(state, event, now);
    return;
  }
  reopen(state, event);
  keep(state, event, findFreePlace(now, event.keepMs), now + keepMs);
  let left = MAX_PER_CALL;
  while (left > 0 && event.account.ended.size > retention.events) {
    const oldest = event.account.ended.head();
    if (!oldest) break;
    left -= getCost(oldest.event);
    free(state, oldest.event, now);
  }
}

function keep(state: State, event: MemoryEvent, place: number, freeAt: number): void {
  const ended: CompletedEvent = {
    event,
    place: null,
    queuedAt: place,
    turn: 0,
    previous: null,
    next: null,
  };
  if (event.keepMs === null) {
    event.account.ended.add(ended, place);
    state.endedEvents.add(event, freeAt);
  } else {
    event.account.ended.addOutOfOrder(ended, place);
    state.endedEvents.addOutOfOrder(event, freeAt);
  }
  event.ended = ended;
  state.endedBytes += event.bytes;
}

/** Makes a completed event open again, because a new delivery of it was created. */
export function reopen(state: State, event: MemoryEvent): void {
  const { ended } = event;
  if (ended === null) return;
  event.account.ended.delete(ended);
  state.endedEvents.delete(event);
  event.ended = null;
  state.endedBytes -= event.bytes;
}

/** Frees an event without open deliveries. Its id is remembered as long as necessary. */
function free(state: State, event: MemoryEvent, now: number): void {
  const { account, record, receivers, rememberUntil } = event;
  deleteEvent(state, event);
  if (rememberUntil > now) {
    state.remembered.set(scoped(account.name, record.id), {
      digest: record.digest,
      receivers,
      expiresAt: rememberUntil,
    });
  }
  dropIfEmpty(state, account);
}

function deleteEvent(state: State, event: MemoryEvent): void {
  state.deliveries -= event.deliveries.length;
  for (const delivery of event.deliveries) {
    delivery.endpoint.deliveries.delete(delivery);
    countDelivery(delivery, -1);
  }
  reopen(state, event);
  event.account.events.delete(event);
  event.account.index.delete(event);
  state.bytes -= event.bytes;
}

/**
 * Erases an event with its deliveries in every state. `remembersId`: emitting its id again must not
 * bring it back. Returns the endpoints whose queues have changed.
 */
export function eraseEvent(
  state: State,
  event: MemoryEvent,
  { now, remembersId }: { now: number; remembersId: boolean },
): Set<MemoryEndpoint> {
  const changed = new Set<MemoryEndpoint>();
  for (const delivery of event.deliveries) {
    if (delivery.state !== "pending") continue;
    close(state, delivery);
    changed.add(delivery.endpoint);
  }
  if (remembersId) {
    free(state, event, now);
  } else {
    deleteEvent(state, event);
    dropIfEmpty(state, event.account);
  }
  return changed;
}

/**
 * Returns what freeing an event costs against a bound: 1, and 1 for each later delivery. An event
 * may have a hundred later deliveries to each webhook.
 */
const getCost = ({ deliveries }: MemoryEvent): number =>
  1 + deliveries.filter(({ serial }) => serial > 0).length;

/** Frees events, remembered ids and replays whose time is over. */
export function expire(state: State, now: number): void {
  let left = MAX_PER_CALL;
  while (left > 0 && (state.endedEvents.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
    const event = state.endedEvents.head();
    if (!event) break;
    left -= getCost(event);
    free(state, event, now);
  }
  state.remembered.dropExpired(now, MAX_PER_CALL);
  state.replays.dropExpired(now, MAX_PER_CALL);
}

/**
 * Frees completed events, those nearest to the end of their retention first, until `bytes` more
 * fit. Events of `spared` stay. Returns false, and frees nothing, if they would not fit.
 */
export function makeRoom(state: State, bytes: number, now: number, spared: MemoryEvent[] = []): boolean {
  const { limits } = state;
  if (state.bytes + bytes <= limits.bytes) return true;
  const held = spared.map((event) => ({
    event,
    place: event.ended?.queuedAt,
    freeAt: event.queuedAt,
  }));
  for (const { event } of held) reopen(state, event);
  const fits = state.bytes - state.endedBytes + bytes <= limits.bytes;
  while (fits && state.bytes + bytes > limits.bytes) {
    const oldest = state.endedEvents.head();
    if (!oldest) break;
    free(state, oldest, now);
  }
  for (const { event, place, freeAt } of held) {
    if (place !== undefined) keep(state, event, place, freeAt);
  }
  return fits;
}
