/** Builds the OpenAPI 3.1 document of the registration API and of the notification. Pure. */

import {
  buildOpenApiDocument,
  componentRef,
  defineErrors,
  describeErrorResponse,
  referToErrors,
  toPathTemplate,
} from "../../http/openapi-document.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { TEXT_LENGTHS } from "../call-arguments.js";
import type { WebhooksConfig } from "../config/config.js";
import { type Catalogue, isPlain, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { addFilteredCount, addRecordSettings } from "./endpoint-settings.js";
import { describeNotifications, notificationSchemas } from "./openapi-notification.js";
import {
  apiErrors,
  type BodySchema,
  type ErrorDescription,
  type ErrorStatus,
  type Operation,
  tags,
} from "./operation.js";
import { listOperations } from "./operations.js";
import { deliverySchemas, responseHeaders, webhookSchemas } from "./schemas.js";

/** The version of the interface description that this follows, not of the package. */
const INTERFACE_VERSION = "1.4.2";

const INTRODUCTION = `Register HTTPS endpoints and receive signed notifications of record changes.

A path that supports GET also supports HEAD, and every path supports OPTIONS (204 with \`Allow\`). Another method of a known path returns 405
with \`Allow\` and the error \`method_not_allowed\`. Every error has the schema \`Error\`; each response lists its codes. New codes and new
properties of responses may be added.`;

/** 405 belongs to a path, not to one of its operations. */
const OPERATION_ERRORS = (Object.keys(apiErrors).map(Number) as ErrorStatus[]).filter(
  (status) => status !== 405,
);

/** The error statuses of every operation that needs an API key, and of those that read a body. */
const KEY_ERRORS = [401, 429, 503] as const;
const BODY_ERRORS = [400, 408, 413, 415, 500] as const;

/**
 * Describes the interface with the options of this service: event types, form of the notification,
 * headers of the signature, schemes of a URL.
 *
 * @param baseUrl the URL of the mount point.
 */
export function describeWebhooksOpenApi(
  config: WebhooksConfig,
  catalogue: Catalogue,
  baseUrl: string,
): JsonObject {
  const types = catalogue.names;
  const hasResources = [...catalogue.types.values()].some((entry) => !isPlain(entry));
  return buildOpenApiDocument({
    info: { title: "Webhooks", version: INTERFACE_VERSION, description: INTRODUCTION },
    baseUrl,
    security: [{ apiKey: [] }],
    tags: { ...tags, Notifications: "The requests that an endpoint receives." },
    paths: describePaths(config),
    webhooks: describeNotifications(catalogue, config),
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "The API key of the account." },
      },
      schemas: {
        ...webhookSchemas,
        Webhook: addRecordSettings(webhookSchemas["Webhook"] as JsonObject, config.registrations),
        ...(hasResources ? notificationSchemas : {}),
        ...deliverySchemas,
        ...(config.registrations.filters && {
          Stats: addFilteredCount(deliverySchemas["Stats"] as JsonObject),
        }),
        ...describeEventTypes(types, catalogue),
        EndpointUrl: describeEndpointUrl(config.destinations.allowHttp),
      },
      responses: defineErrors(OPERATION_ERRORS, (status) => describeError(apiErrors[status])),
      headers: responseHeaders,
    },
  });
}

function describePaths(config: WebhooksConfig): JsonObject {
  const paths: Record<string, Record<string, Json>> = {};
  for (const [operationId, operation] of listOperations(config)) {
    const template = toPathTemplate(operation.path);
    paths[template] ??= describePathParameters(operation.path);
    paths[template][operation.method.toLowerCase()] = describeOperation(operationId, operation);
  }
  return paths;
}

function describePathParameters(path: string): Record<string, Json> {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  if (names.length === 0) return {};
  return {
    parameters: names.map((name) => ({
      name,
      in: "path",
      required: true,
      ...(name === "type"
        ? { description: "An event type.", schema: componentRef("schemas", "NotifiedType") }
        : {
            description: `The \`id\` of the ${name.replace(/Id$/, "")}.`,
            schema: { type: "string", maxLength: TEXT_LENGTHS.id },
          }),
    })),
  };
}

function describeOperation(operationId: string, operation: Operation): JsonObject {
  const { tag, summary, description, isPublic, parameters, body, response, errors } = operation;
  const { status, schema, example } = response;
  const headers: JsonObject = {
    ...(isPublic ? {} : { "Cache-Control": componentRef("headers", "NoStore") }),
    ...response.headers,
  };
  const responses: Record<string, Json> = {
    [status]: {
      description: response.description,
      headers,
      content: { "application/json": { schema, ...(example === undefined ? {} : { example }) } },
    },
  };
  if ("ETag" in headers)
    responses["304"] = { description: "The client's document is current.", headers: response.headers ?? {} };
  const further = [...(isPublic ? [] : KEY_ERRORS), ...(body === undefined ? [] : BODY_ERRORS)];
  Object.assign(responses, referToErrors([...errors, ...further]));
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(isPublic ? { security: [] } : {}),
    ...(parameters === undefined ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: describeBody(body) }),
    responses,
  };
}

function describeBody({ required = [], isOptional, properties, example }: BodySchema): JsonObject {
  return {
    required: isOptional !== true,
    content: {
      "application/json": {
        schema: {
          type: "object",
          ...(required.length === 0 ? {} : { required }),
          properties,
          additionalProperties: false,
        },
        example,
      },
    },
  };
}

function describeError({ description, codes, header }: ErrorDescription): JsonObject {
  return describeErrorResponse({
    description,
    headers: {
      "Cache-Control": componentRef("headers", "NoStore"),
      ...(header === undefined ? {} : { [header]: componentRef("headers", header) }),
    },
    properties: {
      error: { type: "object", properties: { code: { enum: codes }, message: {}, field: {} } },
    },
    example: { error: { code: codes[0] ?? "", message: description } },
  });
}

const describeEndpointUrl = (isHttpAllowed: boolean): JsonObject => ({
  type: "string",
  pattern: `^[hH][tT][tT][pP][sS]${isHttpAllowed ? "?" : ""}://\\S+$`,
  maxLength: TEXT_LENGTHS.url,
  description: `The URL of the endpoint: absolute, ${isHttpAllowed ? "HTTPS or HTTP" : "and HTTPS"}.`,
});

const describeEventTypes = (types: readonly string[], { prefixes }: Catalogue): JsonObject => ({
  EventType: { type: "string", enum: types },
  NotifiedType: {
    anyOf: [
      componentRef("schemas", "EventType"),
      { type: "string", const: TEST_EVENT_TYPE, description: "A test that the subscriber requested." },
    ],
  },
  EventTypePattern: {
    type: "string",
    enum: [
      ...types,
      ...Array.from(prefixes)
        .sort()
        .map((prefix) => `${prefix}.*`),
      "*",
    ],
  },
});
