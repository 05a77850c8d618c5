/** Assigns the posts of an import their parents and slugs. Decides only; stores nothing. */

import { isSlugTaken } from "../posts/post-slug.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns } from "../records/records.js";
import { hasUniqueSlug } from "../records/unique-names.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";
import { listAncestorIds } from "./ancestors.js";

/**
 * The number to try next, by type, parent and slug. Thousands of equal slugs must not each try all
 * numbers.
 */
export type SlugNumbers = ReadonlyMap<string, number>;

/** Slugs and parents of posts that are stored in one transaction. */
export interface Placement {
  /**
   * Returns the post as it is stored, with a slug of its own. A post whose parent is below it moves
   * to the root. `wanted`: the slug in the file.
   */
  readonly place: (post: Post, wanted: string) => Post;
  /** Takes a post that keeps its place into account, and returns it. */
  readonly keep: (post: Post) => Post;
  /** Numbers to remember for later placements, once these posts are stored. */
  readonly nextNumbers: SlugNumbers;
}

export function createPlacement({
  index,
  site,
  numbers,
  expectUnchanged,
}: {
  readonly index: SiteIndex;
  readonly site: Site;
  readonly numbers: SlugNumbers;
  /** Called for each ancestor of a placed post: it must not move before that post is stored. */
  readonly expectUnchanged: (id: number) => void;
}): Placement {
  const placed = new Map<number, PostColumns>();
  const bySlug = new Map<string, PostColumns[]>();
  const nextNumbers = new Map<string, number>();
  /** The index without the posts that are placed here: they count as they will be stored. */
  const otherPosts: SiteIndex = { ...index, post: (id) => (placed.has(id) ? undefined : index.post(id)) };
  const getParent = (id: number): number => (placed.get(id) ?? index.post(id))?.parent ?? 0;

  function keep(post: Post): Post {
    placed.set(post.id, post);
    bySlug.set(post.slug, [...(bySlug.get(post.slug) ?? []), post]);
    return post;
  }

  function findFreeSlug(post: Post, wanted: string): string {
    if (!hasUniqueSlug(post)) return wanted;
    const base = wanted || site.slug(post.title) || String(post.id);
    const isTaken = isSlugTaken(post, otherPosts, (slug) => bySlug.get(slug) ?? []);
    const key = `${post.type}/${post.type === "page" ? post.parent : 0}/${base}`;
    const first = nextNumbers.get(key) ?? numbers.get(key) ?? 2;
    let tries = 0;
    const slug = uniqueSlug(
      base,
      (tried) => {
        tries += 1;
        return isReservedSlug(tried, post.type) || isTaken(tried);
      },
      first,
    );
    if (tries > 1) nextNumbers.set(key, first + tries - 1);
    return slug;
  }

  return {
    keep,
    nextNumbers,
    place(post, wanted) {
      const ancestors = listAncestorIds(post.id, post.parent, getParent);
      for (const id of ancestors ?? []) if (index.post(id) !== undefined) expectUnchanged(id);
      const rooted = { ...post, parent: ancestors === undefined ? 0 : post.parent };
      return keep({ ...rooted, slug: findFreeSlug(rooted, wanted) });
    },
  };
}
