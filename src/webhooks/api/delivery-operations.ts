/** The operations on deliveries: requests and responses of each, by operation id. Plain data. */

import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { PER_ATTEMPT } from "../delivery/deliveries.js";
import { TEXT_LENGTHS } from "../text-lengths.js";
import { EXAMPLE_ATTEMPT, EXAMPLE_DELIVERY, EXAMPLE_DELIVERY_ID, EXAMPLE_WEBHOOK } from "./examples.js";
import { BODY_ERRORS, type Operation } from "./operation.js";
import {
  cursorParameter,
  deliveryRef,
  describeObject,
  describeTime,
  eventTypeRef,
  limitParameter,
  nextCursor,
} from "./shared-schemas.js";

const attemptedId: JsonObject = {
  type: "string",
  description: "The id of the delivery that will be attempted.",
};

export const deliveryOperations = {
  readStats: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/stats",
    tag: "Deliveries",
    summary: "Read the statistics and the health of a webhook",
    response: {
      status: 200,
      description: "The number of stored deliveries in each state, and the health of the endpoint.",
      schema: componentRef("schemas", "Stats"),
      example: {
        ...{ pending: 2, delivered: 340, failed: 0, withheld: 1, eventTypes: ["patient.*"] },
        health: {
          status: "failing",
          failingSince: "2026-03-01T12:00:00.500Z",
          warnAt: "2026-03-04T12:00:00.500Z",
          disableAt: "2026-03-05T12:00:00.500Z",
        },
        lastDay: { attempts: 350, succeeded: 340, averageMs: 42 },
        rotatesAt: null,
        nextAttemptAt: EXAMPLE_DELIVERY.nextAttemptAt,
        lastAttempt: EXAMPLE_ATTEMPT,
      },
    },
    errors: [404],
  },
  listDeliveries: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/deliveries",
    tag: "Deliveries",
    summary: "List a webhook's deliveries",
    description:
      "Newest first, without their attempts. A page can hold fewer deliveries than `limit`, even none, and still have a `next`. Continue until `next` is null.",
    parameters: [
      { name: "state", in: "query", schema: componentRef("schemas", "DeliveryState") },
      {
        name: "type",
        in: "query",
        description: "An event type, or `webhook.test`.",
        schema: { anyOf: [eventTypeRef, { const: "webhook.test" }] },
      },
      {
        name: "since",
        in: "query",
        description: "Only deliveries created at or after this time: ISO 8601 with an offset.",
        schema: { type: "string", format: "date-time", maxLength: TEXT_LENGTHS.time },
      },
      {
        name: "event_id",
        in: "query",
        description: "Only the deliveries of this event: the first one, and those sent again.",
        schema: { type: "string", format: "uuid" },
      },
      {
        name: "include",
        in: "query",
        description: "`attempts` adds the attempts of each delivery, without excerpts of responses.",
        schema: { const: "attempts" },
      },
      {
        name: "until",
        in: "query",
        description: "Only deliveries created before this time: ISO 8601 with an offset.",
        schema: { type: "string", format: "date-time", maxLength: TEXT_LENGTHS.time },
      },
      limitParameter,
      cursorParameter,
    ],
    response: {
      status: 200,
      description: "A page of deliveries.",
      schema: describeObject({
        deliveries: { type: "array", items: componentRef("schemas", "DeliveryRow") },
        next: nextCursor,
      }),
      example: {
        deliveries: [
          { ...EXAMPLE_DELIVERY, attemptCount: 1, lastAttempt: { ...EXAMPLE_ATTEMPT, durationMs: 120 } },
        ],
        next: null,
      },
    },
    errors: [400, 404],
  },
  readDelivery: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/deliveries/:deliveryId",
    tag: "Deliveries",
    summary: "Read a delivery with its attempts",
    response: {
      status: 200,
      description: "The delivery.",
      schema: deliveryRef,
      example: {
        ...EXAMPLE_DELIVERY,
        attempts: [{ ...EXAMPLE_ATTEMPT, durationMs: 120, step: 0, isExtra: false, excerpt: null }],
      },
    },
    errors: [404],
  },
  readDeliveryRequest: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/deliveries/:deliveryId/request",
    tag: "Deliveries",
    summary: "Read what an attempt of a delivery sends",
    description:
      "Whether the subscriber may read the records is checked again, as for an attempt. If it may not read the event's own record, the response is 403 `record_not_readable`. Only the API key that owns the webhook, or a key that may act for it, may read the request.",
    parameters: [
      {
        name: "include",
        in: "query",
        description: "`body` adds the body, which contains the record.",
        schema: { const: "body" },
      },
    ],
    response: {
      status: 200,
      description: "The request of an attempt.",
      schema: describeObject({
        method: { const: "POST" },
        url: { type: "string" },
        headers: {
          type: "object",
          additionalProperties: { type: "string" },
          description: `Header values by name. Signatures and their time are \`${PER_ATTEMPT}\`.`,
        },
        bytes: { type: "integer", minimum: 0, description: "The size of the body." },
        body: { type: ["string", "null"], description: "Null without `include=body`." },
      }),
      example: {
        method: "POST",
        url: EXAMPLE_WEBHOOK.url,
        headers: { "content-type": "application/json", "X-Service-Signature": PER_ATTEMPT },
        bytes: 1834,
        body: null,
      },
    },
    errors: [400, 403, 404],
  },
  resendDelivery: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/deliveries/:deliveryId/resend",
    tag: "Deliveries",
    summary: "Attempt a delivery once more, now",
    description:
      "A pending delivery keeps its schedule. For a completed one, a new delivery of the same event is created, with its own schedule. While an attempt is in flight, the response is 409 `attempt_in_flight`. Only the API key that owns the webhook, or a key that may act for it, may resend.",
    body: {
      isOptional: true,
      properties: {
        force: {
          type: "boolean",
          default: false,
          description:
            "True makes the attempt even if another one is in flight: the endpoint may receive the event twice.",
        },
      },
      example: {},
    },
    response: {
      status: 202,
      description: "The delivery will be attempted.",
      schema: describeObject({ id: attemptedId }),
      example: { id: EXAMPLE_DELIVERY_ID },
    },
    errors: [...BODY_ERRORS, 403, 404, 409],
  },
  recoverDeliveries: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/recover",
    tag: "Deliveries",
    summary: "Recover missed events",
    description:
      "Creates deliveries of all stored events since `since`, or since the webhook was registered, that it subscribes to and did not receive. They are sent one at a time, oldest first. Calling it again changes nothing. The response is 429 if the recoveries of the account have examined too many events in a minute. Only the API key that owns the webhook, or a key that may act for it, may recover events.",
    body: {
      required: ["since"],
      properties: { since: { ...describeTime("ISO 8601 with an offset."), maxLength: TEXT_LENGTHS.time } },
      example: { since: "2026-03-01T00:00:00Z" },
    },
    response: {
      status: 202,
      description: "The deliveries were created and will be sent.",
      schema: describeObject({
        count: { type: "integer", minimum: 0, description: "The number of created deliveries." },
      }),
      example: { count: 12 },
    },
    errors: [...BODY_ERRORS, 403, 404, 409],
  },
  testWebhook: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/test",
    tag: "Deliveries",
    summary: "Send a test event",
    description:
      "Sends an event to this webhook only. The delivery is signed and logged like any other, but attempted once. The event contains an OperationOutcome, never a record. Only the API key that owns the webhook, or a key that may act for it, may send tests.",
    body: {
      isOptional: true,
      properties: {
        event_type: {
          ...eventTypeRef,
          description: "The event type that the notification names. Default: `webhook.test`.",
        },
      },
      example: {},
    },
    response: {
      status: 202,
      description: "The test will be sent.",
      schema: describeObject({ id: attemptedId }),
      example: { id: EXAMPLE_DELIVERY_ID },
    },
    errors: [...BODY_ERRORS, 403, 404, 409],
  },
} as const satisfies { readonly [operationId: string]: Operation };
