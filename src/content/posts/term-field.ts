/** The field that holds a post's terms in a taxonomy. */

import { IDS } from "../argument-bounds.js";
import type { Taxonomy } from "../records/records.js";
import { FULL } from "../rest/record-fields.js";
import type { PostField } from "./post-field.js";

export const createTermField = (taxonomy: Taxonomy): PostField => ({
  schema: {
    description: `The terms assigned to the post in the ${taxonomy} taxonomy.`,
    ...IDS,
    context: FULL,
  },
  // The record may name terms that were deleted since.
  read: ({ post, index }) => index.termsOf(post, taxonomy),
  write: (value, { post, index }) => {
    const ids = (value as readonly number[]).filter((id) => index.term(id)?.taxonomy === taxonomy);
    post.terms = { ...post.terms, [taxonomy]: [...new Set(ids)].sort((a, b) => a - b) };
  },
});
