/** How deliveries and events end, and how long what has ended is kept. */

import type { DeliveryState, Retention } from "../../src/webhooks/store.js";
import { releaseLease } from "./schedule.js";
import { type Delivery, dropIfEmpty, type State, type StoredEvent, scoped } from "./state.js";

/** Takes a pending delivery out of the books of what is open. */
function close(state: State, delivery: Delivery): void {
  releaseLease(state, delivery);
  delivery.endpoint.queue.delete(delivery);
  delivery.event.open -= 1;
  delivery.endpoint.account.pending -= 1;
  state.pending -= 1;
}

/** Ends a delivery. Its event has ended with its last one. */
export function end(
  state: State,
  delivery: Delivery,
  outcome: { readonly state: Exclude<DeliveryState, "pending">; readonly reason: string | null },
  now: number,
  retention: Retention,
): void {
  if (delivery.state === "pending") close(state, delivery);
  delivery.state = outcome.state;
  delivery.reason = outcome.reason;
  delivery.endedAt = now;
  if (delivery.event.open === 0) endEvent(state, delivery.event, now, retention);
}

/** Removes a delivery of a webhook that is being removed, without a trace. */
export function forget(state: State, delivery: Delivery, now: number, retention: Retention): void {
  const { event } = delivery;
  const wasOpen = delivery.state === "pending";
  if (wasOpen) close(state, delivery);
  event.deliveries = event.deliveries.filter((other) => other !== delivery);
  if (wasOpen && event.open === 0) endEvent(state, event, now, retention);
}

/** Starts the retention of an event with no open delivery, and lets the oldest go where the account has too many. */
export function endEvent(state: State, event: StoredEvent, now: number, retention: Retention): void {
  if (retention.ms === 0) {
    free(state, event, now);
    return;
  }
  reopen(state, event);
  event.account.ended.set(event, now);
  state.endedEvents.set(event, now + retention.ms);
  state.endedBytes += event.bytes;
  while (event.account.ended.size > retention.events) {
    const oldest = event.account.ended.head();
    if (!oldest) break;
    free(state, oldest, now);
  }
}

/** Brings an ended event back, since a new delivery of it was made. */
export function reopen(state: State, event: StoredEvent): void {
  if (!event.account.ended.delete(event)) return;
  state.endedEvents.delete(event);
  state.endedBytes -= event.bytes;
}

function free(state: State, event: StoredEvent, now: number): void {
  const { account, record, receivers, rememberUntil } = event;
  for (const delivery of event.deliveries) delivery.endpoint.deliveries.delete(delivery.id);
  reopen(state, event);
  account.events.delete(record.id);
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

/** Most that one call frees, so that no single caller pays for a large clean-up. */
const MAX_PER_CALL = 200;

/** Frees what has been kept long enough. */
export function expire(state: State, now: number): void {
  for (
    let left = MAX_PER_CALL;
    left > 0 && (state.endedEvents.headAt() ?? Number.POSITIVE_INFINITY) <= now;
    left--
  ) {
    const event = state.endedEvents.head();
    if (!event) break;
    free(state, event, now);
  }
  state.remembered.dropExpired(now, MAX_PER_CALL);
  state.replays.dropExpired(now, MAX_PER_CALL);
}

/** Frees ended events, oldest first, until `bytes` more fit. False where they would not, even so: then none is freed. */
export function makeRoom(state: State, bytes: number, now: number): boolean {
  if (state.bytes - state.endedBytes + bytes > state.limits.bytes) return false;
  while (state.bytes + bytes > state.limits.bytes) {
    const oldest = state.endedEvents.head();
    if (!oldest) return false;
    free(state, oldest, now);
  }
  return true;
}
