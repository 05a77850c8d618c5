/** The indexes of a site that a query can use. */

import type { PostColumns, PostType } from "../records/records.js";
import type { MultiMap } from "./multi-map.js";
import type { StatusPartitions } from "./partitions.js";
import type { PostRow } from "./row.js";
import type { PostSlugs } from "./slug-index.js";
import type { TermIndex } from "./term-index.js";

export interface Indexes {
  readonly rows: ReadonlyMap<number, PostRow>;
  readonly partitions: StatusPartitions;
  readonly terms: TermIndex;
  readonly slugs: PostSlugs;
  readonly stickies: MultiMap<PostType>;
  readonly defaultCategory: () => number | undefined;
}

/** True if all categories of a post were deleted. Such a post is in the default category. */
export const isOrphan = ({ columns }: { readonly columns: PostColumns }, terms: TermIndex): boolean => {
  if (columns.type !== "post") return false;
  const ids = columns.terms.category ?? [];
  return ids.length > 0 && !ids.some((id) => terms.has("category", id));
};
