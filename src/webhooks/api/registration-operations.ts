/** The operations on webhooks: requests and responses of each, by operation id. Plain data. */

import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { MAX_EVENT_TYPES } from "../event-types/subscription.js";
import { EXAMPLE_SECRET, EXAMPLE_WEBHOOK } from "./examples.js";
import { BODY_ERRORS, type Operation } from "./operation.js";
import {
  cursorParameter,
  describeObject,
  describeTime,
  limitParameter,
  nextCursor,
  secretRef,
  webhookRef,
} from "./shared-schemas.js";

const url = componentRef("schemas", "EndpointUrl");

const eventTypes: JsonObject = {
  type: "array",
  description:
    "The event types to subscribe to: names, `prefix.*` or `*`. If it is missing: every type, also future ones.",
  minItems: 1,
  maxItems: MAX_EVENT_TYPES,
  uniqueItems: true,
  items: componentRef("schemas", "EventTypePattern"),
};

const status: JsonObject = { type: "string", enum: ["ENABLED", "DISABLED"] };

const include: JsonObject = {
  name: "include",
  in: "query",
  description:
    "What to add to each webhook: `stats` its statistics, `event_types` its subscription. Several are separated by commas.",
  style: "form",
  explode: false,
  schema: {
    type: "array",
    minItems: 1,
    maxItems: 2,
    uniqueItems: true,
    items: { type: "string", enum: ["stats", "event_types"] },
  },
};

export const registrationOperations = {
  createWebhook: {
    method: "POST",
    path: "/v1/webhooks",
    tag: "Webhooks",
    summary: "Register an endpoint",
    description:
      "The webhook is ENABLED at once. Only this response contains the secret that signs its notifications.",
    parameters: [
      {
        name: "Idempotency-Key",
        in: "header",
        description:
          "Makes it safe to repeat the request after a lost response. For ten minutes the same key returns the same response, including the secret. If the webhook was deleted or its secret rotated since, the response is 409.",
        schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
      },
    ],
    body: {
      required: ["url"],
      properties: { url, event_types: eventTypes },
      example: { url: EXAMPLE_WEBHOOK.url, event_types: ["patient.*"] },
    },
    response: {
      status: 201,
      description: "The webhook and its secret.",
      schema: describeObject({ webhook: webhookRef, secret: secretRef }),
      example: { webhook: EXAMPLE_WEBHOOK, secret: EXAMPLE_SECRET },
      headers: {
        Location: {
          description: "The URL of the webhook.",
          required: true,
          schema: { type: "string", format: "uri" },
        },
      },
    },
    errors: [...BODY_ERRORS, 403, 409],
  },
  listWebhooks: {
    method: "GET",
    path: "/v1/webhooks",
    tag: "Webhooks",
    summary: "List the account's webhooks",
    description:
      "Oldest first. A page with statistics counts as one more request of the account for each webhook on it.",
    parameters: [limitParameter, cursorParameter, include],
    response: {
      status: 200,
      description: "A page of webhooks.",
      schema: describeObject({ webhooks: { type: "array", items: webhookRef }, next: nextCursor }),
      example: { webhooks: [EXAMPLE_WEBHOOK], next: null },
    },
    errors: [400],
  },
  readWebhook: {
    method: "GET",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Read a webhook",
    parameters: [include],
    response: { status: 200, description: "The webhook.", schema: webhookRef, example: EXAMPLE_WEBHOOK },
    errors: [400, 404],
  },
  updateWebhook: {
    method: "PUT",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Change, enable or disable a webhook",
    description:
      "Pending deliveries go to the new URL. A new URL, or enabling the webhook again, resets the health of its endpoint. While the webhook is DISABLED, due attempts are skipped and new events create no deliveries. Only the API key that owns the webhook, or a key that may act for it, may change the URL or the event types, or enable the webhook. Every key of the account may disable it.",
    body: {
      required: ["url", "status"],
      properties: {
        url,
        status,
        event_types: {
          ...eventTypes,
          description: "Replaces the event types. If it is missing, they do not change.",
        },
        id: { type: "string", readOnly: true },
        createdDate: { type: "string", readOnly: true },
        updatedDate: { type: "string", readOnly: true },
      },
      example: { url: EXAMPLE_WEBHOOK.url, status: "DISABLED" },
    },
    response: {
      status: 200,
      description: "The updated webhook.",
      schema: webhookRef,
      example: { ...EXAMPLE_WEBHOOK, status: "DISABLED", updatedDate: "2026-03-02T08:30:00.000Z" },
    },
    errors: [...BODY_ERRORS, 403, 404, 409],
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Delete a webhook",
    description:
      "Deletes all its deliveries too: nothing more is sent. Every key of the account may delete it.",
    response: {
      status: 200,
      description: "The webhook was deleted.",
      schema: describeObject({ message: { type: "string" } }),
      example: { message: "The webhook was deleted." },
    },
    errors: [404],
  },
  rotateSecret: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/rotate",
    tag: "Webhooks",
    summary: "Get a new secret",
    description:
      "The old secret signs until the cut-over, so that you can install the new one first. Only the API key that owns the webhook, or a key that may act for it, may rotate the secret.",
    body: {
      isOptional: true,
      properties: {
        overlap_seconds: {
          type: "integer",
          minimum: 0,
          maximum: 604_800,
          default: 86_400,
          description: "How long the old secret still signs.",
        },
      },
      example: { overlap_seconds: 3600 },
    },
    response: {
      status: 200,
      description: "The new secret. Only this response contains it.",
      schema: describeObject({
        secret: secretRef,
        rotatesAt: describeTime("When the new secret begins to sign."),
      }),
      example: { secret: EXAMPLE_SECRET, rotatesAt: "2026-03-01T13:00:00.000Z" },
    },
    errors: [...BODY_ERRORS, 403, 404],
  },
  finishRotation: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/rotate/finish",
    tag: "Webhooks",
    summary: "Sign with the new secret now",
    description:
      "Ends a rotation before its cut-over: from now on, only the new secret signs. Send it once your endpoint accepts the new secret. It changes nothing if no rotation is in progress. Only the API key that owns the webhook, or a key that may act for it, may finish the rotation.",
    response: {
      status: 200,
      description: "Only the new secret signs.",
      schema: describeObject({ message: { type: "string" } }),
      example: { message: "Only the new secret signs from now on." },
    },
    errors: [403, 404],
  },
} as const satisfies { readonly [operationId: string]: Operation };
