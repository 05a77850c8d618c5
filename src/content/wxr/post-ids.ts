/** Lists the ids of all posts of a site. */

import { STATUSES } from "../query/row.js";
import type { SiteIndex } from "../query/site-index.js";
import type { PostType } from "../records/records.js";

const EVERYTHING = Object.fromEntries(STATUSES.map((status) => [status, "all" as const]));

/** Lists the ids of all posts of a type, in any status, in ascending order. */
export function listPostIdsOfType(index: SiteIndex, type: PostType): number[] {
  const found = index.find(
    { type, visibility: EVERYTHING, orderBy: "id", order: "asc", offset: 0, limit: Number.MAX_SAFE_INTEGER },
    () => Promise.resolve([]),
  );
  // A query without search terms returns its ids at once.
  return "ids" in found ? found.ids : [];
}

export const listPostIds = (index: SiteIndex): number[] =>
  [...index.model.types.keys()].flatMap((type) => listPostIdsOfType(index, type));
