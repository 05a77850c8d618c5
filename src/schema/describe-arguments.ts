/**
 * Describes arguments and schemas to clients, in the index and in the response to OPTIONS. Pure.
 */

import type { Arguments, Json, JsonObject, Schema } from "./types.js";

/** Describes the arguments of an endpoint as plain data. `required` is always present. */
export function describeArguments(args: Arguments): JsonObject {
  const described = Object.entries(args).filter(([, { undescribed }]) => undescribed !== true);
  return mapValues(Object.fromEntries(described), (argument) => {
    const { context: _, readonly: __, ...keywords } = describeSchema(argument);
    return { ...keywords, required: argument.required === true };
  });
}

/** Describes a schema as plain data: its keywords at all levels, and nothing else. */
export function describeSchema(schema: Schema): JsonObject {
  const described: { [keyword: string]: Json } = {};
  for (const keyword of KEYWORDS) {
    const value = schema[keyword];
    if (value !== undefined) described[keyword] = value as Json;
  }
  const { items, mostItems, properties, additionalProperties, oneOf, anyOf } = schema;
  if (mostItems !== undefined) described["x-maxItems"] = mostItems;
  if (items !== undefined) described["items"] = describeSchema(items);
  if (properties !== undefined) {
    const told = Object.entries(properties).filter(([, member]) => member.undescribed !== true);
    described["properties"] = mapValues(Object.fromEntries(told), describeSchema);
  }
  if (typeof additionalProperties === "object") {
    described["additionalProperties"] = describeSchema(additionalProperties);
  }
  if (oneOf !== undefined) described["oneOf"] = oneOf.map(describeSchema);
  if (anyOf !== undefined) described["anyOf"] = anyOf.map(describeSchema);
  return described;
}

const KEYWORDS = [
  "title",
  "description",
  "type",
  "format",
  "enum",
  "default",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "maxProperties",
  "additionalProperties",
  "required",
  "context",
  "readonly",
] as const satisfies readonly (keyof Schema)[];

const mapValues = <T>(values: { readonly [name: string]: T }, map: (value: T) => Json): JsonObject =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
