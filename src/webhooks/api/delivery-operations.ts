/**
 * The operations that show and repair the deliveries of a webhook: each with its description for
 * OpenAPI and its handler. The log contains no records.
 */

import { isPostbellError } from "../../core/errors.js";
import { HttpError, serviceUnavailable } from "../../http/errors.js";
import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { notFound } from "../call-arguments.js";
import { PER_ATTEMPT } from "../delivery/deliveries.js";
import { EXAMINATION_CHECKS, EXAMINATION_PROBLEMS, EXAMINATION_REQUESTS } from "../delivery/examination.js";
import { EXPLANATION_REASONS } from "../delivery/explanation.js";
import { parseDeliveryId } from "../store/records.js";
import { findWebhook, parseInclude, renameErrorField, toJsonResponse } from "./api-request.js";
import type { Operations, SubscriberCall } from "./operation.js";
import {
  deliveryRef,
  describeObject,
  describeTime,
  EXAMPLE_ATTEMPT,
  EXAMPLE_DELIVERY,
  EXAMPLE_DELIVERY_ID,
  EXAMPLE_WEBHOOK,
  eventTypeRef,
} from "./schemas.js";

const attemptedId: JsonObject = {
  type: "string",
  description: "The id of the delivery that will be attempted.",
};

const examinationCheck: JsonObject = describeObject({
  name: { type: "string", enum: [...EXAMINATION_CHECKS] },
  result: { type: "string", enum: ["passed", "failed", "skipped"] },
  problem: {
    type: ["string", "null"],
    enum: [...EXAMINATION_PROBLEMS, null],
    description:
      "`accepted`: a 2xx to a request to refuse. `refused`: a 4xx to one to accept. `broken`: a 5xx. `late`, `unreachable`, `dropped`: no response. `unverified`, `throttled`, `unavailable`: not decided.",
  },
  status: { type: ["integer", "null"], description: "The status of the response; null without one." },
  code: { type: ["string", "null"], description: "Why there is no response." },
  durationMs: { type: ["integer", "null"], minimum: 0 },
  title: { type: "string", description: "In English, as `expected` and `fix`." },
  expected: { type: "string" },
  fix: { type: ["string", "null"], description: "How to repair it; null without a problem." },
  advice: { type: "array", items: { type: "string" }, description: "The steps of `fix`." },
});

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
        pending: 2,
        delivered: 340,
        failed: 0,
        withheld: 1,
        eventTypes: ["patient.*"],
        health: {
          status: "failing",
          failingSince: "2026-03-01T12:00:00.500Z",
          warnAt: "2026-03-04T12:00:00.500Z",
          disableAt: "2026-03-05T12:00:00.500Z",
        },
        lastDay: { attempts: 350, succeeded: 340, averageMs: 42 },
        hours: [{ at: "2026-03-01T12:00:00.000Z", delivered: 340, failed: 10, p50: 37, p95: 129 }],
        rotatesAt: null,
        nextAttemptAt: EXAMPLE_DELIVERY.nextAttemptAt,
        lastAttempt: EXAMPLE_ATTEMPT,
      },
    },
    errors: [404],
    async handle(call) {
      const { id } = await findWebhook(call);
      return toJsonResponse(200, await call.webhooks.deliveries.stats(id));
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
    async handle(call) {
      const id = await findDeliveryId(call);
      return toJsonResponse(200, await call.webhooks.deliveries.get(id));
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
    async handle(call) {
      const id = await findDeliveryId(call);
      const { body: includeBody } = parseInclude(new URLSearchParams(call.request.query), ["body"]);
      return toJsonResponse(200, await call.webhooks.deliveries.inspect({ id, includeBody }));
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
    async handle(call) {
      const id = await findDeliveryId(call);
      const { force } = await call.readBody();
      const request = { id, force: force as boolean | undefined };
      return toJsonResponse(202, await call.webhooks.deliveries.resend(request));
    },
  },
  explainEvent: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/events/:eventId/explanation",
    tag: "Deliveries",
    summary: "Explain why a webhook did or did not get an event",
    description:
      "Only the API key that owns the webhook, or a key that may act for it, may ask. An event without a delivery to the webhook that its subscriber may not read now is `event_unknown`.",
    response: {
      status: 200,
      description: "The reason.",
      schema: describeObject({
        reason: { type: "string", enum: [...EXPLANATION_REASONS] },
        text: { type: "string", description: "One or two sentences in English." },
        nextAttemptAt: { ...describeTime("When the next attempt is due."), type: ["string", "null"] },
        deliveryId: { type: ["string", "null"] },
      }),
      example: {
        reason: "type_not_subscribed",
        text: "The webhook does not subscribe to 'patient.created'.",
        nextAttemptAt: null,
        deliveryId: null,
      },
    },
    errors: [400, 403, 404],
    async handle(call) {
      const { id: webhookId } = await findWebhook(call);
      const eventId = call.parameter("eventId");
      return toJsonResponse(200, await call.webhooks.deliveries.explain({ eventId, webhookId }));
    },
  },
  testWebhook: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/test",
    tag: "Deliveries",
    summary: "Send a test event",
    description:
      "Sends an event to this webhook only. The delivery is signed and logged like any other, but attempted once. The event contains an OperationOutcome or the sample of its type, never a record. Only the API key that owns the webhook, or a key that may act for it, may send tests.",
    body: {
      isOptional: true,
      properties: {
        event_type: {
          ...eventTypeRef,
          description:
            "The event type that the notification names, with a sample of its record. Default: `webhook.test`.",
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
    async handle(call) {
      const { id: webhookId } = await findWebhook(call);
      const { event_type } = await call.readBody();
      const type = event_type as string | undefined;
      const test = call.webhooks.deliveries.test({ webhookId, type });
      return toJsonResponse(202, await renameErrorField({ type: "event_type" }, test));
    },
  },
  examineWebhook: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/examination",
    tag: "Deliveries",
    summary: "Examine an endpoint",
    description:
      "Sends up to nine test notifications, good and bad ones, to the endpoint, and reports in ten checks what it does wrong and how to repair it. Nothing is logged or retried. It takes up to 25 seconds. An ENABLED webhook has to be confirmed: otherwise the response is 409 `webhook_enabled`. Only the API key that owns the webhook, or a key that may act for it, may examine.",
    body: {
      isOptional: true,
      properties: {
        even_if_enabled: {
          type: "boolean",
          default: false,
          description: "True examines an ENABLED webhook, whose endpoint may be in production.",
        },
      },
      example: {},
    },
    response: {
      status: 200,
      description: "The report.",
      schema: describeObject({
        at: describeTime("When the examination began."),
        isPassed: { type: "boolean", description: "True if every possible check passed." },
        checks: { type: "array", items: examinationCheck },
      }),
      example: {
        at: EXAMPLE_WEBHOOK.updatedDate,
        isPassed: false,
        checks: [
          {
            name: "wrong_signature",
            result: "failed",
            problem: "accepted",
            status: 200,
            code: null,
            durationMs: 12,
            title: "A signature with another secret",
            expected: "a 4xx, such as 400 or 401",
            fix: "Compute the signature over the raw bytes of the body and compare it before anything else.",
            advice: ["wrong_signature"],
          },
        ],
      },
    },
    errors: [403, 404, 409],
    async handle(call) {
      const { id: webhookId } = await findWebhook(call);
      const { even_if_enabled } = await call.readBody();
      const evenIfEnabled = even_if_enabled as boolean | undefined;
      const { signal } = call.request;
      const examined = call.webhooks.deliveries.examine({ webhookId, evenIfEnabled, signal });
      const examination = examined.catch((error: unknown) => {
        // A refusal sends nothing, and costs nothing more. An examination that was cut off does.
        if (signal?.aborted !== true)
          throw isPostbellError(error, "not_started") ? serviceUnavailable() : error;
        call.charge(EXAMINATION_REQUESTS);
        throw new HttpError(400, "request_aborted", "The client left before the examination ended.");
      });
      const report = await renameErrorField({ evenIfEnabled: "even_if_enabled" }, examination);
      call.charge(EXAMINATION_REQUESTS);
      return toJsonResponse(200, report);
    },
  },
};

/** Returns the id of the path. Throws `not_found` for a delivery of another webhook. */
async function findDeliveryId(call: SubscriberCall): Promise<string> {
  const webhook = await findWebhook(call);
  const id = call.parameter("deliveryId");
  if (parseDeliveryId(id)?.webhookId !== webhook.id) throw notFound("delivery");
  return id;
}
