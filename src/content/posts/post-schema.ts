/** The schema of a type's items and the arguments that write them, built from the fields. */

import type { Argument, Arguments, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import type { Collection } from "../collections.js";
import type { PostField } from "./post-field.js";
import type { PostTypeHandler } from "./post-type-handler.js";

const describeField = ({ schema, schemaOfType }: PostField, collection: Collection): Schema => ({
  ...schema,
  ...schemaOfType?.(collection),
});

export function itemSchema({ collection, fields }: PostTypeHandler): Schema {
  const properties = [...fields].map(([name, field]) => [name, describeField(field, collection)] as const);
  return { title: collection.type, type: "object", properties: Object.fromEntries(properties) };
}

/** Returns the arguments that create or update an item: every field that can be written. */
export function writeArguments(
  { collection, fields }: PostTypeHandler,
  overrides: Arguments = {},
): Arguments {
  const own = [...fields].flatMap(([name, field]) => {
    if (field.schema.readonly === true) return [];
    const { context: _, required: __, ...schema } = describeField(field, collection);
    return [[name, { ...schema, ...field.argument, ...overrides[name] } as Argument] as const];
  });
  return Object.fromEntries(own);
}

/**
 * Returns the id in the path of an update. A request that creates an item may give anything under
 * that name; the result is NaN then.
 */
const readId = ({ id }: JsonObject): number => (typeof id === "number" ? id : Number.NaN);

/**
 * Accepts what the schema accepts, and the value that the record already has: a trashed post may be
 * saved with the status `trash`.
 */
export const orUnchanged =
  (schema: Schema, stored: (id: number) => string | undefined): NonNullable<Argument["validate"]> =>
  (value, name, given) =>
    value === stored(readId(given)) ? undefined : validateValue(value, schema, name);

/**
 * Returns the part of a field's value that `context` shows. Drops members without a schema. As in
 * WordPress, an object without any member left becomes an empty list.
 */
export function renderFields(value: Json, schema: Schema, context: Context): Json {
  const { properties } = schema;
  if (properties === undefined || typeof value !== "object" || value === null || Array.isArray(value))
    return value;
  const members = Object.entries(value as JsonObject).filter(
    ([name]) => properties[name]?.context?.includes(context) === true,
  );
  return members.length === 0 ? [] : Object.fromEntries(members);
}
