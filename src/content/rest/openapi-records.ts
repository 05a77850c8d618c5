/**
 * Derives the OpenAPI schemas of records, one closed schema for each context, from the schema that
 * OPTIONS returns. Pure.
 */

import type { Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { toJsonSchema } from "./openapi-schema.js";
import { ALL } from "./record-fields.js";

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
function chooseFreeName(title: string, taken: ReadonlySet<string>): string {
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
const describeFormat = ({ format }: Schema): { readonly [keyword: string]: Json } =>
  format === "date-time"
    ? { pattern: "^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" }
    : format === "uri"
      ? { format: "uri-reference" }
      : {};
