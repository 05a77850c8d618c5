/** Describes the notification that an endpoint receives, for the OpenAPI document. Pure. */

import { componentRef } from "../../http/openapi-document.js";
import type { Json, JsonObject } from "../../schema/types.js";
import type { WebhooksConfig } from "../config/config.js";
import { type Catalogue, isPlain } from "../event-types/catalogue.js";
import type { PlainEntry } from "../event-types/plain-event-type.js";
import { EXAMPLE_WEBHOOK } from "./schemas.js";

const VERIFICATION = `To verify it: split the value at the comma, and each part at its first \`=\`. Ignore parts other than \`t\` and \`s\`.
Compute HMAC-SHA-256 over the value of \`t\`, a full stop and the raw bytes of the body. The key is the whole secret, as UTF-8. Compare the
64 lower-case hexadecimal digits with \`s\` in constant time. If they match, check \`t\`, which is in Unix seconds: refuse the request if \`t\`
differs from now by more than your tolerance, usually 300 s. Every attempt has a new \`t\`.`;

const NOT_RECEIVED = "The notification was not received. It is sent again on the schedule.";

const retryLater: JsonObject = {
  description: NOT_RECEIVED,
  headers: {
    "Retry-After": {
      description: "Seconds, or a date: the next attempt is not made before it.",
      schema: { type: "string" },
    },
  },
};

/**
 * Describes what endpoints receive: one notification for all types with a resource, and one for
 * each plain type, under its name.
 */
export function describeNotifications({ types }: Catalogue, config: WebhooksConfig): JsonObject {
  const { body, delivery } = config;
  const sorted = [...types].sort(([one], [other]) => (one < other ? -1 : 1));
  const [first] = sorted.find(([, entry]) => !isPlain(entry)) ?? [];
  const plain = sorted.flatMap(([type, entry]) => (isPlain(entry) ? [[type, entry] as const] : []));
  return {
    ...(first !== undefined && {
      notification: {
        post: describeNotification(config, "receiveNotification", {
          schema: describeNotificationBody(body, delivery.eventIdField),
          example: exampleNotification(first, body, delivery.eventIdField),
        }),
      },
    }),
    ...Object.fromEntries(
      plain.map(([type, entry]) => [
        type,
        {
          post: describeNotification(
            config,
            `receive ${type}`,
            describePlainBody(type, entry),
            entry.description,
          ),
        },
      ]),
    ),
  };
}

/**
 * Rewrites the references within a schema, which count from its root, so that they lead to the
 * same place in the OpenAPI document. A schema with an `$id` is a document of its own.
 */
function embedSchema(schema: JsonObject, type: string): JsonObject {
  if (typeof schema["$id"] === "string") return schema;
  const root = `#/webhooks/${type}/post/requestBody/content/application~1json/schema/properties/data`;
  const rewrite = (name: string, value: Json): Json =>
    name === "$ref" && typeof value === "string" && /^#(?:\/|$)/.test(value)
      ? `${root}${value.slice(1)}`
      : embed(value);
  const embed = (value: Json): Json => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(embed);
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, rewrite(name, member)]));
  };
  return embed(schema) as JsonObject;
}

function describePlainBody(type: string, { jsonSchema, example }: PlainEntry): JsonObject {
  const properties = {
    id: { ...UUID, description: "The id of the event: the same for every webhook and in every attempt." },
    type: { type: "string", const: type },
    timestamp: { ...TIME, description: "When the event happened, in UTC." },
    data: jsonSchema === undefined ? {} : embedSchema(jsonSchema, type),
  };
  return {
    schema: {
      type: "object",
      required: Object.keys(properties),
      properties: {
        ...properties,
        test: { type: "boolean", const: true, description: "Only in a test that the subscriber requested." },
      },
    },
    ...(example !== undefined && {
      example: { id: EXAMPLE_ID, type, timestamp: EXAMPLE_TIME, data: example },
    }),
  };
}

function describeNotification(
  { signature }: WebhooksConfig,
  operationId: string,
  content: JsonObject,
  description?: string,
): JsonObject {
  return {
    operationId,
    tags: ["Notifications"],
    summary: "Receive a notification",
    description: [
      ...(description === undefined ? [] : [description]),
      "Sent to the URL of every webhook that subscribes to the event type. Respond before you do heavy work. The same event can arrive more than once, with the same `id`. Events can arrive in another order than they happened.",
    ].join("\n\n"),
    security: [],
    parameters: describeSignatureHeaders(signature),
    requestBody: { required: true, content: { "application/json": content } },
    responses: {
      "2XX": { description: "The notification was received. The body of the response is ignored." },
      "3XX": { description: `${NOT_RECEIVED} Redirects are not followed.` },
      "4XX": retryLater,
      "5XX": retryLater,
    },
  };
}

const describeHeader = (name: string, description: string, schema: JsonObject): JsonObject => ({
  name,
  in: "header",
  required: true,
  description,
  schema,
});

function describeSignatureHeaders(signature: WebhooksConfig["signature"]): JsonObject[] {
  const described = describeHeader(signature.header, `The signature. ${VERIFICATION}`, {
    type: "string",
    pattern: "^t=[0-9]+, s=[0-9a-f]{64}$",
  });
  if (!signature.standardWebhooks) return [described];
  const isAsymmetric = signature.ed25519.length > 0;
  return [
    described,
    describeHeader("webhook-id", "The id of the event.", { type: "string", format: "uuid" }),
    describeHeader("webhook-timestamp", "Unix seconds.", { type: "string", pattern: "^[0-9]+$" }),
    describeHeader("webhook-signature", describeStandardSignature(isAsymmetric), {
      type: "string",
      pattern: `^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*${isAsymmetric ? " v1a,[A-Za-z0-9+/]{86}==" : ""}$`,
    }),
  ];
}

const describeStandardSignature = (isAsymmetric: boolean): string =>
  `A second signature, by the Standard Webhooks scheme.${isAsymmetric ? " `v1a` is made with a key of `/v1/jwks.json`." : ""}`;

const EXAMPLE_ID = "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21";
const EXAMPLE_TIME = "2026-03-01T12:00:00.000Z";
const UUID = { type: "string", format: "uuid" } as const;
const TIME = { type: "string", format: "date-time" } as const;

function describeNotificationBody(form: WebhooksConfig["body"], hasEventId: boolean): JsonObject {
  const members = {
    id: { ...UUID, description: "The id of the event: the same for every webhook and in every attempt." },
    timestamp: { ...TIME, description: "When the event happened, in UTC." },
    event: componentRef("schemas", "EventData"),
  };
  const eventId = hasEventId ? { event_id: { ...UUID, description: "The same as `id`." } } : {};
  const describeMembers = (properties: { [name: string]: JsonObject }): JsonObject => ({
    type: "object",
    required: Object.keys(properties),
    properties,
  });
  if (form === "notification") return describeMembers({ ...members, ...eventId });
  const eventType = componentRef("schemas", "NotifiedType");
  return describeMembers({ id: members.id, ...eventId, eventType, payload: describeMembers(members) });
}

function exampleNotification(type: string, form: WebhooksConfig["body"], hasEventId: boolean): JsonObject {
  const [id, timestamp] = [EXAMPLE_ID, EXAMPLE_TIME];
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

export const notificationSchemas: JsonObject = {
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
