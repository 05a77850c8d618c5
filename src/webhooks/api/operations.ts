/**
 * The table of all operations, which the router and the OpenAPI document read, and its rows that
 * describe the interface itself.
 */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { isPostbellError } from "../../core/errors.js";
import { isMatch } from "../../http/entity-tag.js";
import { JSON_CONTENT_TYPE } from "../../http/json-response.js";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import { MAX_SIGNING_KEYS } from "../../signature/asymmetric.js";
import { notFound, TEXT_LENGTHS } from "../call-arguments.js";
import type { WebhooksConfig } from "../config/config.js";
import { type Catalogue, isPlain } from "../event-types/catalogue.js";
import { parseInclude, parsePage, toJsonResponse } from "./api-request.js";
import { deliveryOperations } from "./delivery-operations.js";
import { describeSettings } from "./endpoint-settings.js";
import { feedOperations } from "./feed-operations.js";
import { logOperations } from "./log-operations.js";
import type { ApiService, Operation, Operations, PublicDocument } from "./operation.js";
import { registrationOperations } from "./registration-operations.js";
import {
  cursorParameter,
  describeObject,
  describeTime,
  EXAMPLE_WEBHOOK,
  eventTypeRef,
  limitParameter,
  nextCursor,
} from "./schemas.js";

/** Clients validate the document before each use: it depends on the mounted version. */
const VALIDATED = "public, no-cache";
/** So receivers need not request the keys for each delivery. `signature.ed25519` documents it. */
const KEPT_FOR_AN_HOUR = "public, max-age=3600";

const ifNoneMatch: JsonObject = {
  name: "If-None-Match",
  in: "header",
  description: "The `ETag` of the document that the client has. If it is current, the response is 304.",
  schema: { type: "string", maxLength: 8_192 },
};

const documentHeaders: JsonObject = {
  ETag: {
    description: "The version of the document.",
    required: true,
    schema: { type: "string", maxLength: TEXT_LENGTHS.header },
  },
};

function toDocumentResponse(
  request: HttpRequest,
  { body, etag }: PublicDocument,
  cacheControl: string,
): HttpResponse {
  const headers = {
    "cache-control": cacheControl,
    "access-control-allow-origin": "*",
    "x-content-type-options": "nosniff",
    etag,
  };
  if (isMatch(request.headers["if-none-match"], etag)) return { status: 304, headers, body: null };
  return { status: 200, headers: { "content-type": JSON_CONTENT_TYPE, ...headers }, body };
}

/** Describes an event type to subscribers. */
function describeEventType(type: string, { types }: Catalogue) {
  const entry = types.get(type) ?? [];
  const { description = null, jsonSchema: schema = null } = isPlain(entry) ? entry : {};
  return { type, description, resourceTypes: isPlain(entry) ? null : entry, schema };
}

const eventTypeDetails: JsonObject = {
  type: "array",
  items: describeObject({
    type: eventTypeRef,
    description: { type: ["string", "null"] },
    resourceTypes: {
      type: ["array", "null"],
      items: { type: "string" },
      description: "The resource types of the record; null for events without a FHIR resource.",
    },
    schema: { type: ["object", "null"], description: "A JSON Schema of `data`." },
  }),
};

const auditEntry: JsonObject = {
  type: "object",
  required: ["at", "action", "actor", "webhookId"],
  properties: {
    at: describeTime("When it was done."),
    action: {
      type: "string",
      description: "`webhook.created`, `webhook.changed`, `delivery.failed` … New actions may be added.",
    },
    actor: {
      type: "object",
      required: ["type"],
      properties: {
        type: { type: "string", enum: ["host", "key", "operator", "service"] },
        id: { type: "string", description: "The id of an API key. It is not the key." },
        name: { type: "string", description: "The name of an operator." },
      },
    },
    webhookId: { type: "string", format: "uuid" },
    deliveryId: { type: "string" },
    eventId: { type: "string", format: "uuid" },
    fields: { type: "array", items: { type: "string" }, description: "The names of the changed fields." },
    reason: { type: "string", description: "Why a delivery failed or was withheld." },
    count: { type: "integer", description: "The number of recovered deliveries." },
  },
};

const interfaceOperations: Operations = {
  listEventTypes: {
    method: "GET",
    path: "/v1/event-types",
    tag: "Interface",
    summary: "List the event types",
    parameters: [
      {
        name: "include",
        in: "query",
        description: "`details` adds the description and the schema of each event type.",
        schema: { const: "details" },
      },
    ],
    response: {
      status: 200,
      description: "The names that a webhook can subscribe to, sorted.",
      schema: {
        ...describeObject({ eventTypes: { type: "array", items: eventTypeRef } }),
        properties: {
          eventTypes: { type: "array", items: eventTypeRef },
          details: { ...eventTypeDetails, description: "Only with `include=details`." },
        },
      },
    },
    errors: [400],
    async handle({ request }, { catalogue }) {
      const { details } = parseInclude(new URLSearchParams(request.query), ["details"]);
      const { names: eventTypes } = catalogue;
      const described = eventTypes.map((type) => describeEventType(type, catalogue));
      return toJsonResponse(200, { eventTypes, ...(details && { details: described }) });
    },
  },
  readSample: {
    method: "GET",
    path: "/v1/event-types/:type/sample",
    tag: "Interface",
    summary: "Read a sample notification",
    description:
      "The body that a test of this event type sends: a valid resource tagged as test data (`HTEST`), or data with `test: true`. Ids and times are examples.",
    response: {
      status: 200,
      description: "The body of a notification.",
      schema: { type: "object" },
    },
    errors: [404],
    async handle({ parameter, webhooks }) {
      const sample = webhooks.deliveries.sample({ type: parameter("type") });
      const body = await sample.catch((error: unknown) => {
        throw isPostbellError(error, "unknown_event_type") ? notFound("event type") : error;
      });
      return toJsonResponse(200, body);
    },
  },
  listAuditEntries: {
    method: "GET",
    path: "/v1/audit",
    tag: "Webhooks",
    summary: "List what was done to the account's webhooks",
    description:
      "Newest first. The service keeps a limited number of entries, and an entry may be missing after an outage.",
    isOffered: ({ limits }) => limits.auditEntries > 0,
    parameters: [limitParameter, cursorParameter],
    response: {
      status: 200,
      description: "A page of entries.",
      schema: describeObject({ entries: { type: "array", items: auditEntry }, next: nextCursor }),
      example: {
        entries: [
          {
            at: EXAMPLE_WEBHOOK.updatedDate,
            action: "webhook.changed",
            actor: { type: "key", id: "key-1" },
            webhookId: EXAMPLE_WEBHOOK.id,
            fields: ["url"],
          },
        ],
        next: null,
      },
    },
    errors: [400],
    async handle({ request, webhooks }) {
      const { items, next } = await webhooks.audit.list(parsePage(new URLSearchParams(request.query)));
      // Without the account, as the other records: it is the caller's.
      const entries = items.map((entry) => ({ ...entry, account: undefined }));
      return toJsonResponse(200, { entries, next });
    },
  },
  readOpenApi: {
    method: "GET",
    path: "/v1/openapi.json",
    tag: "Interface",
    summary: "Read this document",
    isPublic: true,
    parameters: [ifNoneMatch],
    response: {
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
      headers: documentHeaders,
    },
    errors: [],
    handle: async (request, { getDocument }) =>
      toDocumentResponse(request, getDocument(request.baseUrl), VALIDATED),
  },
};

const word = (value: string): JsonObject => ({ type: "string", const: value });
const bytes32: JsonObject = { type: "string", pattern: "^[A-Za-z0-9_-]{43}$" };

const keyOperations: Operations = {
  readPublicKeys: {
    method: "GET",
    path: "/v1/jwks.json",
    tag: "Interface",
    summary: "Read the public keys of the signatures",
    description:
      "A JSON Web Key Set with the Ed25519 keys of the `v1a` signatures. Any of them may have signed a notification. It may be cached for an hour.",
    isPublic: true,
    isOffered: ({ signature }) => signature.ed25519.length > 0,
    parameters: [ifNoneMatch],
    response: {
      status: 200,
      description: "The key that signs, then those that signed before or will sign next.",
      schema: describeObject({
        keys: {
          type: "array",
          minItems: 1,
          maxItems: MAX_SIGNING_KEYS,
          items: describeObject({
            kty: word("OKP"),
            crv: word("Ed25519"),
            x: { ...bytes32, description: "The key in base64url." },
            kid: { ...bytes32, description: "The thumbprint of the key (RFC 7638)." },
            use: word("sig"),
            alg: word("EdDSA"),
          }),
        },
      }),
      headers: documentHeaders,
    },
    errors: [],
    handle: async (request, { keySet }) => toDocumentResponse(request, keySet, KEPT_FOR_AN_HOUR),
  },
};

/** By operation id, in the order of the OpenAPI document. */
const operations: Operations = {
  ...registrationOperations,
  ...deliveryOperations,
  ...logOperations,
  ...feedOperations,
  ...interfaceOperations,
  ...keyOperations,
};

/** Returns the operations of a service with these options, with their ids. */
export const listOperations = (config: WebhooksConfig): [operationId: string, Operation][] =>
  Object.entries(operations)
    .filter(([, { isOffered }]) => isOffered?.(config) ?? true)
    .map(([id, operation]) => [id, addSettings(operation, config)]);

/** Adds the settings of endpoints that the service offers to the body of an operation. */
function addSettings(operation: Operation, { registrations }: WebhooksConfig): Operation {
  const { body } = operation;
  if (body?.takesSettings !== true) return operation;
  const properties = { ...body.properties, ...describeSettings(registrations) };
  return { ...operation, body: { ...body, properties } };
}

const toDocument = (content: object): PublicDocument => {
  const body = JSON.stringify(content);
  return { body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"` };
};

export const buildKeySet = ({ signature }: WebhooksConfig): PublicDocument =>
  toDocument({ keys: signature.ed25519.map(({ jwk }) => jwk) });

/** The number of cached texts, by base URL. Clients choose the base URL with the `Host` header. */
const MAX_CACHED_TEXTS = 16;

/** Returns a function that gives the text of the document at a base URL, with its validator. */
export function cacheDocumentTexts(openApi: (baseUrl: string) => JsonObject): ApiService["getDocument"] {
  const texts = new LRUCache<string, PublicDocument>({ max: MAX_CACHED_TEXTS });
  return (baseUrl) => {
    const text = texts.get(baseUrl) ?? toDocument(openApi(baseUrl));
    texts.set(baseUrl, text);
    return text;
  };
}
