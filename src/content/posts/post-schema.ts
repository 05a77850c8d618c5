/** The schema of a collection's items, the arguments that write them, and what of an item a context shows. Made from the fields. */

import type { Argument, Arguments, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import type { Collection } from "../collections.js";
import { mediaFields } from "../media/media-fields.js";
import { menuItemFields } from "./menu-items/menu-item-fields.js";
import { blockFields, type PostField, postFields } from "./post-fields.js";
import { metaSchema } from "./post-meta.js";

const OWN_FIELDS: { readonly [type: string]: { readonly [name: string]: PostField } } = {
  nav_menu_item: menuItemFields,
  attachment: mediaFields,
  wp_block: blockFields,
};

/** The fields of a collection by name, in the order they are answered. */
export function listFields({ type, fields }: Collection): ReadonlyMap<string, PostField> {
  const dictionary = { ...postFields, ...OWN_FIELDS[type] };
  return new Map(
    fields.map((name) => {
      const field = dictionary[name];
      if (field === undefined) throw new Error(`There is no field '${name}' for ${type}.`);
      return [name, field];
    }),
  );
}

/** A field's schema as the collection has it: the members of `meta` differ. */
const schemaOfField = (name: string, schema: Schema, collection: Collection): Schema =>
  name === "meta" ? { ...schema, ...metaSchema(collection.meta) } : schema;

export function itemSchema(collection: Collection): Schema {
  const properties = [...listFields(collection)].map(
    ([name, { schema }]) => [name, schemaOfField(name, schema, collection)] as const,
  );
  return { title: collection.type, type: "object", properties: Object.fromEntries(properties) };
}

/** The arguments that create or update an item: every field that can be written. */
export function writeArguments(collection: Collection, more: Arguments = {}): Arguments {
  const own = [...listFields(collection)].flatMap(([name, field]) => {
    if (field.schema.readonly === true) return [];
    const { context: _, required: __, ...schema } = schemaOfField(name, field.schema, collection);
    return [[name, { ...schema, ...field.argument, ...more[name] } as Argument] as const];
  });
  return Object.fromEntries(own);
}

/** The id in the path of an update; of a creation, which may be given anything under that name, none. */
export const readId = ({ id }: JsonObject): number => (typeof id === "number" ? id : Number.NaN);

/** Accepts the value that the record has already, whatever the schema says: a trashed post may be saved as `trash`. */
export const orUnchanged =
  (schema: Schema, stored: (id: number) => string | undefined): NonNullable<Argument["validate"]> =>
  (value, name, given) =>
    value === stored(readId(given)) ? undefined : validateValue(value, schema, name);

/** What `context` shows of a field's value; members that the schema does not know are left out. */
export function renderFields(value: Json, schema: Schema, context: Context): Json {
  const { properties } = schema;
  if (properties === undefined || typeof value !== "object" || value === null || Array.isArray(value))
    return value;
  const members = Object.entries(value as JsonObject).filter(
    ([name]) => properties[name]?.context?.includes(context) === true,
  );
  return Object.fromEntries(members);
}

/** Names of the fields that `context` shows, each with what it shows of a value. */
export function selectPostFields(
  collection: Collection,
  context: Context,
): readonly { readonly name: string; readonly field: PostField; readonly show: (value: Json) => Json }[] {
  return [...listFields(collection)].flatMap(([name, field]) => {
    const { schema } = field;
    if (schema.context?.includes(context) !== true) return [];
    return [{ name, field, show: (value: Json) => renderFields(value, schema, context) }];
  });
}
