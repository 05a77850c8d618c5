/** JSON Schemas that several operations use, and functions that build them. Plain data. */

import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { TEXT_LENGTHS } from "../text-lengths.js";

/** A closed object; every property is required. */
export const describeObject = (properties: { readonly [name: string]: JsonObject }): JsonObject => ({
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

export const describeTimeOrNull = (description: string): JsonObject => ({
  type: ["string", "null"],
  format: "date-time",
  description,
});

export const orNull = (schema: JsonObject): JsonObject => ({ anyOf: [schema, { type: "null" }] });

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
