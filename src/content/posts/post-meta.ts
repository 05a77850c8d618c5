/** Reads and writes the registered meta fields of a post type. Others are never stored. */

import { coerceValue } from "../../schema/coerce.js";
import type { Json, JsonObject, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import type { MetaField } from "../collections.js";
import { RestError } from "../rest/error.js";

type MetaFields = { readonly [name: string]: MetaField };

/**
 * A pattern's response has it as a field of its own; a revision's has null for an unknown value.
 */
const choiceInResponses = (choices: readonly string[]): Schema => ({
  sometimes: true,
  answered: { type: ["string", "null"], enum: [...choices, null] },
});

/** Texts of meta fields, such as footnotes, may be HTML. */
const withMaxLength = (field: MetaField): Schema =>
  field.type === "string" && field.enum === undefined ? { ...field, maxLength: LENGTHS.content } : field;

export const metaSchema = (fields: MetaFields): Schema => ({
  type: "object",
  maxProperties: COUNTS.members,
  properties: Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      {
        ...withMaxLength(field),
        context: ["view", "edit"],
        ...(field.enum === undefined ? {} : choiceInResponses(field.enum)),
      } as Schema,
    ]),
  ),
});

export const readMeta = (stored: JsonObject, fields: MetaFields): JsonObject =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, stored[name] ?? field.default]));

/**
 * Returns `stored` with the written values, which are sanitised. `null` resets a field to its
 * default; names that are not registered are ignored.
 *
 * @throws RestError 400 with the schema's code for an invalid value
 */
export function writeMeta(stored: JsonObject, value: Json, fields: MetaFields): JsonObject {
  const given =
    typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  const changed = Object.entries(fields).flatMap(([name, field]) => {
    const meta = Object.hasOwn(given, name) ? given[name] : undefined;
    if (meta === undefined) return [];
    if (meta === null) return [[name, field.default] as const];
    const schema = field as Schema;
    const problem = validateValue(meta, schema, `meta.${name}`);
    if (problem !== undefined) throw new RestError(400, problem.code, problem.message);
    return [[name, coerceValue(meta, schema)] as const];
  });
  return { ...stored, ...Object.fromEntries(changed) };
}
