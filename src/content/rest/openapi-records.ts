/** The schemas of records in OpenAPI: one for each context, closed, from the one schema that OPTIONS describes. Pure. */

import type { Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { toJsonSchema } from "./openapi-schema.js";
import { ALL } from "./record-fields.js";

/** A reference to what is answered of such a record in a context; `any`: in the one that is asked for. */
export type NameRecord = (schema: Schema, context: Context | "any") => JsonObject;

/** Puts each schema into `schemas` when it is first referred to: `post.view`, and `post` for any context. */
export function recordNames(schemas: Record<string, JsonObject>): NameRecord {
  const names = new Map<Schema, string>();
  const baseOf = (schema: Schema): string => {
    let name = names.get(schema);
    if (name === undefined) {
      name = freeName(schema.title ?? "record", new Set(names.values()));
      names.set(schema, name);
    }
    return name;
  };
  const nameOf: NameRecord = (schema, context) => {
    const base = baseOf(schema);
    const name = context === "any" ? base : `${base}.${context}`;
    schemas[name] ??=
      context === "any" ? { anyOf: ALL.map((one) => nameOf(schema, one)) } : recordIn(schema, context);
    return { $ref: `#/components/schemas/${name}` };
  };
  return nameOf;
}

/** Two kinds of records may have one title. */
function freeName(title: string, taken: ReadonlySet<string>): string {
  const base = title.replace(/[^\w-]/g, "-");
  let name = base;
  for (let count = 2; taken.has(name); count += 1) name = `${base}-${count}`;
  return name;
}

function recordIn(schema: Schema, context: Context): JsonObject {
  const { properties, ...rest } = objectIn(schema, context);
  return {
    ...rest,
    properties: {
      ...(properties as JsonObject),
      _links: { $ref: "#/components/schemas/Links" },
      _embedded: { $ref: "#/components/schemas/Embedded" },
    },
  };
}

/** The members that the context shows, all of them, and no others. */
function objectIn({ description, properties = {} }: Schema, context: Context): JsonObject {
  const shown = Object.entries(properties).filter(([, member]) => member.context?.includes(context));
  const required = shown.filter(([, member]) => member.sometimes !== true).map(([name]) => name);
  return {
    ...(description === undefined ? {} : { description }),
    type: "object",
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(shown.map(([name, member]) => [name, valueIn(member, context)])),
    additionalProperties: false,
  };
}

function valueIn(schema: Schema, context: Context): JsonObject {
  const { answered } = schema;
  if (answered !== undefined) {
    const { description } = schema;
    return { ...(description === undefined ? {} : { description }), ...valueIn(answered, context) };
  }
  const { properties } = schema;
  if (properties !== undefined && Object.values(properties).some((member) => member.context !== undefined)) {
    return objectIn(schema, context);
  }
  // What limits or completes an argument says nothing of an answer.
  const { default: _, readOnly: __, minimum: ___, ...described } = toJsonSchema(schema, "answer");
  return { ...described, ...formatOf(schema) };
}

/** As the site writes them. */
const formatOf = ({ format }: Schema): { readonly [keyword: string]: Json } =>
  format === "date-time"
    ? { pattern: "^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" }
    : format === "uri"
      ? { format: "uri-reference" }
      : {};
