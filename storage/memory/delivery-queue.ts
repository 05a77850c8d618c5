/** Events and their deliveries on the way, in memory: append, claim, settle. */

import { formatDeliveryId } from "../../src/webhooks/delivery-id.js";
import type { EndpointReport, SettleResult, WebhookStore } from "../../src/webhooks/store.js";
import { subscribes } from "../../src/webhooks/subscription.js";
import { checkPending, full } from "./bounds.js";
import { change } from "./registry.js";
import { end, endEvent, expire, makeRoom, reopen } from "./retention.js";
import { claimDue, enqueue, moveToLane, offer, releaseLease, take } from "./schedule.js";
import {
  accountOf,
  type Delivery,
  dropIfEmpty,
  type Endpoint,
  isDone,
  notify,
  type State,
  type StoredEvent,
  scoped,
} from "./state.js";

/** Attempts kept of one delivery; a schedule has 14, what is more comes from `resend`. */
const MAX_ATTEMPTS_KEPT = 50;

/** What emitting an event returns. */
const firstDeliveries = (
  eventId: string,
  receivers: readonly string[],
): { readonly id: string; readonly webhookId: string }[] =>
  receivers.map((webhookId) => ({ id: formatDeliveryId({ webhookId, eventId, serial: 0 }), webhookId }));

/** Adds a delivery of `event`, due now. The caller has checked that there is room. */
export function addDelivery(
  state: State,
  endpoint: Endpoint,
  event: StoredEvent,
  serial: number,
  now: number,
): Delivery {
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
    dueAt: now,
    endedAt: null,
    attempts: [],
    postponed: 0,
    crashes: 0,
    extraAt: null,
    isRecovered: false,
    token: null,
  };
  endpoint.deliveries.set(id, delivery);
  event.deliveries.push(delivery);
  event.open += 1;
  reopen(state, event);
  endpoint.account.pending += 1;
  state.pending += 1;
  enqueue(delivery, now);
  offer(state, endpoint, now);
  return delivery;
}

function report(state: State, endpoint: Endpoint, seen: EndpointReport): void {
  if (seen.generation !== endpoint.record.generation) return;
  moveToLane(state, endpoint, seen.lane);
  if (!seen.ok) endpoint.window = 1;
  else if (endpoint.window !== null) {
    endpoint.window = endpoint.window + 1 >= state.perEndpoint ? null : endpoint.window + 1;
  }
  const { status, failingSince } = endpoint.record;
  if (status !== "ENABLED") return;
  if (seen.ok && failingSince !== null) {
    change(state, endpoint, { failingSince: null, warnedAt: null, noticeAt: null });
  } else if (!seen.ok && failingSince === null) {
    change(state, endpoint, { failingSince: seen.at, warnedAt: null, noticeAt: seen.noticeAt });
  }
}

export function deliveryQueue(state: State): Pick<WebhookStore, "append" | "claim" | "settle"> {
  return {
    async append({ event, rememberMs, retention, now, claim }) {
      expire(state, now);
      if (claim) state.perEndpoint = claim.perEndpoint;
      const account = accountOf(state, event.account);
      const kept = account.events.get(event.id);
      const known = kept
        ? { digest: kept.record.digest, receivers: kept.receivers }
        : state.remembered.get(scoped(event.account, event.id), now);
      if (known) {
        dropIfEmpty(state, account);
        if (known.digest !== event.digest) return { result: "conflict" };
        return { result: "duplicate", deliveries: firstDeliveries(event.id, known.receivers), claims: [] };
      }
      const receivers = [...account.endpoints.values()].filter(
        ({ record }) => record.status === "ENABLED" && subscribes(record.eventTypes, event.type),
      );
      const bytes = Buffer.byteLength(event.payload);
      const isKept = receivers.length > 0 || (account.endpoints.size > 0 && retention.ms > 0);
      try {
        checkPending(state, account, receivers.length);
        if (isKept && !makeRoom(state, bytes, now)) throw full(state, "bytes");
      } finally {
        dropIfEmpty(state, account);
      }
      const receiverIds = receivers.map(({ record: { id } }) => id);
      const deliveries = firstDeliveries(event.id, receiverIds);
      if (!isKept) {
        const expiresAt = now + rememberMs;
        state.remembered.set(scoped(event.account, event.id), {
          digest: event.digest,
          receivers: receiverIds,
          expiresAt,
        });
        return { result: "stored", deliveries, claims: [] };
      }

      const stored: StoredEvent = {
        order: ++state.order,
        record: Object.freeze({ ...event }),
        account,
        bytes,
        storedAt: now,
        rememberUntil: now + rememberMs,
        deliveries: [],
        receivers: receiverIds,
        open: 0,
      };
      account.events.set(event.id, stored);
      state.bytes += bytes;
      const room = claim ? { ...claim.room } : { fast: 0, slow: 0 };
      const claims = receivers.flatMap((endpoint) => {
        addDelivery(state, endpoint, stored, 0, now);
        if (!claim || room[endpoint.lane] === 0) return [];
        const taken = take(state, endpoint, claim, 1);
        room[endpoint.lane] -= taken.length;
        return taken;
      });
      if (receivers.length === 0) endEvent(state, stored, now, retention);
      else if (claims.length < receivers.length) notify(state, now);
      return { result: "stored", deliveries, claims };
    },

    async claim(request) {
      state.perEndpoint = request.perEndpoint;
      expire(state, request.now);
      return claimDue(state, request);
    },

    async settle({
      id,
      webhookId,
      token,
      now,
      outcome,
      startedAt,
      attempt,
      endpoint: seen,
      perEndpoint,
      retention,
    }): Promise<SettleResult> {
      state.perEndpoint = perEndpoint;
      const delivery = state.endpoints.get(webhookId)?.deliveries.get(id);
      if (!delivery || isDone(delivery)) return "gone";
      if (outcome.state !== "delivered") {
        if (delivery.state !== "pending") return "gone";
        if (delivery.token !== token) return "stale";
      }
      const { endpoint } = delivery;
      releaseLease(state, delivery);
      delivery.startedAt = startedAt ?? delivery.startedAt;
      delivery.isRecovered = false;
      if (attempt) {
        if (delivery.attempts.length === MAX_ATTEMPTS_KEPT) delivery.attempts.shift();
        delivery.attempts.push({ ...attempt });
      }
      if (seen) report(state, endpoint, seen);
      if (outcome.state === "pending") {
        delivery.step = outcome.step;
        delivery.dueAt = outcome.dueAt;
        delivery.extraAt = outcome.extraAt ?? null;
        delivery.postponed = outcome.postponed;
        delivery.crashes = outcome.crashes;
        enqueue(delivery, now);
        notify(state, delivery.extraAt ?? delivery.dueAt);
      } else {
        end(state, delivery, { reason: null, ...outcome }, now, retention);
      }
      offer(state, endpoint, now);
      return "settled";
    },
  };
}
