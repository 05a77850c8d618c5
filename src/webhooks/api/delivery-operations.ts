/**
 * The operations that show and repair the deliveries of a webhook: each with its description for
 * OpenAPI and its handler. The log contains no records.
 */

import { isPostbellError, PostbellError } from "../../core/errors.js";
import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { invalidField, notFound, TEXT_LENGTHS } from "../call-arguments.js";
import { type Delivery, PER_ATTEMPT } from "../delivery/deliveries.js";
import { parseDeliveryId } from "../store/records.js";
import { findWebhook, parseInclude, parsePage, toJsonResponse } from "./api-request.js";
import type { ApiService, Operations, SubscriberCall } from "./operation.js";
import {
  cursorParameter,
  deliveryRef,
  describeObject,
  describeTime,
  EXAMPLE_ATTEMPT,
  EXAMPLE_DELIVERY,
  EXAMPLE_DELIVERY_ID,
  EXAMPLE_WEBHOOK,
  eventTypeRef,
  limitParameter,
  nextCursor,
} from "./schemas.js";

const attemptedId: JsonObject = {
  type: "string",
  description: "The id of the delivery that will be attempted.",
};

export const deliveryOperations: Operations = {
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
    async handle(call, service) {
      const { id: webhookId } = await findWebhook(call, service);
      return toJsonResponse(200, await service.deliveries.stats({ webhookId }));
    },
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
    async handle(call, service) {
      const { id: webhookId } = await findWebhook(call, service);
      const query = new URLSearchParams(call.request.query);
      const { attempts: isWithAttempts } = parseInclude(query, ["attempts"]);
      const page = service.deliveries.list({
        webhookId,
        eventId: query.get("event_id") ?? undefined,
        state: (query.get("state") ?? undefined) as Delivery["state"] | undefined,
        type: query.get("type") ?? undefined,
        since: query.get("since") ?? undefined,
        until: query.get("until") ?? undefined,
        ...parsePage(query),
        as: call.subscriber,
      });
      const { deliveries: found, next } = await renameErrorField({ eventId: "event_id" }, page);
      const rows = found.map((delivery) => toRow(delivery, isWithAttempts));
      return toJsonResponse(200, { deliveries: rows, next });
    },
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
    async handle(call, service) {
      const id = await findDeliveryId(call, service);
      return toJsonResponse(200, await service.deliveries.get(id, { as: call.subscriber }));
    },
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
    async handle(call, service) {
      const id = await findDeliveryId(call, service);
      const { body: includeBody } = parseInclude(new URLSearchParams(call.request.query), ["body"]);
      return toJsonResponse(200, await service.deliveries.request(id, { includeBody, as: call.subscriber }));
    },
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
    errors: [403, 404, 409],
    async handle(call, service) {
      const id = await findDeliveryId(call, service);
      const { force } = await call.readBody();
      const options = { force: force as boolean | undefined, as: call.subscriber };
      return toJsonResponse(202, await service.deliveries.resend(id, options));
    },
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
    errors: [403, 404, 409],
    async handle(call, service) {
      const { id: webhookId } = await findWebhook(call, service);
      const { since } = await call.readBody();
      if (since === undefined) {
        throw invalidField("since", "since is missing: the time to recover from, in ISO 8601.");
      }
      const recovery = { webhookId, since: since as string, as: call.subscriber };
      return toJsonResponse(202, await service.deliveries.recover(recovery));
    },
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
    errors: [403, 404, 409],
    async handle(call, service) {
      const { id: webhookId } = await findWebhook(call, service);
      const { event_type } = await call.readBody();
      const type = event_type as string | undefined;
      const test = service.deliveries.test({ webhookId, type, as: call.subscriber });
      return toJsonResponse(202, await renameErrorField({ type: "event_type" }, test));
    },
  },
};

/**
 * A delivery in a list. Its attempts are left out unless they were asked for, and excerpts of
 * responses in any case: they can be long.
 */
function toRow({ attempts, ...delivery }: Delivery, isWithAttempts: boolean) {
  const withoutExcerpts = attempts.map((attempt) => ({ ...attempt, excerpt: null }));
  const last = attempts.at(-1);
  return {
    ...delivery,
    attemptCount: attempts.length,
    lastAttempt: last
      ? { at: last.at, kind: last.kind, status: last.status, code: last.code, durationMs: last.durationMs }
      : null,
    ...(isWithAttempts && { attempts: withoutExcerpts }),
  };
}

/** Renames the field of an error to the name that the request uses. */
async function renameErrorField<T>(names: Readonly<Record<string, string>>, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const name = isPostbellError(error) && names[error.field ?? ""];
    if (!name) throw error;
    const { code, message } = error;
    throw new PostbellError(code, message, { field: name, cause: error });
  }
}

/** Returns the id of the path. Throws `not_found` for a delivery of another webhook. */
async function findDeliveryId(call: SubscriberCall, service: ApiService): Promise<string> {
  const webhook = await findWebhook(call, service);
  const id = call.parameter("deliveryId");
  if (parseDeliveryId(id)?.webhookId !== webhook.id) throw notFound("delivery");
  return id;
}
