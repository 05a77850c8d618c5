/** What the registration API takes and answers, one entry for each row of its route table, and every code of its errors. Plain data. */

import type { JsonObject } from "../schema/types.js";

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
  404: ["not_found"],
  405: ["method_not_allowed"],
  408: ["request_timeout"],
  409: ["webhook_limit_reached", "idempotency_key_reused"],
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

const url: JsonObject = { type: "string", description: "The address of the endpoint: absolute, HTTPS." };

const eventTypes: JsonObject = {
  type: "array",
  description:
    "The event types it is sent: names, `prefix.*` or `*`. Without it: every type, also future ones.",
  minItems: 1,
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
  schema: { type: "string" },
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
          "Makes it safe to repeat the request after an answer was lost: for ten minutes the same key gets the same answer, secret included.",
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
    errors: [...READ_BODY, 409],
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
      "What is pending goes to the new address. A new address, or enabling it again, gives the endpoint a clean record. While it is DISABLED, due attempts are skipped and new events make no delivery.",
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
    errors: [...READ_BODY, 404, 409],
  },
  deleteWebhook: {
    method: "DELETE",
    path: "/v1/webhooks/:webhookId",
    tag: "Webhooks",
    summary: "Delete a webhook",
    description: "With all its deliveries: nothing more is sent.",
    answer: {
      status: 200,
      description: "It was deleted.",
      schema: object({ message: { type: "string" } }),
      example: { message: "The webhook was deleted." },
    },
    errors: [404],
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
        schema: { type: "string" },
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
      headers: { ETag: { description: "Names this version.", required: true, schema: { type: "string" } } },
    },
    errors: [],
  },
} as const satisfies { readonly [operationId: string]: Operation };
