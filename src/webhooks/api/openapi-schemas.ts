/**
 * Headers and schemas of webhooks, errors and notifications for the OpenAPI document. Plain data.
 */

import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { TEXT_LENGTHS } from "../text-lengths.js";
import { errorCodes } from "./error-codes.js";
import { EXAMPLE_SECRET, EXAMPLE_WEBHOOK } from "./examples.js";

export const responseHeaders: JsonObject = {
  NoStore: {
    description: "No cache may store the response.",
    required: true,
    schema: { type: "string", const: "no-store" },
  },
  "Retry-After": {
    description: "Seconds after which to try again.",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  "WWW-Authenticate": {
    description: "How to authenticate.",
    required: true,
    schema: { type: "string", const: "Bearer" },
  },
};

export const webhookSchemas: JsonObject = {
  Webhook: {
    type: "object",
    required: ["id", "status", "url", "createdDate", "updatedDate"],
    properties: {
      id: {
        type: "string",
        format: "uuid",
        description: "Also `hub.topic` of the notifications sent to it.",
      },
      status: {
        type: "string",
        enum: ["ENABLED", "DISABLED"],
        description: "The service disables an endpoint that fails for days, after a warning.",
      },
      url: { type: "string", maxLength: TEXT_LENGTHS.url },
      createdDate: { type: "string", format: "date-time" },
      updatedDate: { type: "string", format: "date-time" },
      stats: componentRef("schemas", "Stats"),
      event_types: {
        type: "array",
        items: componentRef("schemas", "EventTypePattern"),
        description: "Only with `include=event_types`. `*` is every type, also future ones.",
      },
    },
    additionalProperties: false,
    examples: [EXAMPLE_WEBHOOK],
  },
  Secret: {
    type: "string",
    pattern: "^whsec_[A-Za-z0-9+/]{43}=$",
    description:
      "The key of the signature: the whole text, including `whsec_`. Store it; it is not shown again.",
    examples: [EXAMPLE_SECRET],
  },
  Error: {
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        required: ["code", "message"],
        properties: {
          code: { type: "string", description: "For programs.", enum: Object.values(errorCodes).flat() },
          message: { type: "string", description: "For people; the wording may change." },
          field: {
            type: "string",
            description: "The property, parameter or header at fault: `event_types[0]`.",
          },
        },
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  Bundle: {
    type: "object",
    description:
      "A FHIR R4 Bundle. The first entry is the record of the event; the resources it references follow, each once. The bundle holds only resources that the API key of the webhook may read.",
    required: ["resourceType", "id", "meta", "type", "entry"],
    properties: {
      resourceType: { type: "string", const: "Bundle" },
      id: { type: "string", format: "uuid" },
      meta: {
        type: "object",
        required: ["lastUpdated"],
        properties: { lastUpdated: { type: "string", format: "date-time" } },
      },
      type: { type: "string", const: "collection" },
      entry: {
        type: "array",
        minItems: 1,
        items: {
          type: "object",
          required: ["fullUrl", "resource"],
          properties: {
            fullUrl: {
              type: "string",
              pattern: "^urn:uuid:[0-9a-f-]{36}$",
              description: "The same in every attempt. References between entries use it.",
            },
            resource: {
              type: "object",
              required: ["resourceType"],
              properties: { resourceType: { type: "string" } },
              additionalProperties: true,
            },
          },
        },
      },
    },
  },
  EventData: {
    type: "object",
    required: ["hub.topic", "hub.event", "context"],
    properties: {
      "hub.topic": { type: "string", format: "uuid", description: "The id of the webhook." },
      "hub.event": componentRef("schemas", "NotifiedType"),
      context: {
        type: "array",
        minItems: 1,
        maxItems: 1,
        items: {
          type: "object",
          required: ["key", "resource"],
          properties: {
            key: { type: "string", description: "The part of the event type before the dot." },
            resource: componentRef("schemas", "Bundle"),
          },
        },
      },
    },
  },
};
