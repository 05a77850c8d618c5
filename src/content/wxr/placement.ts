/** Where a post comes to stand: what it points at by the ids of this site, and a slug that no other has. Decides only; stores nothing. */

import { hasUniqueSlug } from "../library.js";
import { isSlugTaken, saneParent } from "../posts/writing.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns } from "../records.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";
import type { References } from "./post-of-item.js";

/** Ids of this site by the ids of the file; `undefined` for what is not here. */
export interface Targets {
  readonly post: (id: number) => number | undefined;
  readonly term: (id: number) => number | undefined;
}

export interface Pointed {
  /** What it points at in vain is left as it was before, or is none. */
  readonly post: Post;
  /** Whether its parent is missing. */
  readonly isOrphan: boolean;
  /** What it points at that is not here. */
  readonly missing: readonly string[];
}

export function pointed(
  post: Post,
  { parent, featuredMedia, object }: References,
  targets: Targets,
): Pointed {
  const missing: string[] = [];
  const find = (what: string, id: number, among: (id: number) => number | undefined): number | undefined => {
    const found = among(id);
    if (found === undefined) missing.push(`${what} ${id}`);
    return found;
  };
  const above = parent > 0 ? find("parent", parent, targets.post) : 0;
  const picture = featuredMedia > 0 ? find("featured media", featuredMedia, targets.post) : 0;
  const shown = object === null ? undefined : find("object", object.id, targets[object.kind]);
  return {
    post: {
      ...post,
      parent: above ?? post.parent,
      featuredMedia: picture ?? post.featuredMedia,
      ...(shown === undefined || object === null || post.menuItem === null
        ? {}
        : { target: `${object.kind}/${shown}`, menuItem: { ...post.menuItem, objectId: shown } }),
    },
    isOrphan: above === undefined,
    missing,
  };
}

/** Slugs and parents of posts that are about to be stored together. */
export interface Placement {
  /** The post as it is stored: its parent not below itself, its slug its own. `wanted`: the slug in the file. */
  readonly place: (post: Post, wanted: string) => Post;
  readonly note: (post: PostColumns) => void;
}

/** By type, parent and slug the number to try next: thousands of equal slugs must not each try them all. */
export type SlugNumbers = Map<string, number>;

export function createPlacement({
  index,
  site,
  numbers,
}: {
  readonly index: SiteIndex;
  readonly site: Site;
  readonly numbers: SlugNumbers;
}): Placement {
  const placed = new Map<number, PostColumns>();
  const bySlug = new Map<string, PostColumns[]>();

  function note(post: PostColumns): void {
    placed.set(post.id, post);
    bySlug.set(post.slug, [...(bySlug.get(post.slug) ?? []), post]);
  }

  function slugFor(post: Post, wanted: string): string {
    if (!hasUniqueSlug(post)) return wanted;
    const base = wanted || site.slug(post.title) || String(post.id);
    const isHeld = isSlugTaken(post, indexBeside, (slug) => bySlug.get(slug) ?? []);
    const key = `${post.type}/${post.type === "page" ? post.parent : 0}/${base}`;
    const first = numbers.get(key) ?? 2;
    let tries = 0;
    const slug = uniqueSlug(
      base,
      (tried) => {
        tries += 1;
        return isReservedSlug(tried, post.type) || isHeld(tried);
      },
      first,
    );
    if (tries > 1) numbers.set(key, first + tries - 1);
    return slug;
  }

  /** What is stored together is as it will be, the rest as it is. */
  const indexBeside: SiteIndex = { ...index, post: (id) => (placed.has(id) ? undefined : index.post(id)) };
  const parents = {
    post: (id: number) => (placed.get(id) ?? index.post(id)) as ReturnType<SiteIndex["post"]>,
  };

  return {
    note,
    place(post, wanted) {
      const rooted = { ...post, parent: saneParent(post, parents) };
      const whole = { ...rooted, slug: slugFor(rooted, wanted) };
      note(whole);
      return whole;
    },
  };
}
