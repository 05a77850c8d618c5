/** Assigns the posts of an import their parents and slugs. Decides only; stores nothing. */

import type { SiteIndex } from "../query/site-index.js";
import { createPostSlugs } from "../query/slug-index.js";
import type { Post, PostColumns } from "../records/records.js";
import { hasUniqueSlug } from "../records/unique-names.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";

/** Slugs and parents of posts that are stored in one transaction. */
export interface Placement {
  /**
   * Returns the post as it is stored, with a slug of its own. A post whose parent is below it moves
   * to the root. `wanted`: the slug in the file.
   */
  readonly place: (post: Post, wanted: string) => Post;
  /** Takes a post that keeps its place into account, and returns it. */
  readonly keep: (post: Post) => Post;
}

export function createPlacement({
  index,
  site,
  expectUnchanged,
}: {
  readonly index: SiteIndex;
  readonly site: Site;
  /** Called for each ancestor of a placed post: it must not move before that post is stored. */
  readonly expectUnchanged: (id: number) => void;
}): Placement {
  const placed = new Map<number, PostColumns>();
  const slugs = createPostSlugs();
  /** The number to try next, by type, parent and slug: lower ones went to posts that are placed. */
  const nextNumbers = new Map<string, number>();
  const getParent = (id: number): number => (placed.get(id) ?? index.post(id))?.parent ?? 0;

  function keep(post: Post): Post {
    placed.set(post.id, post);
    slugs.add(post);
    return post;
  }

  /** Posts that are placed here count as they will be stored, others as the index has them. */
  function findFreeSlug(post: Post, wanted: string): string {
    if (!hasUniqueSlug(post)) return wanted;
    const base = wanted || site.slug(post.title) || String(post.id);
    const key = `${post.type}/${post.type === "page" ? post.parent : 0}/${base}`;
    const isTaken = (slug: string): boolean =>
      isReservedSlug(slug, post.type) ||
      slugs.isTaken(post, slug, (id) => id === post.id) ||
      index.isSlugTaken(post, slug, (id) => id === post.id || placed.has(id));
    return uniqueSlug(base, isTaken, {
      nextFree(stem, from) {
        const number = index.nextFreeSlug(post, stem, Math.max(from, nextNumbers.get(key) ?? 0));
        nextNumbers.set(key, number);
        return number;
      },
      vacated: [index.post(post.id)?.slug],
    });
  }

  return {
    keep,
    place(post, wanted) {
      const ancestors = listAncestorIds(post.id, post.parent, getParent);
      for (const id of ancestors ?? []) if (index.post(id) !== undefined) expectUnchanged(id);
      const rooted = { ...post, parent: ancestors === undefined ? 0 : post.parent };
      return keep({ ...rooted, slug: findFreeSlug(rooted, wanted) });
    },
  };
}

/** Deeper than any real tree. No walk is longer, whatever a file contains. */
const MAX_DEPTH = 100;

/**
 * Lists the ancestors that the record `id` would have below `parent`, nearest first. Returns
 * `undefined` if it must not go there: the record would be its own ancestor, the ancestors form a
 * cycle, or the tree would be deeper than {@link MAX_DEPTH}. `getParent` returns 0 for a root.
 */
export function listAncestorIds(
  id: number,
  parent: number,
  getParent: (id: number) => number,
): readonly number[] | undefined {
  const ancestors = new Set<number>();
  for (let at = parent; at !== 0; at = getParent(at)) {
    if (at === id || ancestors.has(at) || ancestors.size === MAX_DEPTH) return undefined;
    ancestors.add(at);
  }
  return [...ancestors];
}
