/** The tree of pages: what stands above one. */

import type { SiteIndex } from "../query/site-index.js";
import type { PostColumns } from "../records/records.js";

/** Deeper than any real tree; a walk ends here whatever is stored. */
const MAX_DEPTH = 100;

/** Ids of the posts above, nearest first. Ends on a cycle, which no writer of ours stores. */
export function listAncestors(post: Pick<PostColumns, "id" | "parent">, index: SiteIndex): readonly number[] {
  const above: number[] = [];
  for (let at = index.post(post.parent); at !== undefined; at = index.post(at.parent)) {
    if (at.id === post.id || above.includes(at.id) || above.length === MAX_DEPTH) break;
    above.push(at.id);
  }
  return above;
}
