/**
 * The shapes of the registration API: its JSON Schemas, the parameters and headers that operations
 * share, and the example values. Plain data.
 */

import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { DETAIL_BOUNDS, LINE_PATTERN, TEXT_LENGTHS } from "../call-arguments.js";
import { apiErrors } from "./operation.js";

/** A closed object; every property is required. */
export const describeObject = (properties: { [name: string]: JsonObject }): JsonObject => ({
  type: "object",
  required: Object.keys(properties),
  properties,
  additionalProperties: false,
});

export const describeTime = (description: string): JsonObject => ({
  type: "string",
  format: "date-time",
  description,
});

const describeTimeOrNull = (description: string): JsonObject => ({
  type: ["string", "null"],
  format: "date-time",
  description,
});

const orNull = (schema: JsonObject): JsonObject => ({ anyOf: [schema, { type: "null" }] });

export const webhookRef = componentRef("schemas", "Webhook");
export const secretRef = componentRef("schemas", "Secret");
export const deliveryRef = componentRef("schemas", "Delivery");
export const eventTypeRef = componentRef("schemas", "EventType");

export const limitParameter: JsonObject = {
  name: "limit",
  in: "query",
  description: "The maximum number of items on a page.",
  schema: { type: "integer", minimum: 1, maximum: 100, default: 50 },
};

export const cursorParameter: JsonObject = {
  name: "cursor",
  in: "query",
  description: "`next` of the previous page.",
  schema: { type: "string", maxLength: TEXT_LENGTHS.cursor },
};

export const nextCursor: JsonObject = {
  type: ["string", "null"],
  description: "The cursor of the next page; null on the last one.",
};

// Examples.

export const EXAMPLE_WEBHOOK = {
  id: "5e0f4f6e-7f0b-4a8e-9d5e-3d3f0c1f2a10",
  status: "ENABLED",
  url: "https://subscriber.example/hooks",
  createdDate: "2026-03-01T12:00:00.000Z",
  updatedDate: "2026-03-01T12:00:00.000Z",
} as const;

export const EXAMPLE_SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

export const EXAMPLE_DELIVERY_ID = `${EXAMPLE_WEBHOOK.id}.0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21`;

export const EXAMPLE_ATTEMPT = {
  at: "2026-03-01T12:00:00.500Z",
  kind: "http",
  status: 500,
  code: "HTTP_500",
} as const;

export const EXAMPLE_DELIVERY = {
  id: EXAMPLE_DELIVERY_ID,
  webhookId: EXAMPLE_WEBHOOK.id,
  eventId: "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21",
  type: "patient.updated",
  subject: "Patient/123",
  tags: [],
  state: "pending",
  reason: null,
  createdAt: "2026-03-01T12:00:00.000Z",
  startedAt: "2026-03-01T12:00:00.000Z",
  nextAttemptAt: "2026-03-01T12:15:20.000Z",
  endedAt: null,
} as const;

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

/** The fields of a request that name a webhook for people and programs. */
export const detailSchemas: { [name: string]: JsonObject } = {
  description: {
    type: ["string", "null"],
    minLength: 1,
    maxLength: DETAIL_BOUNDS.description,
    pattern: LINE_PATTERN,
    description: "A name for people, in one line. Null removes it.",
  },
  metadata: {
    type: ["object", "null"],
    maxProperties: DETAIL_BOUNDS.metadataKeys,
    propertyNames: { pattern: `^(?!__proto__$)[A-Za-z0-9_.-]{1,${DETAIL_BOUNDS.metadataKey}}$` },
    additionalProperties: {
      type: "string",
      maxLength: DETAIL_BOUNDS.metadataValue,
      pattern: LINE_PATTERN,
    },
    description: "Texts by name. They replace all metadata; null removes it.",
  },
};

/** The schemas of webhooks and of errors, by component name. */
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
      description: {
        type: ["string", "null"],
        description: "Only with `include=details`: a name for people.",
      },
      metadata: {
        type: ["object", "null"],
        additionalProperties: { type: "string" },
        description: "Only with `include=details`: texts by name.",
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
          code: {
            type: "string",
            description: "For programs.",
            enum: Object.values(apiErrors).flatMap(({ codes }) => codes),
          },
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
};

/** The result of an attempt, in the log and in the statistics. */
const attemptResult: { [name: string]: JsonObject } = {
  at: describeTime("When the attempt began."),
  kind: {
    type: "string",
    enum: ["delivered", "http", "dns", "connect", "tls", "timeout", "refused"],
    description:
      "`delivered`, or the kind of failure. `http`: a status other than 2xx. `dns`: the host name has no usable address. `refused`: the URL is not allowed.",
  },
  status: {
    type: ["integer", "null"],
    description: "The HTTP status of the response; null if nothing was received.",
  },
  code: {
    type: "string",
    description: "A short stable code: `HTTP_500`, `ECONNREFUSED`, `NO_USABLE_ADDRESS`.",
  },
};

const DELIVERY_FIELDS: { [name: string]: JsonObject } = {
  id: { type: "string" },
  webhookId: { type: "string", format: "uuid" },
  eventId: { type: "string", format: "uuid", description: "`id` of the notification." },
  type: { type: "string", description: "The event type; `webhook.test` for a test." },
  subject: {
    type: ["string", "null"],
    description:
      "The reference of the event's own record, `Patient/123`, or the subject that the sender gave it. Null if it has none, before the first attempt, for tests and withheld deliveries, and for API keys that may not manage the webhook.",
  },
  tags: {
    type: "array",
    items: { type: "string" },
    description: "The tags that the sender gave the event; empty whenever `subject` would be hidden.",
  },
  state: componentRef("schemas", "DeliveryState"),
  reason: {
    type: ["string", "null"],
    enum: [
      "exhausted",
      "test_failed",
      "disabled",
      "access_denied",
      "access_unknown",
      "crashed",
      "payload_unreadable",
      "payload_missing",
      "record_unreadable",
      "key_erased",
      null,
    ],
    description: "Why the delivery ended without success; otherwise null.",
  },
  createdAt: describeTime("When the delivery was created."),
  startedAt: describeTimeOrNull(
    "When the first attempt began, moved by outages of the DNS; null before it. The schedule starts here.",
  ),
  nextAttemptAt: describeTimeOrNull("When the next attempt is due; null once the delivery has completed."),
  endedAt: describeTimeOrNull("When the delivery completed; null while it is pending."),
};

const durationMs: JsonObject = { type: "integer", minimum: 0 };

const attempts: JsonObject = {
  type: "array",
  description: "In chronological order.",
  items: describeObject({
    ...attemptResult,
    durationMs,
    step: { type: "integer", minimum: 0, description: "The step of the schedule, from 0." },
    isExtra: { type: "boolean", description: "True for an attempt outside the schedule." },
    excerpt: {
      type: ["string", "null"],
      description:
        "The beginning of the response to a failed attempt, if the service stores it. Only the API key that owns the webhook, or a key that may act for it, sees it.",
    },
  }),
};

const describeQuantile = (attempts: string): JsonObject => ({
  type: ["integer", "null"],
  minimum: 0,
  description: `The milliseconds that ${attempts} took at most, 5 % more or less; null if it was not measured.`,
});

/** The schemas of deliveries, by component name. */
export const deliverySchemas: { [name: string]: JsonObject } = {
  DeliveryState: { type: "string", enum: ["pending", "delivered", "failed", "withheld"] },
  Outcome: describeObject(attemptResult),
  Stats: describeObject({
    pending: { type: "integer", minimum: 0 },
    delivered: { type: "integer", minimum: 0 },
    failed: { type: "integer", minimum: 0, description: "Failed tests do not count." },
    withheld: { type: "integer", minimum: 0 },
    lastDay: describeObject({
      attempts: {
        type: "integer",
        minimum: 0,
        description: "The attempts of the last 24 hours, to the hour. Failed tests do not count.",
      },
      succeeded: { type: "integer", minimum: 0 },
      averageMs: {
        type: ["integer", "null"],
        minimum: 0,
        description: "How long those that succeeded took on average; null if none did.",
      },
    }),
    hours: {
      type: "array",
      maxItems: 72,
      description:
        "The attempts of the last 72 hours, oldest first. An hour without attempts is absent. Failed tests do not count.",
      items: describeObject({
        at: { type: "string", format: "date-time", description: "When the hour began." },
        delivered: { type: "integer", minimum: 0, description: "Attempts that succeeded." },
        failed: { type: "integer", minimum: 0, description: "Attempts that failed." },
        p50: describeQuantile("half of the attempts"),
        p95: describeQuantile("95 of 100 attempts"),
      }),
    },
    eventTypes: orNull({
      type: "array",
      items: componentRef("schemas", "EventTypePattern"),
      description: "The event types that the webhook subscribes to; null for all, also future ones.",
    }),
    health: describeObject({
      status: { type: "string", enum: ["ok", "failing", "warned", "disabled"] },
      failingSince: describeTimeOrNull("The first failure since the last success."),
      warnAt: describeTimeOrNull("When the operator is warned if the failures continue."),
      disableAt: describeTimeOrNull("When the webhook is disabled if the failures continue."),
    }),
    rotatesAt: describeTimeOrNull("When a new secret begins to sign; null without a rotation."),
    nextAttemptAt: describeTimeOrNull(
      "When the next attempt is due; in the past if it waits for a free slot.",
    ),
    lastAttempt: orNull(componentRef("schemas", "Outcome")),
  }),
  Delivery: describeObject({ ...DELIVERY_FIELDS, attempts }),
  DeliveryRow: {
    type: "object",
    required: [...Object.keys(DELIVERY_FIELDS), "attemptCount", "lastAttempt"],
    properties: {
      ...DELIVERY_FIELDS,
      attemptCount: { type: "integer", minimum: 0 },
      lastAttempt: orNull(describeObject({ ...attemptResult, durationMs })),
      attempts: { ...attempts, description: "Only with `include=attempts`, and without excerpts." },
    },
    additionalProperties: false,
  },
};
