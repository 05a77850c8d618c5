/** The argument schemas' dialect in the words of JSON Schema 2020-12. Pure. */

import type { Json, JsonObject, Schema } from "../../schema/types.js";

const SAME_KEYWORDS = [
  "title",
  "description",
  "type",
  "enum",
  "default",
  "minLength",
  "minItems",
  "maxItems",
  "uniqueItems",
] as const satisfies readonly (keyof Schema)[];

/** What the reference calls by a name that means something else in 2020-12, or nothing, as a pattern. An argument may be more than is answered. */
const FORMATS: { readonly [format in NonNullable<Schema["format"]>]: JsonObject } = {
  "date-time": {},
  uri: {},
  email: {},
  ip: {},
  uuid: { format: "uuid" },
  "hex-color": { pattern: "^#([A-Fa-f0-9]{3}){1,2}$" },
};

/** `answer`: without the bounds of an argument, which an imported record may exceed. */
type Use = "argument" | "answer";

/** Draft 4, and the `required` on a property that WordPress writes, in the words of 2020-12. */
export function toJsonSchema(schema: Schema, use: Use = "argument"): JsonObject {
  const inner = (one: Schema): JsonObject => toJsonSchema(one, use);
  const translated: Record<string, Json> = {};
  for (const keyword of SAME_KEYWORDS) {
    const value = schema[keyword];
    if (value !== undefined) translated[keyword] = value as Json;
  }
  const { minimum, maximum, items, properties, additionalProperties, required, oneOf, anyOf, format } =
    schema;
  if (schema.maxItems !== undefined) translated["maxItems"] = schema.maxItems;
  if (use === "argument") Object.assign(translated, boundsOf(schema));
  if (format !== undefined) Object.assign(translated, FORMATS[format]);
  if (minimum !== undefined) translated[schema.exclusiveMinimum ? "exclusiveMinimum" : "minimum"] = minimum;
  if (maximum !== undefined) translated[schema.exclusiveMaximum ? "exclusiveMaximum" : "maximum"] = maximum;
  if (schema.readonly) translated["readOnly"] = true;
  if (items !== undefined) translated["items"] = inner(items);
  if (oneOf !== undefined) translated["oneOf"] = oneOf.map(inner);
  if (anyOf !== undefined) translated["anyOf"] = anyOf.map(inner);
  if (additionalProperties !== undefined) {
    translated["additionalProperties"] =
      typeof additionalProperties === "boolean" ? additionalProperties : inner(additionalProperties);
  }
  const members = Object.entries(properties ?? {});
  if (properties !== undefined) {
    translated["type"] ??= "object";
    translated["properties"] = Object.fromEntries(members.map(([name, member]) => [name, inner(member)]));
  }
  const names = Array.isArray(required)
    ? (required as readonly string[])
    : members.filter(([, member]) => member.required === true).map(([name]) => name);
  if (names.length > 0) translated["required"] = names;
  return translated;
}

function boundsOf({ maxLength, maxItems, mostItems, maxProperties }: Schema): JsonObject {
  return {
    ...(maxLength === undefined ? {} : { maxLength }),
    ...(mostItems === undefined || maxItems !== undefined ? {} : { maxItems: mostItems }),
    ...(maxProperties === undefined ? {} : { maxProperties }),
  };
}
