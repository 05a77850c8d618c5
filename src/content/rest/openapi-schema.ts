/** Translates schemas of arguments and records to JSON Schema 2020-12. Pure. */

import type { Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { ALL } from "./record-fields.js";

const SAME_KEYWORDS = [
  "title",
  "description",
  "type",
  "enum",
  "default",
  "pattern",
  "minLength",
  "minItems",
  "maxItems",
  "uniqueItems",
] as const satisfies (keyof Schema)[];

/**
 * WordPress uses these format names in another sense, or 2020-12 does not know them. An argument
 * may also have more forms than a response.
 */
const FORMATS: { [format in NonNullable<Schema["format"]>]: JsonObject } = {
  "date-time": {},
  uri: {},
  email: {},
  ip: {},
  uuid: { format: "uuid" },
  "hex-color": { pattern: "^#([A-Fa-f0-9]{3}){1,2}$" },
};

/** A format of arguments that responses do not share. */
const ARGUMENT_FORMATS: { [format in NonNullable<Schema["format"]>]?: JsonObject } = {
  "date-time": {
    pattern:
      "^(?!0000)\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt ]([01]\\d|2[0-3])(:[0-5]\\d){2}" +
      "(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3])(:[0-5]\\d)?)?$",
  },
  email: { format: "email" },
};

/** `response`: without the bounds of arguments, which imported records may exceed. */
type Use = "argument" | "response";

/** Translates draft 4, and the `required` that WordPress writes on a property, to 2020-12. */
export function toJsonSchema(schema: Schema, use: Use = "argument"): JsonObject {
  const { accepted, properties, format } = schema;
  if (use === "argument" && accepted !== undefined) return toJsonSchema(describeAccepted(schema, accepted));
  const inner = (one: Schema): JsonObject => toJsonSchema(one, use);
  const translated: Record<string, Json> = {
    ...translateKeywords(schema),
    ...(use === "argument" ? translateBounds(schema) : {}),
    ...(format === undefined ? {} : translateFormat(format, use)),
    ...translateRange(schema),
    ...(schema.readonly ? { readOnly: true } : {}),
    ...translateInnerSchemas(schema, inner),
  };
  if (properties !== undefined) {
    const members = Object.entries(properties);
    translated["type"] ??= "object";
    translated["properties"] = Object.fromEntries(members.map(([name, member]) => [name, inner(member)]));
  }
  const names = listRequired(schema);
  if (names.length > 0) translated["required"] = names;
  return translated;
}

function translateKeywords(schema: Schema): JsonObject {
  const translated: Record<string, Json> = {};
  for (const keyword of SAME_KEYWORDS) {
    const value = schema[keyword];
    if (value !== undefined) translated[keyword] = value as Json;
  }
  // WordPress announces `null` as the default of arguments that do not accept it.
  if (translated["default"] === null && ![schema.type].flat().includes("null")) delete translated["default"];
  return translated;
}

const translateFormat = (format: NonNullable<Schema["format"]>, use: Use): JsonObject =>
  (use === "argument" ? ARGUMENT_FORMATS[format] : undefined) ?? FORMATS[format];

const describeAccepted = ({ description, default: initial }: Schema, accepted: Schema): Schema => ({
  ...accepted,
  ...(description === undefined ? {} : { description }),
  ...(initial === undefined ? {} : { default: initial }),
});

function translateInnerSchemas(
  { items, oneOf, anyOf, additionalProperties }: Schema,
  inner: (schema: Schema) => JsonObject,
): JsonObject {
  const translated: Record<string, Json> = {};
  if (items !== undefined) translated["items"] = inner(items);
  if (oneOf !== undefined) translated["oneOf"] = oneOf.map(inner);
  if (anyOf !== undefined) translated["anyOf"] = anyOf.map(inner);
  if (additionalProperties !== undefined) {
    translated["additionalProperties"] =
      typeof additionalProperties === "object" ? inner(additionalProperties) : additionalProperties;
  }
  return translated;
}

function translateRange({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Schema): JsonObject {
  return {
    ...(minimum === undefined ? {} : { [exclusiveMinimum ? "exclusiveMinimum" : "minimum"]: minimum }),
    ...(maximum === undefined ? {} : { [exclusiveMaximum ? "exclusiveMaximum" : "maximum"]: maximum }),
  };
}

const listRequired = ({ required, properties = {} }: Schema): readonly string[] =>
  typeof required === "object"
    ? required
    : Object.keys(properties).filter((name) => properties[name]?.required === true);

function translateBounds({ maxLength, maxItems, itemLimit, maxProperties }: Schema): JsonObject {
  return {
    ...(maxLength === undefined ? {} : { maxLength }),
    ...(itemLimit === undefined || maxItems !== undefined ? {} : { maxItems: itemLimit }),
    ...(maxProperties === undefined ? {} : { maxProperties }),
  };
}

// Derives the OpenAPI schemas of records, one closed schema for each context, from the schema that
// OPTIONS returns. Pure.

/** Returns a reference to the schema of a record in a context; `any` is the requested context. */
export type NameRecord = (schema: Schema, context: Context | "any") => JsonObject;

/**
 * Adds each schema to `schemas` at its first reference: `post.view`, and `post` for any context.
 */
export function createRecordNames(schemas: Record<string, JsonObject>): NameRecord {
  const names = new Map<Schema, string>();
  const getBaseName = (schema: Schema): string => {
    let name = names.get(schema);
    if (name === undefined) {
      name = chooseFreeName(schema.title ?? "record", new Set(names.values()));
      names.set(schema, name);
    }
    return name;
  };
  const nameOf: NameRecord = (schema, context) => {
    const base = getBaseName(schema);
    const name = context === "any" ? base : `${base}.${context}`;
    schemas[name] ??=
      context === "any" ? { anyOf: ALL.map((one) => nameOf(schema, one)) } : describeRecord(schema, context);
    return { $ref: `#/components/schemas/${name}` };
  };
  return nameOf;
}

/** Two kinds of records can have the same title. */
function chooseFreeName(title: string, taken: Set<string>): string {
  const base = title.replace(/[^\w-]/g, "-");
  let name = base;
  for (let count = 2; taken.has(name); count += 1) name = `${base}-${count}`;
  return name;
}

function describeRecord(schema: Schema, context: Context): JsonObject {
  const { properties, ...rest } = describeMembers(schema, context);
  return {
    ...rest,
    properties: {
      ...(properties as JsonObject),
      _links: { $ref: "#/components/schemas/Links" },
      _embedded: { $ref: "#/components/schemas/Embedded" },
    },
  };
}

/** Returns exactly the properties that the context shows. */
function describeMembers({ description, properties = {} }: Schema, context: Context): JsonObject {
  const shown = Object.entries(properties).filter(([, member]) => member.context?.includes(context));
  const required = shown.filter(([, member]) => member.sometimes !== true).map(([name]) => name);
  return {
    ...(description === undefined ? {} : { description }),
    type: "object",
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(shown.map(([name, member]) => [name, describeValue(member, context)])),
    additionalProperties: false,
  };
}

function describeValue(schema: Schema, context: Context): JsonObject {
  const { answered } = schema;
  if (answered !== undefined) {
    const { description } = schema;
    return { ...(description === undefined ? {} : { description }), ...describeValue(answered, context) };
  }
  const { properties } = schema;
  if (properties !== undefined && Object.values(properties).some((member) => member.context !== undefined)) {
    const isShown = Object.values(properties).some((member) => member.context?.includes(context));
    // An object without any member left is sent as an empty list.
    return isShown ? describeMembers(schema, context) : { type: "array", maxItems: 0 };
  }
  // Keywords that limit or complete an argument do not apply to a response.
  const { default: _, readOnly: __, minimum: ___, ...described } = toJsonSchema(schema, "response");
  return { ...described, ...describeFormat(schema) };
}

/** The formats that the site writes. */
const describeFormat = ({ format }: Schema): { [keyword: string]: Json } =>
  format === "date-time"
    ? { pattern: "^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" }
    : format === "uri"
      ? { format: "uri-reference" }
      : {};
