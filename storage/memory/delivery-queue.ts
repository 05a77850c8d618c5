/** Events and their deliveries on the way, in memory: append, claim, settle. */

import { formatDeliveryId } from "../../src/webhooks/delivery-id.js";
import type {
  Attempt,
  EndpointReport,
  Settlement,
  SettleResult,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { subscribes } from "../../src/webhooks/subscription.js";
import { attemptBytes, checkPending, DELIVERY_BYTES, eventBytes, full, resize } from "./bounds.js";
import { change } from "./registry.js";
import { end, endEvent, expire, freeRemoved, makeRoom, reopen } from "./retention.js";
import { claimDue, enqueue, moveToLane, offer, releaseLease } from "./schedule.js";
import {
  type Binding,
  type Delivery,
  type Endpoint,
  endpointOf,
  isDone,
  type State,
  type StoredEvent,
  scoped,
} from "./state.js";

/** Attempts kept of one delivery; a schedule has 14, what is more comes from `resend`. */
const MAX_ATTEMPTS_KEPT = 50;

const NO_ATTEMPTS: readonly Attempt[] = Object.freeze([]);

/** What emitting an event returns. */
const firstDeliveries = (
  eventId: string,
  receivers: readonly string[],
): { readonly id: string; readonly webhookId: string }[] =>
  receivers.map((webhookId) => ({ id: formatDeliveryId({ webhookId, eventId, serial: 0 }), webhookId }));

/** Adds a delivery of `event`, due now unless said otherwise. The caller has checked that there is room. */
export function addDelivery(
  binding: Binding,
  endpoint: Endpoint,
  event: StoredEvent,
  serial: number,
  now: number,
  dueAt = now,
): Delivery {
  const { state } = binding;
  const id = formatDeliveryId({ webhookId: endpoint.record.id, eventId: event.record.id, serial });
  const delivery: Delivery = {
    id,
    serial,
    order: ++state.order,
    endpoint,
    event,
    createdAt: now,
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
  endpoint.deliveries.add(delivery, now);
  endpoint.counts.pending += 1;
  event.deliveries.push(delivery);
  event.open += 1;
  reopen(state, event);
  resize(state, event, DELIVERY_BYTES);
  endpoint.account.pending += 1;
  state.pending += 1;
  state.deliveries += 1;
  enqueue(delivery, now);
  offer(binding, endpoint, now);
  return delivery;
}

/** A part of a longer text would keep all of it on the heap. */
const copyOf = (attempt: Attempt): Attempt =>
  attempt.excerpt === null ? { ...attempt } : { ...attempt, excerpt: structuredClone(attempt.excerpt) };

/** Adds an attempt, and makes it the last one of its endpoint. At the bounds, of the delivery's own ones the oldest give way: what came of an attempt is never refused. */
function record(state: State, delivery: Delivery, attempt: Attempt, now: number): void {
  const { event, endpoint } = delivery;
  const kept = copyOf(attempt);
  endpoint.lastAttempt = kept.excerpt === null ? kept : { ...kept, excerpt: null };
  // An event that has ended must not give way to an attempt of its own.
  reopen(state, event);
  // Most deliveries have one attempt, and a list that grows keeps room for sixteen more.
  delivery.attempts = delivery.attempts.length === 0 ? [kept] : [...delivery.attempts, kept];
  resize(state, event, attemptBytes(kept));
  while (
    delivery.attempts.length > 1 &&
    (delivery.attempts.length > MAX_ATTEMPTS_KEPT || !makeRoom(state, 0, now))
  ) {
    const [oldest, ...others] = delivery.attempts;
    delivery.attempts = others;
    if (oldest) resize(state, event, -attemptBytes(oldest));
  }
}

function report({ state, perEndpoint }: Binding, endpoint: Endpoint, seen: EndpointReport): void {
  if (seen.generation !== endpoint.record.generation) return;
  moveToLane(state, endpoint, seen.lane);
  if (!seen.ok) endpoint.window = 1;
  else if (endpoint.window !== null) {
    endpoint.window = endpoint.window + 1 >= perEndpoint ? null : endpoint.window + 1;
  }
  const { status, failingSince } = endpoint.record;
  if (status !== "ENABLED") return;
  if (seen.ok && failingSince !== null) {
    change(state, endpoint, { failingSince: null, warnedAt: null, noticeAt: null });
  } else if (!seen.ok && failingSince === null) {
    change(state, endpoint, { failingSince: seen.at, warnedAt: null, noticeAt: seen.noticeAt });
  }
}

export function deliveryQueue(binding: Binding): Pick<WebhookStore, "append" | "claim" | "settle"> {
  const { state, retention } = binding;

  const settle = ({
    id,
    webhookId,
    account,
    token,
    now,
    outcome,
    startedAt,
    attempt,
    endpoint: seen,
  }: Settlement): SettleResult => {
    const delivery = endpointOf(state, account, webhookId)?.deliveries.get(id);
    if (!delivery || isDone(delivery)) return "gone";
    if (outcome.state !== "delivered") {
      if (delivery.state !== "pending") return "gone";
      if (delivery.lease?.token !== token) return "stale";
    }
    const { endpoint } = delivery;
    releaseLease(state, delivery);
    delivery.startedAt = startedAt ?? delivery.startedAt;
    delivery.isRecovered = false;
    if (attempt) record(state, delivery, attempt, now);
    if (seen) report(binding, endpoint, seen);
    if (outcome.state === "pending") {
      delivery.step = outcome.step;
      delivery.dueAt = outcome.dueAt;
      delivery.extraAt = outcome.extraAt ?? null;
      delivery.postponed = outcome.postponed;
      delivery.crashes = outcome.crashes;
      enqueue(delivery, now);
    } else {
      end(binding, delivery, { reason: null, ...outcome }, now);
    }
    offer(binding, endpoint, now);
    return "settled";
  };

  return {
    async append({ event, rememberMs, now, webhookId }) {
      expire(state, now);
      freeRemoved(binding, now);
      const account = state.accounts.get(event.account);
      const kept = account?.events.get(event.id);
      const known = kept
        ? { digest: kept.record.digest, receivers: kept.receivers }
        : state.remembered.get(scoped(event.account, event.id), now);
      if (known) {
        if (known.digest !== event.digest) return { result: "conflict" };
        return { result: "duplicate", deliveries: firstDeliveries(event.id, known.receivers) };
      }
      const isTest = webhookId !== undefined;
      const receivers = [...(account?.endpoints.after(0) ?? [])].filter(
        ({ record }) =>
          record.status === "ENABLED" &&
          (isTest ? record.id === webhookId : subscribes(record.eventTypes, event.type)),
      );
      const receiverIds = receivers.map(({ record: { id } }) => id);
      const deliveries = firstDeliveries(event.id, receiverIds);
      const isRecoverable =
        !isTest && retention.ms > 0 && account !== undefined && account.endpoints.size > 0;
      if (!account || (receivers.length === 0 && !isRecoverable)) {
        const expiresAt = now + rememberMs;
        state.remembered.set(scoped(event.account, event.id), {
          digest: event.digest,
          receivers: receiverIds,
          expiresAt,
        });
        return { result: "stored", deliveries };
      }

      checkPending(state, account, receivers.length);
      const bytes = eventBytes(event.payload);
      if (!makeRoom(state, bytes + receivers.length * DELIVERY_BYTES, now)) throw full(state, "bytes");
      const stored: StoredEvent = {
        id: event.id,
        order: ++state.order,
        record: Object.freeze({ ...event }),
        account,
        bytes: 0,
        storedAt: now,
        rememberUntil: now + rememberMs,
        deliveries: [],
        receivers: receiverIds,
        isTest,
        open: 0,
        ended: null,
      };
      account.events.add(stored, now);
      resize(state, stored, bytes);
      for (const endpoint of receivers) addDelivery(binding, endpoint, stored, 0, now);
      if (receivers.length === 0) endEvent(binding, stored, now);
      return { result: "stored", deliveries };
    },

    async claim(request) {
      expire(state, request.now);
      freeRemoved(binding, request.now);
      return claimDue(binding, request);
    },

    async settle(settlements) {
      return settlements.map(settle);
    },
  };
}
