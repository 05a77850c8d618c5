/** Where a post comes to stand: what it points at by the ids of this site, and a slug that no other has. Decides only; stores nothing. */

import { isSlugTaken } from "../posts/write-post.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns } from "../records/records.js";
import { hasUniqueSlug } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";
import { listAncestorIds } from "./ancestors.js";
import type { References } from "./item-to-post.js";

/** Ids of this site by the ids of the file; `undefined` for what is not here. */
export interface Targets {
  readonly post: (id: number) => number | undefined;
  readonly term: (id: number) => number | undefined;
}

/** A reference by what it is for: a record keeps the names of those that are open. */
export type ReferenceName = "parent" | "featuredMedia" | "object";

export interface Missing {
  readonly name: ReferenceName;
  /** In the file. */
  readonly id: number;
}

export interface Pointed {
  /** What it points at in vain is left as it is. */
  readonly post: Post;
  readonly missing: readonly Missing[];
}

/** `only`: those that are set, the rest is left as it is; `undefined` for all. */
export function pointed(
  post: Post,
  { parent, featuredMedia, object }: References,
  targets: Targets,
  only: readonly ReferenceName[] | undefined,
): Pointed {
  const missing: Missing[] = [];
  /** `held`: what the post points at now. */
  function find(
    name: ReferenceName,
    id: number,
    held: number,
    among: (id: number) => number | undefined,
  ): number {
    if (only !== undefined && !only.includes(name)) return held;
    if (id <= 0 && name !== "object") return 0;
    const found = among(id);
    if (found === undefined) missing.push({ name, id });
    return found ?? held;
  }
  const { menuItem } = post;
  const placed = {
    ...post,
    parent: find("parent", parent, post.parent, targets.post),
    featuredMedia: find("featuredMedia", featuredMedia, post.featuredMedia, targets.post),
  };
  if (object === null || menuItem === null) return { post: placed, missing };
  const objectId = find("object", object.id, 0, targets[object.kind]);
  if (objectId === 0) return { post: placed, missing };
  return {
    post: { ...placed, target: `${object.kind}/${objectId}`, menuItem: { ...menuItem, objectId } },
    missing,
  };
}

/** Slugs and parents of posts that are about to be stored together. */
export interface Placement {
  /** The post as it is stored: at the root where its parent is below itself, its slug its own. `wanted`: the slug in the file. */
  readonly place: (post: Post, wanted: string) => Post;
  /** Knows a post that stays where it is, and answers it. */
  readonly note: (post: Post) => Post;
  /** What `numbers` has to learn once they are stored. */
  readonly nextNumbers: SlugNumbers;
}

/** By type, parent and slug the number to try next: thousands of equal slugs must not each try them all. */
export type SlugNumbers = ReadonlyMap<string, number>;

export function createPlacement({
  index,
  site,
  numbers,
  basedOn,
}: {
  readonly index: SiteIndex;
  readonly site: Site;
  readonly numbers: SlugNumbers;
  /** Told of every post above one that is placed: it must not move before that one is stored. */
  readonly basedOn: (id: number) => void;
}): Placement {
  const placed = new Map<number, PostColumns>();
  const bySlug = new Map<string, PostColumns[]>();
  const nextNumbers = new Map<string, number>();

  function note(post: Post): Post {
    placed.set(post.id, post);
    bySlug.set(post.slug, [...(bySlug.get(post.slug) ?? []), post]);
    return post;
  }

  function slugFor(post: Post, wanted: string): string {
    if (!hasUniqueSlug(post)) return wanted;
    const base = wanted || site.slug(post.title) || String(post.id);
    const isHeld = isSlugTaken(post, indexBeside, (slug) => bySlug.get(slug) ?? []);
    const key = `${post.type}/${post.type === "page" ? post.parent : 0}/${base}`;
    const first = nextNumbers.get(key) ?? numbers.get(key) ?? 2;
    let tries = 0;
    const slug = uniqueSlug(
      base,
      (tried) => {
        tries += 1;
        return isReservedSlug(tried, post.type) || isHeld(tried);
      },
      first,
    );
    if (tries > 1) nextNumbers.set(key, first + tries - 1);
    return slug;
  }

  /** What is stored together is as it will be, the rest as it is. */
  const indexBeside: SiteIndex = { ...index, post: (id) => (placed.has(id) ? undefined : index.post(id)) };
  const parentOf = (id: number): number => (placed.get(id) ?? index.post(id))?.parent ?? 0;

  return {
    note,
    nextNumbers,
    place(post, wanted) {
      const above = listAncestorIds(post.id, post.parent, parentOf);
      for (const id of above ?? []) if (index.post(id) !== undefined) basedOn(id);
      const rooted = { ...post, parent: above === undefined ? 0 : post.parent };
      return note({ ...rooted, slug: slugFor(rooted, wanted) });
    },
  };
}
