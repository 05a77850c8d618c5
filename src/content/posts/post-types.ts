/** Builds the table of post types from the shared fields and the rules of each type. */

import type { Context } from "../../schema/types.js";
import { type Collection, collections } from "../collections.js";
import type { PostType } from "../records/records.js";
import { navigationFields } from "./navigation-fields.js";
import { patternFields } from "./pattern-fields.js";
import type { PostField, PostFields, SharedPostField } from "./post-field.js";
import { postFields } from "./post-fields.js";
import { renderFields } from "./post-schema.js";
import type { PostTypeHandler, PostTypeRules, PostTypes, ShownField } from "./post-type-handler.js";
import { applyPostValues } from "./write-post.js";

const OWN_RULES: { readonly [type in PostType]?: PostTypeRules } = {
  wp_block: { fields: patternFields },
  wp_navigation: { fields: navigationFields },
};

/** A field that the type defines differently keeps the place of the shared one. */
function listFields(type: PostType, own: PostFields): ReadonlyMap<string, PostField> {
  const shared = Object.entries<SharedPostField>(postFields).filter(([, { types }]) => types.includes(type));
  return new Map(Object.entries({ ...Object.fromEntries(shared), ...own }));
}

const selectShownFields = (fields: ReadonlyMap<string, PostField>, context: Context): readonly ShownField[] =>
  [...fields].flatMap(([name, field]) => {
    const { schema } = field;
    if (schema.context?.includes(context) !== true) return [];
    return [{ name, field, show: (value) => renderFields(value, schema, context) }];
  });

function createPostType(
  collection: Collection,
  { fields: own = {}, ...rules }: PostTypeRules,
): PostTypeHandler {
  const fields = listFields(collection.type, own);
  const handler: PostTypeHandler = {
    write: (change, context) => applyPostValues(change, context, handler),
    ...rules,
    collection,
    fields,
    shownFields: {
      view: selectShownFields(fields, "view"),
      embed: selectShownFields(fields, "embed"),
      edit: selectShownFields(fields, "edit"),
    },
    costlyFields: [...fields].flatMap(([name, { isCostly }]) => (isCostly ? [name] : [])),
  };
  return handler;
}

/** Returns a handler for every post type. `rules`: for types that differ from posts and pages. */
export const createPostTypes = (rules: { readonly [type in PostType]?: PostTypeRules }): PostTypes =>
  Object.fromEntries(
    Object.values<Collection>(collections).map((collection) => [
      collection.type,
      createPostType(collection, { ...OWN_RULES, ...rules }[collection.type] ?? {}),
    ]),
  ) as PostTypes;
