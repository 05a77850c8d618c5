/** How deliveries and events end, and how long what has ended is kept. */

import type { DeliveryState } from "../../src/webhooks/store.js";
import { deliveryBytes, resize } from "./bounds.js";
import { releaseLease } from "./claim-order.js";
import {
  type CompletedEvent,
  dropIfEmpty,
  type MemoryDelivery,
  type MemoryEvent,
  type MemoryStoreContext,
  type State,
  scoped,
} from "./state.js";

/** Most that one call frees, so that no single caller pays for a large clean-up. */
const MAX_PER_CALL = 200;

/** Takes a pending delivery out of the books of what is open. */
function close(state: State, delivery: MemoryDelivery): void {
  releaseLease(state, delivery);
  delivery.endpoint.queue.delete(delivery);
  delivery.event.open -= 1;
  delivery.endpoint.account.pending -= 1;
  state.pending -= 1;
}

/** Ends a delivery. Its event has ended with its last one. */
export function completeDelivery(
  context: MemoryStoreContext,
  delivery: MemoryDelivery,
  outcome: { readonly state: Exclude<DeliveryState, "pending">; readonly reason: string | null },
  now: number,
): void {
  if (delivery.state === "pending") close(context.state, delivery);
  const { counts } = delivery.endpoint;
  counts[delivery.state] -= 1;
  counts[outcome.state] += 1;
  delivery.state = outcome.state;
  delivery.reason = outcome.reason;
  delivery.endedAt = now;
  if (delivery.event.open === 0) completeEvent(context, delivery.event, now);
}

/** Removes a delivery of a webhook that is being removed, without a trace. */
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

/** Frees some of what removed webhooks held. */
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

/** Starts the retention of an event with no open delivery, and lets the oldest go where the account has too many. */
export function completeEvent(
  { state, retention }: MemoryStoreContext,
  event: MemoryEvent,
  now: number,
): void {
  if (retention.ms === 0) {
    free(state, event, now);
    return;
  }
  reopen(state, event);
  keep(state, event, now, now + retention.ms);
  let left = MAX_PER_CALL;
  while (left > 0 && event.account.ended.size > retention.events) {
    const oldest = event.account.ended.head();
    if (!oldest) break;
    left -= costOf(oldest.event);
    free(state, oldest.event, now);
  }
}

function keep(state: State, event: MemoryEvent, endedAt: number, freeAt: number): void {
  const ended: CompletedEvent = {
    event,
    place: null,
    queuedAt: endedAt,
    turn: 0,
    previous: null,
    next: null,
  };
  event.account.ended.add(ended, endedAt);
  state.endedEvents.add(event, freeAt);
  event.ended = ended;
  state.endedBytes += event.bytes;
}

/** Brings an ended event back, since a new delivery of it was made. */
export function reopen(state: State, event: MemoryEvent): void {
  const { ended } = event;
  if (ended === null) return;
  event.account.ended.delete(ended);
  state.endedEvents.delete(event);
  event.ended = null;
  state.endedBytes -= event.bytes;
}

function free(state: State, event: MemoryEvent, now: number): void {
  const { account, record, receivers, rememberUntil } = event;
  state.deliveries -= event.deliveries.length;
  for (const delivery of event.deliveries) {
    delivery.endpoint.deliveries.delete(delivery);
    delivery.endpoint.counts[delivery.state] -= 1;
  }
  reopen(state, event);
  account.events.delete(event);
  state.bytes -= event.bytes;
  if (rememberUntil > now) {
    state.remembered.set(scoped(account.name, record.id), {
      digest: record.digest,
      receivers,
      expiresAt: rememberUntil,
    });
  }
  dropIfEmpty(state, account);
}

/** What freeing an event counts against a bound: 1, and 1 for each later delivery, since an event may have a hundred to each webhook. */
const costOf = ({ deliveries }: MemoryEvent): number =>
  1 + deliveries.filter(({ serial }) => serial > 0).length;

/** Frees what has been kept long enough. */
export function expire(state: State, now: number): void {
  let left = MAX_PER_CALL;
  while (left > 0 && (state.endedEvents.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
    const event = state.endedEvents.head();
    if (!event) break;
    left -= costOf(event);
    free(state, event, now);
  }
  state.remembered.dropExpired(now, MAX_PER_CALL);
  state.replays.dropExpired(now, MAX_PER_CALL);
}

/**
 * Frees ended events, those nearest to the end of their retention first, until `bytes` more fit; those of `spared` stay. False where they would not fit, even so:
 * then none is freed.
 */
export function makeRoom(
  state: State,
  bytes: number,
  now: number,
  spared: readonly MemoryEvent[] = [],
): boolean {
  const { limits } = state;
  if (state.bytes + bytes <= limits.bytes) return true;
  const held = spared.map((event) => ({
    event,
    endedAt: event.ended?.queuedAt,
    freeAt: event.queuedAt,
  }));
  for (const { event } of held) reopen(state, event);
  const fits = state.bytes - state.endedBytes + bytes <= limits.bytes;
  while (fits && state.bytes + bytes > limits.bytes) {
    const oldest = state.endedEvents.head();
    if (!oldest) break;
    free(state, oldest, now);
  }
  for (const { event, endedAt, freeAt } of held) {
    if (endedAt !== undefined) keep(state, event, endedAt, freeAt);
  }
  return fits;
}
