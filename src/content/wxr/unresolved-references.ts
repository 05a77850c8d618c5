/** What an imported post points at that is not here yet: what is kept of it, and what is said of it. Pure. */

import type { Post } from "../records/records.js";
import type { References } from "./item-to-post.js";
import type { Missing, ReferenceName } from "./placement.js";
import type { WxrItem } from "./types.js";

/** A stored post that points at something that was not here yet. */
export interface PendingPost {
  readonly id: number;
  readonly item: Pick<WxrItem, "line" | "id" | "size">;
  /** That it takes where it is placed; `undefined`: the one that it has. */
  readonly slug: string | undefined;
  readonly open: readonly ReferenceName[];
  readonly references: References;
}

const WORDS: { readonly [name in ReferenceName]: string } = {
  parent: "parent",
  featuredMedia: "featured media",
  object: "object",
};

/** A page that waits for its parent has a slug that no page is given, so that it takes none from another. */
export const waitingSlug = (id: number): string => `${id}--import`;
export const isWaiting = ({ id, slug }: Post): boolean => slug === waitingSlug(id);

/** What is kept of an item while its post waits. */
export const idle = ({ line, id, size }: WxrItem): PendingPost["item"] => ({ line, id, size });

export const listUnresolved = (missing: readonly Missing[], isRefused: boolean): readonly ReferenceName[] => [
  ...new Set([...missing.map(({ name }) => name), ...(isRefused ? (["parent"] as const) : [])]),
];

export function withUnresolved(whole: Post, open: readonly ReferenceName[]): Post {
  const { importedOpen: _, ...post } = whole;
  return open.length === 0 ? post : { ...post, importedOpen: open };
}

export function listUnresolvedWarnings(
  { line, id }: PendingPost["item"],
  missing: readonly Missing[],
  isRefused: boolean,
): readonly { readonly line: number; readonly message: string }[] {
  const messages = missing.map(
    (one) => `The item ${id} points at something that is not here: ${WORDS[one.name]} ${one.id}.`,
  );
  if (isRefused) messages.push(`The item ${id} hangs below none: its parent hangs below it.`);
  return messages.map((message) => ({ line, message }));
}
