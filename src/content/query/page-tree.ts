/** Walks up the tree of pages. */

import type { PostColumns } from "../records/records.js";
import type { SiteIndex } from "./site-index.js";

/** Deeper than any real tree. A walk ends here, whatever is stored. */
const MAX_DEPTH = 100;

/** Returns the ids of the posts above a post, nearest first. Ends at a cycle, if one is stored. */
export function listAncestors(
  post: Pick<PostColumns, "id" | "parent">,
  index: Pick<SiteIndex, "post">,
): readonly number[] {
  const ancestors: number[] = [];
  for (let at = index.post(post.parent); at !== undefined; at = index.post(at.parent)) {
    if (at.id === post.id || ancestors.includes(at.id) || ancestors.length === MAX_DEPTH) break;
    ancestors.push(at.id);
  }
  return ancestors;
}
