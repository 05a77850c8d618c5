/** The delivery log in memory: look up, send again, recover. */

import { parseDeliveryId } from "../../src/webhooks/delivery-id.js";
import type { DeliveryRecord, WebhookStore } from "../../src/webhooks/store.js";
import { subscribes } from "../../src/webhooks/subscription.js";
import { checkPending } from "./bounds.js";
import { addDelivery } from "./delivery-queue.js";
import { page, pageStart } from "./page.js";
import { expire } from "./retention.js";
import { enqueue, offer } from "./schedule.js";
import { type Delivery, type Endpoint, notify, type State, type StoredEvent } from "./state.js";

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
  subscribes(endpoint.record.eventTypes, event.record.type) &&
  deliveriesOf(event, endpoint).every(({ state }) => state === "failed");

const findDelivery = (state: State, id: string): Delivery | undefined =>
  state.endpoints.get(parseDeliveryId(id)?.webhookId ?? "")?.deliveries.get(id);

export function deliveryLog(
  state: State,
): Pick<WebhookStore, "getDelivery" | "listDeliveries" | "resend" | "recover"> {
  return {
    async getDelivery(id) {
      const delivery = findDelivery(state, id);
      return delivery && toRecord(delivery);
    },

    async listDeliveries({ webhookId, state: wanted, type, cursor, limit }) {
      const before = pageStart(cursor) ?? Number.POSITIVE_INFINITY;
      const matching = [...(state.endpoints.get(webhookId)?.deliveries.values() ?? [])]
        .filter(
          (delivery) =>
            delivery.order < before &&
            (wanted === undefined || delivery.state === wanted) &&
            (type === undefined || delivery.event.record.type === type),
        )
        .reverse();
      const { rows, next } = page(matching, limit);
      return { deliveries: rows.map(toRecord), next };
    },

    async resend({ id, now }) {
      expire(state, now);
      const asked = findDelivery(state, id);
      if (!asked) return undefined;
      const { endpoint, event } = asked;
      const open = deliveriesOf(event, endpoint).find(isPending);
      if (open) {
        if (open.token === null && (open.extraAt ?? open.dueAt) > now) {
          open.extraAt = now;
          enqueue(open, now);
          offer(state, endpoint, now);
          notify(state, now);
        }
        return open.id;
      }
      checkPending(state, endpoint.account, 1);
      const made = addDelivery(state, endpoint, event, nextSerial(event, endpoint), now);
      notify(state, now);
      return made.id;
    },

    async recover({ webhookId, since, now, cursor, limit }) {
      expire(state, now);
      const endpoint = state.endpoints.get(webhookId);
      if (!endpoint) return undefined;
      const { account } = endpoint;
      const after = pageStart(cursor) ?? 0;
      const kept = [...account.events.values()].filter(
        ({ storedAt, order }) => storedAt >= since && order > after,
      );
      const { rows, next } = page(kept, limit);
      const lost = rows.filter((event) => isLost(event, endpoint));
      checkPending(state, account, lost.length);
      for (const event of lost) addDelivery(state, endpoint, event, nextSerial(event, endpoint), now);
      if (lost.length > 0) notify(state, now);
      return { count: lost.length, next };
    },
  };
}
