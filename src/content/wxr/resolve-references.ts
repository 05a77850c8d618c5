/** Replaces the ids of the file in references of posts with the ids of this site. Pure. */

import type { Post } from "../records/records.js";
import type { References } from "./item-to-post.js";

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
