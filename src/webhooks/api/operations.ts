/**
 * The table of all operations, which the router and the OpenAPI document read, and its rows that
 * describe the interface itself.
 */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { isMatch } from "../../http/entity-tag.js";
import { JSON_CONTENT_TYPE } from "../../http/json-response.js";
import type { JsonObject } from "../../schema/types.js";
import { TEXT_LENGTHS } from "../call-arguments.js";
import { toJsonResponse } from "./api-request.js";
import { deliveryOperations } from "./delivery-operations.js";
import { logOperations } from "./log-operations.js";
import type { ApiService, Operations } from "./operation.js";
import { registrationOperations } from "./registration-operations.js";
import { describeObject, eventTypeRef } from "./schemas.js";

const DOCUMENT_HEADERS = {
  // Clients validate the document before each use: it depends on the mounted version.
  "cache-control": "public, no-cache",
  "access-control-allow-origin": "*",
  "x-content-type-options": "nosniff",
} as const;

const interfaceOperations: Operations = {
  listEventTypes: {
    method: "GET",
    path: "/v1/event-types",
    tag: "Interface",
    summary: "List the event types",
    response: {
      status: 200,
      description: "The names that a webhook can subscribe to, sorted.",
      schema: describeObject({ eventTypes: { type: "array", items: eventTypeRef } }),
    },
    errors: [],
    handle: async (_, { eventTypes }) => toJsonResponse(200, { eventTypes }),
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
        description: "The `ETag` of the document that the client has. If it is current, the response is 304.",
        schema: { type: "string", maxLength: 8_192 },
      },
    ],
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
      headers: {
        ETag: {
          description: "The version of the document.",
          required: true,
          schema: { type: "string", maxLength: TEXT_LENGTHS.header },
        },
      },
    },
    errors: [],
    async handle(request, { getDocument }) {
      const { body, etag } = getDocument(request.baseUrl);
      const headers = { ...DOCUMENT_HEADERS, etag };
      if (isMatch(request.headers["if-none-match"], etag)) return { status: 304, headers, body: null };
      return { status: 200, headers: { "content-type": JSON_CONTENT_TYPE, ...headers }, body };
    },
  },
};

/** By operation id, in the order of the OpenAPI document. */
export const operations: Operations = {
  ...registrationOperations,
  ...deliveryOperations,
  ...logOperations,
  ...interfaceOperations,
};

/** The number of cached texts, by base URL. Clients choose the base URL with the `Host` header. */
const MAX_CACHED_TEXTS = 16;

/** Returns a function that gives the text of the document at a base URL, with its validator. */
export function cacheDocumentTexts(openApi: (baseUrl: string) => JsonObject): ApiService["getDocument"] {
  const texts = new LRUCache<string, ReturnType<ApiService["getDocument"]>>({ max: MAX_CACHED_TEXTS });
  const serialise = (baseUrl: string) => {
    const body = JSON.stringify(openApi(baseUrl));
    return { body, etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"` };
  };
  return (baseUrl) => {
    const text = texts.get(baseUrl) ?? serialise(baseUrl);
    texts.set(baseUrl, text);
    return text;
  };
}
