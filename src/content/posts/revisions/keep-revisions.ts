/** Decides which states of a post are kept as revisions, and how many. Knows no HTTP. */

import type { Json, JsonObject } from "../../../schema/types.js";
import { type Collection, getCollection } from "../../records/content-model.js";
import type { Post, Revision } from "../../records/records.js";
import type { ContentRepository, StoredRevision, Transaction } from "../../repository/content-repository.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import type { KeepRevision } from "../post-base.js";
import { isSameMeta } from "../text-fields.js";

/** The texts that a revision holds, if the post type has them. */
export const REVISIONED_TEXTS = ["title", "content", "excerpt"] as const;

/** Picks the meta fields that revisions hold, with their defaults. */
export const selectRevisionedMeta = (stored: JsonObject, { meta }: Collection): JsonObject =>
  Object.fromEntries(
    Object.entries(meta).flatMap(([name, field]): [string, Json][] =>
      field.isRevisioned === true ? [[name, stored[name] ?? field.default]] : [],
    ),
  );

const normaliseSpace = (text: string): string =>
  text
    .trim()
    .replace(/[\r\n]+/g, "\n")
    .replace(/[ \t]+/g, " ");

/** True if two texts differ at most in the amount of white space, as WordPress compares them. */
export const isSameText = (a: string, b: string): boolean =>
  a === b || normaliseSpace(a) === normaliseSpace(b);

/** True if `post` differs from its newest revision, or has no revision yet. */
function needsRevision(post: Post, newest: Revision | undefined, collection: Collection): boolean {
  if (post.status === "auto-draft") return false;
  if (newest === undefined) return true;
  const select = (meta: JsonObject): JsonObject => selectRevisionedMeta(meta, collection);
  return (
    !REVISIONED_TEXTS.every((name) => isSameText(post[name], newest[name])) ||
    // A field that is younger than the revision has its default there.
    !isSameMeta(select(post.meta), select(newest.meta))
  );
}

function toRevision(post: Post, id: number, author: number): Omit<Revision, "meta"> {
  const { modified, modifiedGmt, title, content, excerpt, isTrusted } = post;
  return {
    id,
    parent: post.id,
    author,
    date: modified,
    dateGmt: modifiedGmt,
    title,
    content,
    excerpt,
    isTrusted,
  };
}

/**
 * Creates the function that adds a revision to a changed post.
 *
 * `maxRevisions`: revisions per post. The oldest ones are removed; autosaves do not count and stay.
 */
export function createRevisionKeeper({
  repository,
  maxRevisions,
}: {
  repository: ContentRepository;
  maxRevisions: number;
}): KeepRevision {
  return async (transaction, post, author) => {
    const collection = getCollection(repository.index.model, post.type);
    if (!collection.hasRevisions) return post;
    const autosaves = listAutosaves(post);
    const previous = post.revisions.filter((id) => !autosaves.has(id));
    const [newest] = await repository.revisions(previous.slice(-1));
    if (!needsRevision(post, newest, collection)) return post;
    const id = await transaction.newId("post");
    const meta = selectRevisionedMeta(post.meta, collection);
    transaction.putRevision({ ...toRevision(post, id, author), meta });
    const excess = new Set(previous.slice(0, Math.max(0, previous.length + 1 - maxRevisions)));
    // Only autosaves are written more than once.
    for (const old of excess) transaction.removeRevision(old, 1);
    return { ...post, revisions: [...post.revisions.filter((old) => !excess.has(old)), id] };
  };
}

/** Removes one revision of a post that stays. */
export function removeRevision(transaction: Transaction, post: Post, { id, version }: StoredRevision): void {
  transaction.removeRevision(id, version);
  transaction.putBookkeeping({
    ...post,
    revisions: post.revisions.filter((other) => other !== id),
    autosaves: Object.fromEntries(Object.entries(post.autosaves).filter(([, other]) => other !== id)),
  });
}
