/** Builds the table of post types from the shared fields and the rules of each type. */

import type { Context, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { Collection, ContentModel } from "../records/content-model.js";
import type { BuiltInPostType, PostType } from "../records/records.js";
import { ALL, EDIT, FULL } from "../rest/record-fields.js";
import { isSelected, type PostField, type PostFields, type SharedPostField } from "./post-field.js";
import { postFields } from "./post-fields.js";
import {
  describeField,
  type PostTypeHandler,
  type PostTypeRules,
  type PostTypes,
  renderFields,
  type ShownField,
} from "./post-type-handler.js";
import {
  createTermField,
  metaField,
  PROTECTED,
  readMeta,
  readProtectedContent,
  readShownMeta,
  textFields,
} from "./text-fields.js";
import { applyPostValues } from "./write-post.js";

/** Shows the named members of an object wherever the object is shown. */
const showMembers = ({ properties = {}, ...schema }: Schema, names: string[]): Schema => ({
  ...schema,
  context: ALL,
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [
      name,
      names.includes(name)
        ? { ...member, context: ["edit", "embed"] as const }
        : name === "rendered"
          ? { ...member, context: ALL }
          : member,
    ]),
  ),
});

const navigationFields: PostFields = {
  status: { ...postFields.status, schema: { ...postFields.status.schema, context: ALL } },
  title: { ...textFields.title, schema: showMembers(textFields.title.schema, ["raw"]) },
  content: {
    ...textFields.content,
    schema: showMembers(textFields.content.schema, ["raw", "block_version"]),
    read: readProtectedContent,
  },
};

// The fields of patterns (`wp_block`) that differ from posts: editors need the stored texts.

const rawText = (maxLength: number): Schema => ({
  type: "string",
  context: FULL,
  description: "As it is stored.",
  maxLength,
});

const patternFields: PostFields = {
  title: {
    ...textFields.title,
    schema: {
      type: "object",
      context: ALL,
      maxLength: LENGTHS.title,
      properties: { raw: rawText(LENGTHS.title) },
    },
  },
  content: {
    ...textFields.content,
    schema: {
      type: "object",
      context: FULL,
      maxLength: LENGTHS.content,
      properties: {
        raw: rawText(LENGTHS.content),
        block_version: { type: "integer", context: EDIT, readonly: true },
        protected: PROTECTED,
      },
    },
    read: readProtectedContent,
  },
  meta: {
    ...metaField,
    // Responses have this member as a separate field.
    read: (view) => {
      const { wp_pattern_sync_status: _, ...meta } = readShownMeta(view);
      return meta;
    },
  },
  wp_pattern_sync_status: {
    schema: { type: "string", context: ALL, readonly: true, undescribed: true },
    // WordPress takes it from `meta`, which `embed` does not show.
    read: ({ post, collection, context }) =>
      context === "embed" ? "" : (readMeta(post.meta, collection.meta)["wp_pattern_sync_status"] ?? ""),
  },
  wp_pattern_category: createTermField("wp_pattern_category"),
};

/** The rules of a type that differs from posts and pages. */
type RulesByType = { [type in BuiltInPostType]?: PostTypeRules };

const OWN_RULES: RulesByType = {
  wp_block: { fields: patternFields },
  wp_navigation: { fields: navigationFields },
};

/**
 * A field that the type defines differently keeps the place of the shared one. The terms of
 * declared taxonomies stand before the last shared field.
 */
function listFields(collection: Collection, typeFields: PostFields): Map<string, PostField> {
  const shared = Object.entries<SharedPostField>(postFields).filter(([, field]) =>
    isSelected(field, collection),
  );
  const fields: PostFields = { ...Object.fromEntries(shared), ...typeFields };
  const added = collection.taxonomies
    .filter(({ base }) => !Object.hasOwn(fields, base))
    .map(({ taxonomy, base }) => [base, createTermField(taxonomy)] as const);
  if (added.length === 0) return new Map(Object.entries(fields));
  const { class_list: last, ...others } = fields;
  return new Map(
    Object.entries({ ...others, ...Object.fromEntries(added), ...(last && { class_list: last }) }),
  );
}

const selectShownFields = (
  fields: Map<string, PostField>,
  context: Context,
  collection: Collection,
): ShownField[] =>
  [...fields].flatMap(([name, field]) => {
    const schema = describeField(field, collection);
    if (schema.context?.includes(context) !== true) return [];
    return [{ name, field, show: (value) => renderFields(value, schema, context) }];
  });

function createPostType(
  collection: Collection,
  { fields: typeFields = {}, ...rules }: PostTypeRules,
): PostTypeHandler {
  const fields = listFields(collection, typeFields);
  const handler: PostTypeHandler = {
    write: (change, context) => applyPostValues(change, context, handler),
    ...rules,
    collection,
    fields,
    shownFields: {
      view: selectShownFields(fields, "view", collection),
      embed: selectShownFields(fields, "embed", collection),
      edit: selectShownFields(fields, "edit", collection),
    },
    costlyFields: [...fields].flatMap(([name, { isCostly }]) => (isCostly ? [name] : [])),
  };
  return handler;
}

/** Returns a handler for every post type. */
export function createPostTypes(rules: RulesByType, { types }: ContentModel): PostTypes {
  const rulesOf = new Map<PostType, PostTypeRules>(Object.entries({ ...OWN_RULES, ...rules }));
  const handlers = new Map(
    [...types].map(([type, collection]) => [type, createPostType(collection, rulesOf.get(type) ?? {})]),
  );
  return {
    all: [...handlers.values()],
    get(type) {
      const handler = handlers.get(type);
      if (handler === undefined) throw new Error(`There is no post type '${type}'.`);
      return handler;
    },
  };
}
