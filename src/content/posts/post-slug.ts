/** The rules for slugs: two posts whose addresses would be equal have different ones. */

import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns, PostType } from "../records/records.js";
import { hasUniqueSlug } from "../records/unique-names.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";

/** Types with an address of their own. An attachment's address is like that of any of them. */
const ADDRESSED: readonly PostType[] = ["post", "page", "attachment"];

/**
 * True if two posts with the same slug would have the same address. Pages share one only below the
 * same parent; an attachment shares one with every post that has an address.
 */
const shareAddress = (post: PostColumns, other: PostColumns): boolean => {
  if (post.type === "attachment") return ADDRESSED.includes(other.type);
  const isSibling = other.parent === post.parent;
  if (other.type === post.type) return post.type !== "page" || isSibling;
  return post.type === "page" && other.type === "attachment" && isSibling;
};

/**
 * Returns a function that tells whether another post already has a slug where `post` would have it.
 *
 * `findPending`: posts with a slug that the same change is about to store.
 */
export function isSlugTaken(
  post: PostColumns,
  index: SiteIndex,
  findPending: (slug: string) => readonly PostColumns[] = () => [],
): (slug: string) => boolean {
  const types = new Set([post.type, ...ADDRESSED]);
  const isConflict = (other: PostColumns | undefined): boolean =>
    other !== undefined && other.id !== post.id && shareAddress(post, other);
  return (slug) =>
    findPending(slug).some(isConflict) ||
    [...types].some((type) => index.withSlug(type, slug).some((id) => isConflict(index.post(id))));
}

/**
 * Returns the slug to store. A draft keeps its slug, even one that is taken. Like in WordPress, a
 * slug becomes unique at once if the client writes it.
 */
export function resolveSlug(
  post: Post,
  { isGiven, site, index }: { readonly isGiven: boolean; readonly site: Site; readonly index: SiteIndex },
): string {
  if (!hasUniqueSlug(post) && !isGiven) return post.slug;
  // A title without letters and digits has no slug. WordPress uses the id then.
  const wanted = post.slug || site.slug(post.title) || String(post.id);
  const isTaken = isSlugTaken(post, index);
  return uniqueSlug(wanted, (slug) => isReservedSlug(slug, post.type) || isTaken(slug));
}
