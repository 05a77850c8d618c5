/** The fields of patterns (`wp_block`) that differ from posts: editors need the stored texts. */

import type { Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { ALL, EDIT, FULL } from "../rest/record-fields.js";
import { metaField, readShownMeta } from "./meta-field.js";
import type { PostFields } from "./post-field.js";
import { readMeta } from "./post-meta.js";
import { createTermField } from "./term-field.js";
import { PROTECTED, readProtectedContent, textFields } from "./text-fields.js";

const rawText = (maxLength: number): Schema => ({
  type: "string",
  context: FULL,
  description: "As it is stored.",
  maxLength,
});

export const patternFields: PostFields = {
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
    // Responses have this member as a field of its own.
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
