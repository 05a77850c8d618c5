/** The rules for slugs: two posts whose addresses would be equal have different ones. */

import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns } from "../records/records.js";
import { hasUniqueSlug } from "../records/unique-names.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";

/** Returns `wanted`, or `wanted` with a number, so that no other post has it where `post` would. */
export const findFreeSlug = (post: PostColumns, wanted: string, index: SiteIndex): string =>
  uniqueSlug(
    wanted,
    (slug) => isReservedSlug(slug, post.type) || index.isSlugTaken(post, slug, (id) => id === post.id),
    {
      nextFree: (stem, from) => index.nextFreeSlug(post, stem, from),
      vacated: [index.post(post.id)?.slug],
    },
  );

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
  return findFreeSlug(post, post.slug || site.slug(post.title) || String(post.id), index);
}
