/** The argument schemas' dialect in the words of JSON Schema 2020-12. Pure. */

import type { Json, JsonObject, Schema } from "../../schema/types.js";

const SAME_KEYWORDS = [
  "title",
  "description",
  "type",
  "enum",
  "default",
  "minLength",
  "maxLength",
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

/** Draft 4, and the reference's `required` on a property, in the words of 2020-12. */
export function toJsonSchema(schema: Schema): JsonObject {
  const translated: Record<string, Json> = {};
  for (const keyword of SAME_KEYWORDS) {
    const value = schema[keyword];
    if (value !== undefined) translated[keyword] = value as Json;
  }
  const { minimum, maximum, items, properties, additionalProperties, required, oneOf, anyOf, format } =
    schema;
  if (format !== undefined) Object.assign(translated, FORMATS[format]);
  if (minimum !== undefined) translated[schema.exclusiveMinimum ? "exclusiveMinimum" : "minimum"] = minimum;
  if (maximum !== undefined) translated[schema.exclusiveMaximum ? "exclusiveMaximum" : "maximum"] = maximum;
  if (schema.readonly) translated["readOnly"] = true;
  if (items !== undefined) translated["items"] = toJsonSchema(items);
  if (oneOf !== undefined) translated["oneOf"] = oneOf.map(toJsonSchema);
  if (anyOf !== undefined) translated["anyOf"] = anyOf.map(toJsonSchema);
  if (additionalProperties !== undefined) {
    translated["additionalProperties"] =
      typeof additionalProperties === "boolean" ? additionalProperties : toJsonSchema(additionalProperties);
  }
  const members = Object.entries(properties ?? {});
  if (properties !== undefined) {
    translated["type"] ??= "object";
    translated["properties"] = Object.fromEntries(
      members.map(([name, member]) => [name, toJsonSchema(member)]),
    );
  }
  const names = Array.isArray(required)
    ? (required as readonly string[])
    : members.filter(([, member]) => member.required === true).map(([name]) => name);
  if (names.length > 0) translated["required"] = names;
  return translated;
}
