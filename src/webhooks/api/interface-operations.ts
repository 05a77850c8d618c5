/** The operations that describe the interface itself, by operation id. Plain data. */

import { TEXT_LENGTHS } from "../text-lengths.js";
import type { Operation } from "./operation.js";
import { describeObject, eventTypeRef } from "./shared-schemas.js";

export const interfaceOperations = {
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
  },
} as const satisfies { readonly [operationId: string]: Operation };
