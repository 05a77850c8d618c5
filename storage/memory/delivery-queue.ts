/** Events and their deliveries on the way, in memory: append, claim, settle. */

import { formatDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import { subscribes } from "../../src/webhooks/event-types/subscription.js";
import type { Attempt, WebhookStore } from "../../src/webhooks/store.js";
import { checkPending, DELIVERY_BYTES, eventBytes, memoryFull, resize } from "./bounds.js";
import { claimDue, enqueue, offer } from "./claim-order.js";
import { completeEvent, expire, freeRemoved, makeRoom, reopen } from "./retention.js";
import { settleAll } from "./settle.js";
import {
  type MemoryDelivery,
  type MemoryEndpoint,
  type MemoryEvent,
  type MemoryStoreContext,
  scoped,
} from "./state.js";

const NO_ATTEMPTS: readonly Attempt[] = Object.freeze([]);

/** What emitting an event returns. */
const firstDeliveries = (
  eventId: string,
  receivers: readonly string[],
): { readonly id: string; readonly webhookId: string }[] =>
  receivers.map((webhookId) => ({ id: formatDeliveryId({ webhookId, eventId, serial: 0 }), webhookId }));

/** Adds a delivery of `event`, due now unless said otherwise. The caller has checked that there is room. */
export function addDelivery(
  context: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  event: MemoryEvent,
  serial: number,
  now: number,
  dueAt = now,
): MemoryDelivery {
  const { state } = context;
  const delivery: MemoryDelivery = {
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
  // Most events have one delivery, and a list that grows keeps room for sixteen more.
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

export function createMemoryDeliveryQueue(
  context: MemoryStoreContext,
): Pick<WebhookStore, "append" | "claim" | "settle"> {
  const { state, retention } = context;

  return {
    async append({ event, rememberMs, now, webhookId }) {
      expire(state, now);
      freeRemoved(context, now);
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
      if (!makeRoom(state, bytes + receivers.length * DELIVERY_BYTES, now)) throw memoryFull(state, "bytes");
      const stored: MemoryEvent = {
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
        place: null,
        queuedAt: now,
        turn: 0,
        previous: null,
        next: null,
      };
      account.events.add(stored, now);
      resize(state, stored, bytes);
      for (const endpoint of receivers) addDelivery(context, endpoint, stored, 0, now);
      if (receivers.length === 0) completeEvent(context, stored, now);
      return { result: "stored", deliveries };
    },

    async claim(request) {
      expire(state, request.now);
      freeRemoved(context, request.now);
      return claimDue(context, request);
    },

    async settle(settlements) {
      return settleAll(context, settlements);
    },
  };
}
