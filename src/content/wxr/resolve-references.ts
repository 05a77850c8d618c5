/** Replaces the ids of the file in references of posts with the ids of this site. Pure. */

import type { Post } from "../records/records.js";
import type { References } from "./item-to-post.js";
import type { WxrItem } from "./types.js";

/** Look up ids of this site by ids of the file; `undefined` if the target is not here. */
export interface ReferenceTargets {
  /** `menu`: the slug of its menu if it is a menu item, else empty. */
  readonly post: (id: number, menu: string) => number | undefined;
  readonly term: (id: number) => number | undefined;
}

/** Names of references. A record stores the names of its unresolved ones. */
export type ReferenceName = "parent" | "featuredMedia" | "object";

export interface MissingTarget {
  readonly name: ReferenceName;
  /** Id in the file. */
  readonly id: number;
}

export interface ResolvedPost {
  /** A reference whose target is missing keeps its value. */
  readonly post: Post;
  readonly missing: readonly MissingTarget[];
}

/** Sets the references named in `only`, or all of them if it is `undefined`. */
export function resolveReferences(
  post: Post,
  { parent, menu, featuredMedia, object }: References,
  targets: ReferenceTargets,
  only: readonly ReferenceName[] | undefined,
): ResolvedPost {
  const missing: MissingTarget[] = [];
  const isSelected = (name: ReferenceName): boolean => only === undefined || only.includes(name);

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
  readonly id: number;
  readonly item: Pick<WxrItem, "line" | "id" | "size">;
  /** The slug that it gets once it has its place; `undefined`: it keeps its slug. */
  readonly slug: string | undefined;
  readonly open: readonly ReferenceName[];
  readonly references: References;
}

export interface ImportNote {
  readonly line: number;
  readonly message: string;
}

const WORDS: { readonly [name in ReferenceName]: string } = {
  parent: "parent",
  featuredMedia: "featured media",
  object: "object",
};

/**
 * The slug of a page that waits for its parent. No page can be given such a slug, so that it takes
 * none from another page.
 */
export const toWaitingSlug = (id: number): string => `${id}--import`;
export const isWaiting = ({ id, slug }: Post): boolean => slug === toWaitingSlug(id);

/** `isRefused`: the parent exists, but is below the post. */
export const listUnresolved = (
  missing: readonly MissingTarget[],
  isRefused: boolean,
): readonly ReferenceName[] => [
  ...new Set([...missing.map(({ name }) => name), ...(isRefused ? (["parent"] as const) : [])]),
];

export function withUnresolved(whole: Post, open: readonly ReferenceName[]): Post {
  const { importedOpen: _, ...post } = whole;
  return open.length === 0 ? post : { ...post, importedOpen: open };
}

export function listUnresolvedWarnings(
  { line, id }: PendingPost["item"],
  missing: readonly MissingTarget[],
  isRefused: boolean,
): readonly ImportNote[] {
  const messages = missing.map(
    (target) => `The item ${id} refers to a missing ${WORDS[target.name]}: ${target.id}.`,
  );
  if (isRefused) messages.push(`The item ${id} was stored at the top: its parent is below it.`);
  return messages.map((message) => ({ line, message }));
}
