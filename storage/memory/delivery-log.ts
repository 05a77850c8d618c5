/** The delivery log in memory: look up, send again, recover. */

import { parseDeliveryId } from "../../src/webhooks/delivery-id.js";
import type { DeliveryRecord, WebhookStore } from "../../src/webhooks/store.js";
import { subscribes } from "../../src/webhooks/subscription.js";
import { checkPending, DELIVERY_BYTES, full } from "./bounds.js";
import { addDelivery } from "./delivery-queue.js";
import { page, pageStart } from "./page.js";
import { expire, makeRoom } from "./retention.js";
import { enqueue, offer } from "./schedule.js";
import {
  type Account,
  type Binding,
  type Delivery,
  type Endpoint,
  endpointOf,
  type State,
  type StoredEvent,
} from "./state.js";

const isPending = (delivery: Delivery): boolean => delivery.state === "pending";

const toRecord = (delivery: Delivery): DeliveryRecord => ({
  id: delivery.id,
  webhookId: delivery.endpoint.record.id,
  eventId: delivery.event.record.id,
  type: delivery.event.record.type,
  state: delivery.state,
  reason: delivery.reason,
  createdAt: delivery.createdAt,
  startedAt: delivery.startedAt,
  step: delivery.step,
  dueAt: isPending(delivery) ? delivery.dueAt : null,
  endedAt: delivery.endedAt,
  attempts: delivery.attempts.map((attempt) => ({ ...attempt })),
});

/** Deliveries of one event to one endpoint, in the order of their making. */
const deliveriesOf = (event: StoredEvent, endpoint: Endpoint): readonly Delivery[] =>
  event.deliveries.filter((delivery) => delivery.endpoint === endpoint);

const nextSerial = (event: StoredEvent, endpoint: Endpoint): number =>
  (deliveriesOf(event, endpoint).at(-1)?.serial ?? -1) + 1;

/** Whether `endpoint` should have `event`, has not got it, and is not about to. */
const isLost = (event: StoredEvent, endpoint: Endpoint): boolean =>
  !event.isTest &&
  subscribes(endpoint.record.eventTypes, event.record.type) &&
  deliveriesOf(event, endpoint).every(({ state }) => state === "failed");

const findDelivery = (state: State, id: string): Delivery | undefined =>
  state.endpoints.get(parseDeliveryId(id)?.webhookId ?? "")?.deliveries.get(id);

/** Of deliveries from the newest on, those created at or after `since` and before `until`. */
function* createdWithin(
  newestFirst: Iterable<Delivery>,
  since = Number.NEGATIVE_INFINITY,
  until = Number.POSITIVE_INFINITY,
): Iterable<Delivery> {
  for (const delivery of newestFirst) {
    if (delivery.createdAt < since) return;
    if (delivery.createdAt < until) yield delivery;
  }
}

/** Errors: `storage_full` where new deliveries of `events` to one account would pass a bound. */
function checkRoom(state: State, account: Account, events: readonly StoredEvent[], now: number): void {
  checkPending(state, account, events.length);
  if (!makeRoom(state, events.length * DELIVERY_BYTES, now, events)) throw full(state, "bytes");
}

export function deliveryLog(
  binding: Binding,
): Pick<WebhookStore, "getDelivery" | "listDeliveries" | "deliveryStats" | "resend" | "recover"> {
  const { state } = binding;
  return {
    async getDelivery(id) {
      const delivery = findDelivery(state, id);
      return delivery && toRecord(delivery);
    },

    async listDeliveries({ webhookId, state: wanted, type, since, until, cursor, limit }) {
      const before = pageStart(cursor) ?? Number.POSITIVE_INFINITY;
      const newestFirst = state.endpoints.get(webhookId)?.deliveries.before(before) ?? [];
      const { rows, next } = page(
        createdWithin(newestFirst, since, until),
        limit,
        (delivery) =>
          (wanted === undefined || delivery.state === wanted) &&
          (type === undefined || delivery.event.record.type === type),
      );
      return { deliveries: rows.map(toRecord), next };
    },

    async deliveryStats(webhookId) {
      const endpoint = state.endpoints.get(webhookId);
      if (!endpoint) return undefined;
      const { counts, queue, lastAttempt } = endpoint;
      const head = queue.head();
      return {
        ...counts,
        nextDueAt: head ? (head.extraAt ?? head.dueAt) : null,
        lastAttempt: lastAttempt && { ...lastAttempt },
      };
    },

    async resend({ id, account, now }) {
      expire(state, now);
      const asked = findDelivery(state, id);
      if (asked?.endpoint.account.name !== account) return undefined;
      const { endpoint, event } = asked;
      const open = deliveriesOf(event, endpoint).find(isPending);
      if (open) {
        if (open.token === null && (open.extraAt ?? open.dueAt) > now) {
          open.extraAt = now;
          enqueue(open, now);
          offer(binding, endpoint, now);
        }
        return open.id;
      }
      checkRoom(state, endpoint.account, [event], now);
      return addDelivery(binding, endpoint, event, nextSerial(event, endpoint), now).id;
    },

    async recover({ webhookId, account, since, dueAt, everyMs, now, cursor, limit }) {
      expire(state, now);
      const endpoint = endpointOf(state, account, webhookId);
      if (!endpoint) return undefined;
      const oldestFirst = endpoint.account.events.after(pageStart(cursor) ?? 0);
      const { rows, next } = page(oldestFirst, limit, ({ storedAt }) => storedAt >= since);
      const lost = rows.filter((event) => isLost(event, endpoint));
      checkRoom(state, endpoint.account, lost, now);
      for (const [index, event] of lost.entries()) {
        addDelivery(binding, endpoint, event, nextSerial(event, endpoint), now, dueAt + index * everyMs);
      }
      return { count: lost.length, next };
    },
  };
}
