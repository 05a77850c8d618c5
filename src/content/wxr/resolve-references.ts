/**
 * Gives the posts of an import their places on this site: replaces the ids of the file in
 * references, and assigns parents and slugs. Decides only; stores nothing.
 */

import type { SiteIndex } from "../query/site-index.js";
import { createPostSlugs } from "../query/slug-index.js";
import type { ImportedReference, Post, PostColumns } from "../records/records.js";
import { hasSlugPerParent, hasUniqueSlug } from "../records/unique-names.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";
import type { References } from "./item-to-post.js";

/** Look up ids of this site by ids of the file; `undefined` if the target is not here. */
export interface ReferenceTargets {
  /** `menu`: the slug of its menu if it is a menu item, else empty. */
  post: (id: number, menu: string) => number | undefined;
  term: (id: number) => number | undefined;
  /** The identity of a post of the file, whether it is here or not. */
  identity: (id: number, menu: string) => string;
}

interface MissingTarget {
  name: ImportedReference;
  /** Id in the file. */
  id: number;
}

export interface ResolvedPost {
  /** A reference whose target is missing keeps its value. */
  post: Post;
  missing: MissingTarget[];
}

/** Sets the references named in `only`, or all of them if it is `undefined`. */
export function resolveReferences(
  post: Post,
  { parent, menu, featuredMedia, object }: References,
  targets: ReferenceTargets,
  only: readonly ImportedReference[] | undefined,
): ResolvedPost {
  const missing: MissingTarget[] = [];
  const isSelected = (name: ImportedReference): boolean => only === undefined || only.includes(name);

  function resolve(name: "parent" | "featuredMedia", id: number): number {
    if (!isSelected(name)) return post[name];
    if (id <= 0) return 0;
    const found = targets.post(id, name === "parent" ? menu : "");
    if (found === undefined) missing.push({ name, id });
    return found ?? post[name];
  }

  const placed: Post = {
    ...post,
    parent: resolve("parent", parent),
    featuredMedia: resolve("featuredMedia", featuredMedia),
  };
  const { menuItem } = post;
  if (object === null || menuItem === null || !isSelected("object")) return { post: placed, missing };
  const objectId = targets[object.kind](object.id, "");
  if (objectId === undefined) missing.push({ name: "object", id: object.id });
  if (objectId === undefined || objectId === 0) return { post: placed, missing };
  return {
    post: { ...placed, target: `${object.kind}/${objectId}`, menuItem: { ...menuItem, objectId } },
    missing,
  };
}

/** A stored post with a reference whose target was not here yet. */
export interface PendingPost {
  id: number;
  item: { line: number; id: number; size: number };
  /** The slug that it gets once it has its place; `undefined`: it keeps its slug. */
  slug: string | undefined;
  open: ImportedReference[];
  references: References;
}

export interface ImportNote {
  line: number;
  message: string;
}

const WORDS: { [name in ImportedReference]: string } = {
  parent: "parent",
  featuredMedia: "featured media",
  object: "object",
};

/**
 * The slug of a page that waits for its parent. No page can have such a slug, so that it takes
 * none from another page.
 */
export const toWaitingSlug = (id: number): string => `${id}--import`;
export const isWaiting = ({ id, slug }: Post): boolean => slug === toWaitingSlug(id);

/** `isRefused`: the parent exists, but is below the post. */
export const listUnresolved = (missing: MissingTarget[], isRefused: boolean): ImportedReference[] => [
  ...new Set([...missing.map(({ name }) => name), ...(isRefused ? (["parent"] as const) : [])]),
];

export const listOpen = ({ importedOpen = {} }: PostColumns) =>
  Object.keys(importedOpen) as ImportedReference[];

/** Stores which references are open, so that an import of another file can set them. */
export function withUnresolved(
  whole: Post,
  open: ImportedReference[],
  { parent, menu, featuredMedia, object }: References,
  { identity }: ReferenceTargets,
): Post {
  const { importedOpen: _, ...post } = whole;
  if (open.length === 0) return post;
  const identities: { [name in ImportedReference]: string } = {
    parent: identity(parent, menu),
    featuredMedia: identity(featuredMedia, ""),
    object: object?.kind === "post" ? identity(object.id, "") : "",
  };
  return { ...post, importedOpen: Object.fromEntries(open.map((name) => [name, identities[name]])) };
}

/**
 * Sets the open references of a post whose targets are here now. The result may have another
 * parent, and is not placed there yet.
 */
export function resolveOpen(whole: Post, getId: (identity: string) => number | undefined): Post {
  const { importedOpen = {}, ...post } = whole;
  const find = (name: ImportedReference): number | undefined => {
    const identity = importedOpen[name] ?? "";
    return identity === "" ? undefined : getId(identity);
  };
  const open = listOpen(whole).filter((name) => find(name) === undefined);
  const objectId = find("object");
  const { menuItem } = post;
  const isPlaced = objectId !== undefined && menuItem !== null;
  return {
    ...post,
    parent: find("parent") ?? post.parent,
    featuredMedia: find("featuredMedia") ?? post.featuredMedia,
    target: isPlaced ? `post/${objectId}` : post.target,
    menuItem: isPlaced ? { ...menuItem, objectId } : menuItem,
    ...(open.length === 0
      ? {}
      : { importedOpen: Object.fromEntries(open.map((name) => [name, importedOpen[name] ?? ""])) }),
  };
}

export function listUnresolvedWarnings(
  { line, id }: PendingPost["item"],
  missing: MissingTarget[],
  isRefused: boolean,
): ImportNote[] {
  const messages = missing.map(
    (target) => `The item ${id} refers to a missing ${WORDS[target.name]}: ${target.id}.`,
  );
  if (isRefused) messages.push(`The item ${id} was stored at the top: its parent is below it.`);
  return messages.map((message) => ({ line, message }));
}

// Assigns the posts of an import their parents and slugs. Decides only; stores nothing.

/** Slugs and parents of posts that are stored in one transaction. */
export interface Placement {
  /**
   * Returns the post as it is stored, with a separate slug. A post whose parent is below it moves
   * to the root. `wanted`: the slug in the file.
   */
  place: (post: Post, wanted: string) => Post;
  /** Takes a post that keeps its place into account, and returns it. */
  keep: (post: Post) => Post;
}

export function createPlacement({
  index,
  site,
  expectUnchanged,
}: {
  index: SiteIndex;
  site: Site;
  /** Called for each ancestor of a placed post: it must not move before that post is stored. */
  expectUnchanged: (id: number) => void;
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
    const key = `${post.type}/${hasSlugPerParent(post.type) ? post.parent : 0}/${base}`;
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
): number[] | undefined {
  const ancestors = new Set<number>();
  for (let at = parent; at !== 0; at = getParent(at)) {
    if (at === id || ancestors.has(at) || ancestors.size === MAX_DEPTH) return undefined;
    ancestors.add(at);
  }
  return [...ancestors];
}
