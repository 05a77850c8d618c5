/**
 * Adds a delivery to an event: the first one for each receiver, or a later one that a user asked
 * for.
 */

import type { Attempt } from "../../src/webhooks/store.js";
import { DELIVERY_BYTES, resize } from "./bounds.js";
import { enqueue, offer } from "./claim-order.js";
import type { MemoryDelivery, MemoryEndpoint, MemoryEvent } from "./records.js";
import { reopen } from "./retention.js";
import type { MemoryStoreContext } from "./state.js";

const NO_ATTEMPTS: readonly Attempt[] = Object.freeze([]);

/** A delivery that `resend` or `recover` adds to an event after it was stored. */
export interface LaterDelivery {
  readonly serial: number;
  readonly now: number;
  readonly dueAt: number;
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
