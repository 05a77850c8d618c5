/** The operation that lists the events which an endpoint should have received. */

import { componentRef } from "../../http/openapi-document.js";
import { TEXT_LENGTHS } from "../call-arguments.js";
import { findWebhook, parsePage, renameErrorField, toJsonResponse } from "./api-request.js";
import type { Operations } from "./operation.js";
import {
  describeObject,
  describeTime,
  EXAMPLE_DELIVERY,
  EXAMPLE_WEBHOOK,
  eventTypeRef,
  limitParameter,
} from "./schemas.js";

export const feedOperations: Operations = {
  listEvents: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/events",
    tag: "Deliveries",
    summary: "List the events that the endpoint should have received",
    description:
      "For endpoints that were away. Oldest first, each event once, from a minute after it was stored and while it is kept. Continue with `after`: the `next` of the previous page, also days later. A page can hold fewer events than `limit`, even none, while `hasMore` is true. Events that the subscriber may not read now are left out. Only the API key that owns the webhook, or a key that may act for it, may list its events.",
    parameters: [
      {
        name: "after",
        in: "query",
        description:
          "`next` of the previous page. Without it, the list starts with the oldest event that is kept.",
        schema: { type: "string", maxLength: TEXT_LENGTHS.cursor },
      },
      limitParameter,
    ],
    response: {
      status: 200,
      description: "A page of events.",
      schema: describeObject({
        events: {
          type: "array",
          items: describeObject({
            deliveryId: { type: "string" },
            eventId: { type: "string", format: "uuid" },
            type: eventTypeRef,
            state: componentRef("schemas", "DeliveryState"),
            createdAt: describeTime("When the delivery was created."),
            body: { type: "string", description: "The body of an attempt, byte for byte: JSON." },
          }),
        },
        next: { type: "string", maxLength: TEXT_LENGTHS.cursor, description: "Opaque. Keep it." },
        hasMore: { type: "boolean", description: "True if there may be more events now." },
      }),
      example: {
        events: [
          {
            deliveryId: EXAMPLE_DELIVERY.id,
            eventId: EXAMPLE_DELIVERY.eventId,
            type: EXAMPLE_DELIVERY.type,
            state: "failed",
            createdAt: EXAMPLE_DELIVERY.createdAt,
            body: '{"id":"0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21","timestamp":"2026-03-01T12:00:00.000Z","event":{}}',
          },
        ],
        next: `${EXAMPLE_WEBHOOK.id}_1772366400000.7`,
        hasMore: false,
      },
    },
    errors: [400, 403, 404],
    async handle(call) {
      const { id: webhookId } = await findWebhook(call);
      const query = new URLSearchParams(call.request.query);
      const { limit } = parsePage(query);
      const after = query.get("after") ?? undefined;
      const found = call.webhooks.deliveries.listEvents({ webhookId, after, limit });
      const page = await renameErrorField({ cursor: "after" }, found);
      return toJsonResponse(200, { events: page.items, next: page.next, hasMore: page.hasMore });
    },
  },
};
