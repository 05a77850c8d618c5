/** Marks imported posts whose references have no target yet, and words the warnings. Pure. */

import type { Post } from "../records/records.js";
import type { References } from "./item-to-post.js";
import type { MissingTarget, ReferenceName } from "./resolve-references.js";
import type { WxrItem } from "./types.js";

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
