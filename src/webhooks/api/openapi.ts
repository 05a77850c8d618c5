/** The operations and the notification as an OpenAPI 3.1 document. Pure. */

import type { Json, JsonObject } from "../../schema/types.js";
import { type Catalogue, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import type { WebhooksSettings } from "../settings/settings.js";
import {
  deliverySchemas,
  type ErrorStatus,
  EXAMPLE_SECRET,
  EXAMPLE_WEBHOOK,
  errorCodes,
  type Operation,
  operations,
  TEXT_LENGTHS,
  tags,
} from "./operations.js";

/** Changes with the form of the interface, not with the package. */
const INTERFACE_VERSION = "1";

const ref = (kind: "schemas" | "responses" | "headers", name: string): JsonObject => ({
  $ref: `#/components/${kind}/${name}`,
});

type Described = Pick<WebhooksSettings, "body" | "signature" | "delivery">;

/** `baseUrl`: of the mount point. What depends on the options is described as they are: event types, form of the notification, headers of the signature. */
export function describeWebhooksOpenApi(
  { body, signature, delivery }: Described,
  catalogue: Catalogue,
  baseUrl: string,
): JsonObject {
  const types = [...catalogue.types.keys()].sort();
  const paths: Record<string, Record<string, Json>> = {};
  for (const [operationId, operation] of Object.entries<Operation>(operations)) {
    const template = operation.path.replace(/:(\w+)/g, "{$1}");
    paths[template] ??= pathParameters(operation.path);
    paths[template][operation.method.toLowerCase()] = describeOperation(operationId, operation);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Webhooks", version: INTERFACE_VERSION, description: INTRODUCTION },
    servers: [{ url: baseUrl }],
    security: [{ apiKey: [] }],
    tags: Object.entries({ ...tags, Notifications: "What an endpoint receives." }).map(
      ([name, description]) => ({ name, description }),
    ),
    paths,
    webhooks: { notification: { post: describeNotification(types, { body, signature, delivery }) } },
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "The API key of the account." },
      },
      schemas: {
        ...SCHEMAS,
        ...deliverySchemas,
        EventType: { type: "string", enum: types },
        NotifiedType: {
          anyOf: [
            ref("schemas", "EventType"),
            { type: "string", const: TEST_EVENT_TYPE, description: "A test that was asked for." },
          ],
        },
        EventTypePattern: {
          type: "string",
          enum: [...types, ...[...catalogue.prefixes].sort().map((prefix) => `${prefix}.*`), "*"],
        },
      },
      responses: Object.fromEntries(
        RESPONSES.map((status) => [`Error${status}`, describeError(status)] as const),
      ),
      headers: HEADERS,
    },
  };
}

const INTRODUCTION = `Register HTTPS endpoints and receive signed notifications of record changes.

A path that answers GET answers HEAD too, and every path OPTIONS (204 with \`Allow\`). Another method of a known path is answered 405 with \`Allow\` and the error
\`method_not_allowed\`. Errors have one form, the schema \`Error\`; each response lists its codes. New codes and new members of answers may be added.`;

function pathParameters(path: string): Record<string, Json> {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  if (names.length === 0) return {};
  return {
    parameters: names.map((name) => ({
      name,
      in: "path",
      required: true,
      description: `The \`id\` of the ${name.replace(/Id$/, "")}.`,
      schema: { type: "string", maxLength: TEXT_LENGTHS.id },
    })),
  };
}

function describeOperation(operationId: string, operation: Operation): JsonObject {
  const { tag, summary, description, isPublic, parameters, body, answer, errors } = operation;
  const { status, schema, example } = answer;
  const headers: JsonObject = {
    ...(isPublic ? {} : { "Cache-Control": ref("headers", "NoStore") }),
    ...answer.headers,
  };
  const responses: Record<string, Json> = {
    [status]: {
      description: answer.description,
      headers,
      content: { "application/json": { schema, ...(example === undefined ? {} : { example }) } },
    },
  };
  if ("ETag" in headers)
    responses["304"] = { description: "What is known is current.", headers: answer.headers ?? {} };
  const all = isPublic ? errors : [...errors, 401, 429, 503];
  for (const error of [...all].sort((a, b) => a - b)) responses[error] = ref("responses", `Error${error}`);
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

function describeBody({
  required = [],
  isOptional,
  properties,
  example,
  ...schema
}: NonNullable<Operation["body"]>): JsonObject {
  return {
    required: isOptional !== true,
    content: {
      "application/json": {
        schema: {
          ...schema,
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

/** Those of a method that an operation has. */
const RESPONSES = (Object.keys(errorCodes).map(Number) as ErrorStatus[]).filter((status) => status !== 405);

const DESCRIPTIONS: { readonly [status in ErrorStatus]: string } = {
  400: "The request cannot be used. `field` names what is wrong in it.",
  401: "There is no API key, or it is not valid.",
  403: "The webhook is owned by another API key of the account.",
  404: "The account has nothing with this id.",
  405: "The path does not answer this method.",
  408: "The body did not arrive in time.",
  409: "It cannot be done in the present state of the account.",
  413: "The body is too large.",
  415: "The body is not JSON in UTF-8, or is compressed.",
  429: "Too many requests were sent.",
  500: "The server is set up in a way that it cannot read the body.",
  503: "The service cannot answer at the moment. Whether something was done is unknown.",
};

const ERROR_HEADERS: { readonly [status in ErrorStatus]?: string } = {
  401: "WWW-Authenticate",
  429: "Retry-After",
  503: "Retry-After",
};

function describeError(status: ErrorStatus): JsonObject {
  const codes = errorCodes[status];
  const header = ERROR_HEADERS[status];
  return {
    description: DESCRIPTIONS[status],
    headers: {
      "Cache-Control": ref("headers", "NoStore"),
      ...(header === undefined ? {} : { [header]: ref("headers", header) }),
    },
    content: {
      "application/json": {
        schema: {
          allOf: [ref("schemas", "Error")],
          type: "object",
          properties: {
            error: { type: "object", properties: { code: { enum: codes }, message: {}, field: {} } },
          },
        },
        example: { error: { code: codes[0], message: DESCRIPTIONS[status] } },
      },
    },
  };
}

const HEADERS: JsonObject = {
  NoStore: {
    description: "Nobody may keep the answer.",
    required: true,
    schema: { type: "string", const: "no-store" },
  },
  "Retry-After": {
    description: "Seconds after which to try again.",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  "WWW-Authenticate": {
    description: "How to say who is asking.",
    required: true,
    schema: { type: "string", const: "Bearer" },
  },
};

const SCHEMAS: JsonObject = {
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
        description: "An endpoint that fails for days is disabled by the service, after a warning.",
      },
      url: { type: "string" },
      createdDate: { type: "string", format: "date-time" },
      updatedDate: { type: "string", format: "date-time" },
    },
    additionalProperties: false,
    examples: [EXAMPLE_WEBHOOK],
  },
  Secret: {
    type: "string",
    pattern: "^whsec_[A-Za-z0-9+/]{43}=$",
    description: "The key of the signature: the whole text, with `whsec_`. Keep it; it is not shown again.",
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
          message: { type: "string", description: "For people; its words may change." },
          field: {
            type: "string",
            description: "The member of the body, parameter or header at fault: `event_types[0]`.",
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
      "A FHIR R4 Bundle: the record the event is about first, then what it references, each once. It holds only what the webhook's API key may read.",
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
              description: "The same in every attempt; references between entries are written so.",
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
      "hub.event": ref("schemas", "NotifiedType"),
      context: {
        type: "array",
        minItems: 1,
        maxItems: 1,
        items: {
          type: "object",
          required: ["key", "resource"],
          properties: {
            key: { type: "string", description: "The part of the event type before the dot." },
            resource: ref("schemas", "Bundle"),
          },
        },
      },
    },
  },
};

const VERIFICATION = `To verify it: split the value at the comma, and each part at its first \`=\`; ignore parts other than \`t\` and \`s\`. Compute HMAC-SHA-256 over the value of
\`t\`, a full stop and the raw bytes of the body, with the whole secret, as UTF-8, as the key. Compare its 64 lower-case hexadecimal digits with \`s\` in constant
time. If they match, refuse it when \`t\`, in Unix seconds, is further from now than you tolerate: 300 s is usual. Every attempt has a new \`t\`.`;

function describeNotification(
  types: readonly string[],
  { body, signature, delivery }: Described,
): JsonObject {
  const header = (name: string, description: string, schema: JsonObject): JsonObject => ({
    name,
    in: "header",
    required: true,
    description,
    schema,
  });
  const notReceived = "It was not received, and is sent again on the schedule.";
  const retryLater = {
    description: notReceived,
    headers: {
      "Retry-After": {
        description: "Seconds, or a date: the next attempt is not made before it.",
        schema: { type: "string" },
      },
    },
  };
  return {
    operationId: "receiveNotification",
    tags: ["Notifications"],
    summary: "Receive a notification",
    description:
      "Sent to the address of every webhook that subscribes to the event type. Answer before doing heavy work. The same event can come more than once, with the same `id`, and events can come in another order than they happened.",
    security: [],
    parameters: [
      header(signature.header, `The signature. ${VERIFICATION}`, {
        type: "string",
        pattern: "^t=[0-9]+, s=[0-9a-f]{64}$",
      }),
      ...(signature.standardWebhooks
        ? [
            header("webhook-id", "The id of the event.", { type: "string", format: "uuid" }),
            header("webhook-timestamp", "Unix seconds.", { type: "string", pattern: "^[0-9]+$" }),
            header("webhook-signature", "A second signature, by the Standard Webhooks scheme.", {
              type: "string",
              pattern: "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$",
            }),
          ]
        : []),
    ],
    requestBody: {
      required: true,
      content: {
        "application/json": {
          schema: notificationSchema(body, delivery.eventIdField),
          example: exampleNotification(types[0] ?? "", body, delivery.eventIdField),
        },
      },
    },
    responses: {
      "2XX": { description: "It was received. The body of the answer is not used." },
      "3XX": { description: `${notReceived} A redirect is not followed.` },
      "4XX": retryLater,
      "5XX": retryLater,
    },
  };
}

const UUID = { type: "string", format: "uuid" } as const;
const TIME = { type: "string", format: "date-time" } as const;

function notificationSchema(form: WebhooksSettings["body"], hasEventId: boolean): JsonObject {
  const members = {
    id: { ...UUID, description: "Of the event: the same for every webhook and in every attempt." },
    timestamp: { ...TIME, description: "When the event happened, in UTC." },
    event: ref("schemas", "EventData"),
  };
  const eventId = hasEventId ? { event_id: { ...UUID, description: "The same as `id`." } } : {};
  const closed = (properties: { readonly [name: string]: JsonObject }): JsonObject => ({
    type: "object",
    required: Object.keys(properties),
    properties,
  });
  if (form === "notification") return closed({ ...members, ...eventId });
  const eventType = ref("schemas", "NotifiedType");
  return closed({ id: members.id, ...eventId, eventType, payload: closed(members) });
}

function exampleNotification(type: string, form: WebhooksSettings["body"], hasEventId: boolean): JsonObject {
  const id = "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21";
  const timestamp = "2026-03-01T12:00:00.000Z";
  const bundle: JsonObject = {
    resourceType: "Bundle",
    id: "7d9f6f0a-52f4-5f6e-8a58-3b0c9d1e2f34",
    meta: { lastUpdated: timestamp },
    type: "collection",
    entry: [
      {
        fullUrl: "urn:uuid:3f1c2b7a-9a1d-4c55-8e0b-1d2f3a4b5c6d",
        resource: { resourceType: "Basic", id: "3f1c2b7a-9a1d-4c55-8e0b-1d2f3a4b5c6d" },
      },
    ],
  };
  const event: JsonObject = {
    "hub.topic": EXAMPLE_WEBHOOK.id,
    "hub.event": type,
    context: [{ key: type.split(".")[0] ?? "", resource: bundle }],
  };
  const eventId = hasEventId ? { event_id: id } : {};
  return form === "notification"
    ? { id, ...eventId, timestamp, event }
    : { id, ...eventId, eventType: type, payload: { timestamp, id, event } };
}
