/** The class names of a post's container element on the website. */

import { getTaxonomy } from "../terms/taxonomies.js";
import type { FieldView } from "./post-field.js";

export const listClasses = ({ post, collection, index }: FieldView): readonly string[] => [
  `post-${post.id}`,
  post.type,
  `type-${post.type}`,
  `status-${post.status}`,
  ...(collection.supports.includes("post-formats") ? [`format-${post.format}`] : []),
  ...(post.password === "" ? [] : ["post-password-required"]),
  ...(post.featuredMedia > 0 ? ["has-post-thumbnail"] : []),
  "hentry",
  ...collection.taxonomies.flatMap((taxonomy) =>
    index
      .termsOf(post, taxonomy)
      .map((id) => `${getTaxonomy(taxonomy).classPrefix}-${index.term(id)?.slug ?? id}`),
  ),
];
