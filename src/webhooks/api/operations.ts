/** What the registration API takes and answers, one entry for each row of its route table, and every code of its errors. Plain data. */

import type { JsonObject } from "../../schema/types.js";
import { MAX_EVENT_TYPES } from "../event-types/subscription.js";

/** By status, every code that an error answer of it can carry. */
export const errorCodes = {
  400: [
    "invalid_json",
    "invalid_request",
    "invalid_argument",
    "invalid_url",
    "unknown_event_type",
    "request_aborted",
  ],
  401: ["unauthorized"],
  403: ["webhook_owned_by_another_key"],
  404: ["not_found"],
  405: ["method_not_allowed"],
  408: ["request_timeout"],
  409: [
    "webhook_limit_reached",
    "idempotency_key_reused",
    "webhook_deleted",
    "secret_rotated",
    "webhook_disabled",
    "resend_limit_reached",
  ],
  413: ["body_too_large"],
  415: ["unsupported_media_type"],
  429: ["rate_limited"],
  500: ["raw_body_unavailable"],
  503: ["unavailable"],
} as const satisfies { readonly [status: number]: readonly string[] };

export type ErrorStatus = keyof typeof errorCodes;

/** A JSON object. What is `readOnly` in it may be sent back as it was received, and is ignored. */
export interface BodySchema {
  readonly description?: string;
  readonly required?: readonly string[];
  /** No body stands for one without fields. */
  readonly isOptional?: true;
  readonly properties: { readonly [name: string]: JsonObject };
  readonly example: JsonObject;
}

export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** As in the route table. */
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** Anybody may call it, without a key. */
  readonly isPublic?: true;
  /** OpenAPI parameter objects, but for those of the path. */
  readonly parameters?: readonly JsonObject[];
  readonly body?: BodySchema;
  readonly answer: {
    readonly status: number;
    readonly description: string;
    readonly schema: JsonObject;
    readonly example?: JsonObject;
    /** OpenAPI header objects, or references to them. */
    readonly headers?: JsonObject;
  };
  /** Those that only some operations answer; 401, 429 and 503 every one does that takes a key. */
  readonly errors: readonly ErrorStatus[];
}

export const tags = {
  Webhooks: "The endpoints that an account has registered.",
  Deliveries: "What was sent to an endpoint, when and how it answered; and sending again.",
  Interface: "What the interface says of itself.",
} as const;

export type Tag = keyof typeof tags;

const READ_BODY = [400, 408, 413, 415, 500] as const;

const webhook: JsonObject = { $ref: "#/components/schemas/Webhook" };

export const EXAMPLE_WEBHOOK = {
  id: "5e0f4f6e-7f0b-4a8e-9d5e-3d3f0c1f2a10",
  status: "ENABLED",
  url: "https://subscriber.example/hooks",
  createdDate: "2026-03-01T12:00:00.000Z",
  updatedDate: "2026-03-01T12:00:00.000Z",
} as const;

export const EXAMPLE_SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/** The largest value of each argument. */
export const TEXT_LENGTHS = {
  /** A browser takes no longer one; `judgeUrl` refuses it before it is parsed. */
  url: 2_048,
  /** ISO 8601 with milliseconds and an offset has 29 characters. */
  time: 64,
  /** A page's `next` is far shorter in every storage. */
  cursor: 256,
  /** A UUID, and two with a serial number. */
  id: 100,
  header: 8_192,
} as const;

const url: JsonObject = {
  type: "string",
  maxLength: TEXT_LENGTHS.url,
  description: "The address of the endpoint: absolute, HTTPS.",
};

const eventTypes: JsonObject = {
  type: "array",
  description:
    "The event types it is sent: names, `prefix.*` or `*`. Without it: every type, also future ones.",
  minItems: 1,
  maxItems: MAX_EVENT_TYPES,
  uniqueItems: true,
  items: { $ref: "#/components/schemas/EventTypePattern" },
};

const status: JsonObject = { type: "string", enum: ["ENABLED", "DISABLED"] };

const limit: JsonObject = {
  name: "limit",
  in: "query",
  description: "The most there are on a page.",
  schema: { type: "integer", minimum: 1, maximum: 100, default: 50 },
};

const cursor: JsonObject = {
  name: "cursor",
  in: "query",
  description: "`next` of the page before.",
  schema: { type: "string", maxLength: TEXT_LENGTHS.cursor },
};

/** `next` of a page. */
const next: JsonObject = {
  type: ["string", "null"],
  description: "The cursor of the next page; null on the last one.",
};

const object = (properties: { readonly [name: string]: JsonObject }): JsonObject => ({
  type: "object",
  required: Object.keys(properties),
  properties,
  additionalProperties: false,
});

const delivery: JsonObject = { $ref: "#/components/schemas/Delivery" };

const id: JsonObject = { type: "string", description: "The id of the delivery that will be attempted." };

const DELIVERY_ID = `${EXAMPLE_WEBHOOK.id}.0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21`;

const time = (description: string): JsonObject => ({ type: "string", format: "date-time", description });

const timeOrNull = (description: string): JsonObject => ({
  type: ["string", "null"],
  format: "date-time",
  description,
});

/** Of an attempt, in the log and in figures. */
const outcome: { readonly [name: string]: JsonObject } = {
  at: time("When it was made."),
  kind: {
    type: "string",
    enum: ["delivered", "http", "dns", "connect", "tls", "timeout", "refused"],
    description:
      "`delivered`, or what went wrong: `http` is a status other than 2xx, `dns` a host name without an address that may be used, `refused` a URL that is not allowed.",
  },
  status: {
    type: ["integer", "null"],
    description: "The HTTP status of the answer; null where there was none.",
  },
  code: {
    type: "string",
    description: "A short stable word for it: `HTTP_500`, `ECONNREFUSED`, `NO_USABLE_ADDRESS`.",
  },
};

export const EXAMPLE_ATTEMPT = {
  at: "2026-03-01T12:00:00.500Z",
  kind: "http",
  status: 500,
  code: "HTTP_500",
} as const;

const orNull = (schema: JsonObject): JsonObject => ({ anyOf: [schema, { type: "null" }] });

const DELIVERY_FIELDS: { readonly [name: string]: JsonObject } = {
  id: { type: "string" },
  webhookId: { type: "string", format: "uuid" },
  eventId: { type: "string", format: "uuid", description: "`id` of the notification." },
  type: { type: "string", description: "The event type; `webhook.test` for a test." },
  state: { $ref: "#/components/schemas/DeliveryState" },
  reason: {
    type: ["string", "null"],
    enum: [
      "exhausted",
      "disabled",
      "access_denied",
      "access_unknown",
      "crashed",
      "payload_unreadable",
      "payload_missing",
      "record_unreadable",
      null,
    ],
    description: "Why it ended undelivered; else null.",
  },
  createdAt: time("When the event was taken, or the delivery made again."),
  startedAt: timeOrNull("From when the schedule counts; null before the first attempt."),
  nextAttemptAt: timeOrNull("When the next attempt is due; null once it has ended."),
  endedAt: timeOrNull("When it was delivered or given up; null while it is pending."),
};

const EXAMPLE_DELIVERY = {
  id: DELIVERY_ID,
  webhookId: EXAMPLE_WEBHOOK.id,
  eventId: "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21",
  type: "patient.updated",
  state: "pending",
  reason: null,
  createdAt: "2026-03-01T12:00:00.000Z",
  startedAt: "2026-03-01T12:00:00.000Z",
  nextAttemptAt: "2026-03-01T12:15:20.000Z",
  endedAt: null,
} as const;

/** Schemas that several operations refer to. */
export const deliverySchemas: { readonly [name: string]: JsonObject } = {
  DeliveryState: { type: "string", enum: ["pending", "delivered", "failed", "withheld"] },
  Outcome: object(outcome),
  Delivery: object({
    ...DELIVERY_FIELDS,
    attempts: {
      type: "array",
      description: "In the order they were made.",
      items: object({
        ...outcome,
        durationMs: { type: "integer", minimum: 0 },
        step: { type: "integer", minimum: 0, description: "The step of the schedule, from 0." },
        isExtra: { type: "boolean", description: "It was asked for beside the schedule." },
        excerpt: {
          type: ["string", "null"],
          description:
            "The first characters of the answer to a failed attempt, where the service keeps them. Shown to the API key that owns the webhook, or one that the service lets act for it.",
        },
      }),
    },
  }),
  DeliveryRow: object({
    ...DELIVERY_FIELDS,
    attemptCount: { type: "integer", minimum: 0 },
    lastAttempt: orNull({ $ref: "#/components/schemas/Outcome" }),
  }),
};

/** By operation id. */
export const operations = {
  createWebhook: {
    method: "POST",
    path: "/v1/webhooks",
    tag: "Webhooks",
    summary: "Register an endpoint",
    description:
      "The webhook is ENABLED at once. The secret that signs its notifications is in this answer and in no other.",
    parameters: [
      {
        name: "Idempotency-Key",
        in: "header",
        description:
          "Makes it safe to repeat the request after an answer was lost: for ten minutes the same key gets the same answer, secret included. Once the webhook is deleted or its secret rotated, the answer is 409 instead.",
        schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
      },
    ],
    body: {
      required: ["url"],
      properties: { url, event_types: eventTypes },
      example: { url: EXAMPLE_WEBHOOK.url, event_types: ["patient.*"] },
    },
    answer: {
      status: 201,
      description: "The webhook and its secret.",
      schema: object({ webhook, secret: { $ref: "#/components/schemas/Secret" } }),
      example: { webhook: EXAMPLE_WEBHOOK, secret: EXAMPLE_SECRET },
      headers: {
        Location: {
          description: "The address of the webhook.",
          required: true,
          schema: { type: "string", format: "uri" },
        },
      },
    },
    errors: [...READ_BODY, 403, 409],
  },
  listWebhooks: {
    method: "GET",
    path: "/v1/webhooks",
    tag: "Webhooks",
    summary: "List the account's webhooks",
    description: "Oldest first.",
    parameters: [limit, cursor],
    answer: {
      status: 200,
      description: "A page of webhooks.",
      schema: object({ webhooks: { type: "array", items: webhook }, next }),
      example: { webhooks: [EXAMPLE_WEBHOOK], next: null },
    },
    errors: [400],
  },
  readWebhook: {
    method: "GET",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Read a webhook",
    answer: { status: 200, description: "The webhook.", schema: webhook, example: EXAMPLE_WEBHOOK },
    errors: [404],
  },
  updateWebhook: {
    method: "PUT",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Change, enable or disable a webhook",
    description:
      "What is pending goes to the new address. A new address, or enabling it again, gives the endpoint a clean record. While it is DISABLED, due attempts are skipped and new events make no delivery. Only the API key that owns the webhook, or one that the service lets act for it, may change its address or event types, or enable it; every key of the account may disable it.",
    body: {
      required: ["url", "status"],
      properties: {
        url,
        status,
        event_types: {
          ...eventTypes,
          description: "As when it was registered. Without it they stay as they are.",
        },
        id: { type: "string", readOnly: true },
        createdDate: { type: "string", readOnly: true },
        updatedDate: { type: "string", readOnly: true },
      },
      example: { url: EXAMPLE_WEBHOOK.url, status: "DISABLED" },
    },
    answer: {
      status: 200,
      description: "The webhook as it is now.",
      schema: webhook,
      example: { ...EXAMPLE_WEBHOOK, status: "DISABLED", updatedDate: "2026-03-02T08:30:00.000Z" },
    },
    errors: [...READ_BODY, 403, 404, 409],
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Delete a webhook",
    description: "With all its deliveries: nothing more is sent. Every key of the account may delete it.",
    answer: {
      status: 200,
      description: "It was deleted.",
      schema: object({ message: { type: "string" } }),
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
      "The old one goes on signing until the cut-over, so that the new one can be put in place first. Only the API key that owns the webhook, or one that the service lets act for it, may ask for it.",
    body: {
      isOptional: true,
      properties: {
        overlap_seconds: {
          type: "integer",
          minimum: 0,
          maximum: 604_800,
          default: 86_400,
          description: "How long the old secret goes on signing.",
        },
      },
      example: { overlap_seconds: 3600 },
    },
    answer: {
      status: 200,
      description: "The new secret, in this answer and in no other.",
      schema: object({
        secret: { $ref: "#/components/schemas/Secret" },
        rotatesAt: time("From when on it signs."),
      }),
      example: { secret: EXAMPLE_SECRET, rotatesAt: "2026-03-01T13:00:00.000Z" },
    },
    errors: [...READ_BODY, 403, 404],
  },
  readStats: {
    method: "GET",
    path: "/v1/webhooks/:webhookId/stats",
    tag: "Deliveries",
    summary: "Read the figures and the health of a webhook",
    answer: {
      status: 200,
      description: "Deliveries by state, of those that are kept, and how the endpoint is.",
      schema: object({
        pending: { type: "integer", minimum: 0 },
        delivered: { type: "integer", minimum: 0 },
        failed: { type: "integer", minimum: 0 },
        withheld: { type: "integer", minimum: 0 },
        health: object({
          status: { type: "string", enum: ["ok", "failing", "warned", "disabled"] },
          failingSince: timeOrNull("The first failure after which nothing was delivered."),
          warnAt: timeOrNull("When the host is told if it goes on."),
          disableAt: timeOrNull("When the webhook is disabled if it goes on."),
        }),
        nextAttemptAt: timeOrNull("When the next attempt is due; in the past where it waits for its turn."),
        lastAttempt: orNull({ $ref: "#/components/schemas/Outcome" }),
      }),
      example: {
        ...{ pending: 2, delivered: 340, failed: 0, withheld: 1 },
        health: {
          status: "failing",
          failingSince: "2026-03-01T12:00:00.500Z",
          warnAt: "2026-03-04T12:00:00.500Z",
          disableAt: "2026-03-05T12:00:00.500Z",
        },
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
      "Newest first, without their attempts. A page may hold fewer deliveries than `limit`, or none, while `next` is given: read on until `next` is null.",
    parameters: [
      { name: "state", in: "query", schema: { $ref: "#/components/schemas/DeliveryState" } },
      {
        name: "type",
        in: "query",
        description: "An event type, or `webhook.test`.",
        schema: { anyOf: [{ $ref: "#/components/schemas/EventType" }, { const: "webhook.test" }] },
      },
      {
        name: "since",
        in: "query",
        description: "Those created then or later: ISO 8601 with its offset.",
        schema: { type: "string", format: "date-time", maxLength: TEXT_LENGTHS.time },
      },
      {
        name: "until",
        in: "query",
        description: "Those created earlier: ISO 8601 with its offset.",
        schema: { type: "string", format: "date-time", maxLength: TEXT_LENGTHS.time },
      },
      limit,
      cursor,
    ],
    answer: {
      status: 200,
      description: "A page of deliveries.",
      schema: object({
        deliveries: { type: "array", items: { $ref: "#/components/schemas/DeliveryRow" } },
        next,
      }),
      example: {
        deliveries: [{ ...EXAMPLE_DELIVERY, attemptCount: 1, lastAttempt: EXAMPLE_ATTEMPT }],
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
    answer: {
      status: 200,
      description: "The delivery.",
      schema: delivery,
      example: {
        ...EXAMPLE_DELIVERY,
        attempts: [{ ...EXAMPLE_ATTEMPT, durationMs: 120, step: 0, isExtra: false, excerpt: null }],
      },
    },
    errors: [404],
  },
  resendDelivery: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/deliveries/:deliveryId/resend",
    tag: "Deliveries",
    summary: "Attempt a delivery once more, now",
    description:
      "A pending one keeps its schedule; of an ended one a new delivery of the same event is made, with a schedule of its own. Only the API key that owns the webhook, or one that the service lets act for it, may ask for it.",
    answer: {
      status: 202,
      description: "It will be attempted.",
      schema: object({ id }),
      example: { id: DELIVERY_ID },
    },
    errors: [403, 404, 409],
  },
  recoverDeliveries: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/recover",
    tag: "Deliveries",
    summary: "Deliver what was missed",
    description:
      "Makes deliveries of all kept events since then, or since the webhook was registered, that it subscribes to and did not get. They are sent one after another, the oldest first. Asking again changes nothing. 429 once the recoveries of the account have examined too many events in a minute. Only the API key that owns the webhook, or one that the service lets act for it, may ask for it.",
    body: {
      required: ["since"],
      properties: { since: { ...time("ISO 8601 with its offset."), maxLength: TEXT_LENGTHS.time } },
      example: { since: "2026-03-01T00:00:00Z" },
    },
    answer: {
      status: 202,
      description: "They will be sent.",
      schema: object({ count: { type: "integer", minimum: 0, description: "How many were made." } }),
      example: { count: 12 },
    },
    errors: [...READ_BODY, 403, 404, 409],
  },
  testWebhook: {
    method: "POST",
    path: "/v1/webhooks/:webhookId/test",
    tag: "Deliveries",
    summary: "Send a test event",
    description:
      "To this webhook alone, signed and logged like any other, attempted once. It is about an OperationOutcome, never about a record. Only the API key that owns the webhook, or one that the service lets act for it, may ask for it.",
    body: {
      isOptional: true,
      properties: {
        event_type: {
          $ref: "#/components/schemas/EventType",
          description: "What the notification shall call itself. Default: `webhook.test`.",
        },
      },
      example: {},
    },
    answer: {
      status: 202,
      description: "It will be sent.",
      schema: object({ id }),
      example: { id: DELIVERY_ID },
    },
    errors: [...READ_BODY, 403, 404, 409],
  },
  listEventTypes: {
    method: "GET",
    path: "/v1/event-types",
    tag: "Interface",
    summary: "List the event types",
    answer: {
      status: 200,
      description: "The names that a webhook can subscribe to, sorted.",
      schema: object({ eventTypes: { type: "array", items: { $ref: "#/components/schemas/EventType" } } }),
    },
    errors: [],
  },
  readOpenApi: {
    method: "GET",
    path: "/v1/openapi.json",
    tag: "Interface",
    summary: "Read this document",
    isPublic: true,
    parameters: [
      {
        name: "If-None-Match",
        in: "header",
        description:
          "The `ETag` of the document that is known already: while it is current, the answer is 304.",
        schema: { type: "string", maxLength: 8_192 },
      },
    ],
    answer: {
      status: 200,
      description: "An OpenAPI 3.1 document.",
      schema: {
        type: "object",
        required: ["openapi", "info", "paths"],
        properties: {
          openapi: { type: "string", pattern: "^3\\.1\\." },
          info: { type: "object" },
          paths: { type: "object" },
        },
      },
      headers: {
        ETag: {
          description: "Names this version.",
          required: true,
          schema: { type: "string", maxLength: TEXT_LENGTHS.header },
        },
      },
    },
    errors: [],
  },
} as const satisfies { readonly [operationId: string]: Operation };
