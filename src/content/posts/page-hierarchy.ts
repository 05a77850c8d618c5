/** The rules for the parents of pages: no cycles, and no orphans after a removal. */

import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns } from "../records/records.js";
import { hasUniqueSlug } from "../records/unique-names.js";
import { uniqueSlug } from "../text/slug.js";

/** Returns the parent to store: 0 instead of the page itself or a page below it. */
export function resolveParent({ id, type, parent }: PostColumns, index: Pick<SiteIndex, "post">): number {
  if (type !== "page") return parent;
  const seen = new Set([id]);
  for (let at = parent; at !== 0; at = index.post(at)?.parent ?? 0) {
    if (seen.has(at)) return 0;
    seen.add(at);
  }
  return parent;
}

/**
 * Moves the children of a removed page up to its parent. A slug that is taken there gets a suffix.
 */
export function reparentChildren(
  children: readonly Post[],
  removed: PostColumns,
  index: SiteIndex,
): readonly Post[] {
  const assigned = new Set<string>();
  return children.map((child) => {
    const moved = { ...child, parent: removed.parent };
    if (moved.type !== "page" || !hasUniqueSlug(moved) || moved.slug === "") return moved;
    const isMoving = (id: number): boolean => id === moved.id || id === removed.id;
    const isTaken = (slug: string): boolean => assigned.has(slug) || index.isSlugTaken(moved, slug, isMoving);
    const slug = uniqueSlug(moved.slug, isTaken, {
      nextFree: (stem, from) => index.nextFreeSlug(moved, stem, from),
      vacated: [removed.slug],
    });
    assigned.add(slug);
    return { ...moved, slug };
  });
}
