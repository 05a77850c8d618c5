/** Which states of a post are kept as revisions, how many of them, and how they go. Knows no request and no answer. */

import type { Json, JsonObject } from "../../../schema/types.js";
import { type Collection, getCollection } from "../../collections.js";
import type { Post, Revision } from "../../records/records.js";
import type { ContentRepository, StoredRevision, Transaction } from "../../repository/content-repository.js";

/** The texts of a post that its revisions keep, where its type has them. */
export const TEXTS = ["title", "content", "excerpt"] as const;

/** Those of the stored meta fields that revisions keep, with their defaults. */
export const revisionedMeta = (stored: JsonObject, { meta }: Collection): JsonObject =>
  Object.fromEntries(
    Object.entries(meta).flatMap(([name, field]): [string, Json][] =>
      field.isRevisioned === true ? [[name, stored[name] ?? field.default]] : [],
    ),
  );

const normalised = (text: string): string =>
  text
    .trim()
    .replace(/[\r\n]+/g, "\n")
    .replace(/[ \t]+/g, " ");

/** Whether two texts say the same: the amount of white space does not count, as in the reference. */
export const isSameText = (a: string, b: string): boolean => a === b || normalised(a) === normalised(b);

export const isSameMeta = (a: JsonObject, b: JsonObject): boolean =>
  Object.keys(a).every((name) => a[name] === b[name]);

/** The revisions of a post that are autosaves. */
export const listAutosaves = ({ autosaves }: Post): ReadonlySet<number> => new Set(Object.values(autosaves));

/** Whether an update that made `post` leaves a revision: when it differs from the newest one, or there is none. */
function needsRevision(post: Post, newest: Revision | undefined): boolean {
  if (post.status === "auto-draft") return false;
  if (newest === undefined) return true;
  const meta = revisionedMeta(post.meta, getCollection(post.type));
  return !TEXTS.every((name) => isSameText(post[name], newest[name])) || !isSameMeta(meta, newest.meta);
}

/**
 * `post`, which is about to be stored, with the revision that it leaves; the oldest ones above `most` go. Autosaves do not count and stay.
 *
 * `author`: who changed it.
 */
export async function keepRevision(
  draft: Transaction,
  post: Post,
  {
    library,
    author,
    most,
  }: { readonly library: ContentRepository; readonly author: number; readonly most: number },
): Promise<Post> {
  const collection = getCollection(post.type);
  if (!collection.hasRevisions) return post;
  const autosaves = listAutosaves(post);
  const kept = post.revisions.filter((id) => !autosaves.has(id));
  const [newest] = await library.revisions(kept.slice(-1));
  if (!needsRevision(post, newest)) return post;
  const id = await draft.newId("post");
  const { modified, modifiedGmt, title, content, excerpt, isTrusted, meta } = post;
  draft.putRevision({
    id,
    parent: post.id,
    author,
    date: modified,
    dateGmt: modifiedGmt,
    title,
    content,
    excerpt,
    isTrusted,
    meta: revisionedMeta(meta, collection),
  });
  const excess = new Set(kept.slice(0, Math.max(0, kept.length + 1 - most)));
  // All but autosaves are written once.
  for (const old of excess) draft.removeRevision(old, 1);
  return { ...post, revisions: [...post.revisions.filter((old) => !excess.has(old)), id] };
}

/** Removes posts with their revisions. Those that do not exist are passed over. */
export async function removePosts(
  draft: Transaction,
  ids: readonly number[],
  library: Pick<ContentRepository, "posts" | "revisions">,
): Promise<void> {
  const posts = (await library.posts(ids)).filter((post) => post !== undefined);
  for (const post of posts) {
    draft.removePost(post);
    const autosaves = listAutosaves(post);
    for (const id of post.revisions) if (!autosaves.has(id)) draft.removeRevision(id, 1);
  }
  const autosaves = posts.flatMap((post) => [...listAutosaves(post)]);
  for (const autosave of await library.revisions(autosaves)) {
    if (autosave !== undefined) draft.removeRevision(autosave.id, autosave.version);
  }
}

/** Removes one revision of a post that stays. */
export function removeRevision(draft: Transaction, post: Post, { id, version }: StoredRevision): void {
  draft.removeRevision(id, version);
  draft.putBookkeeping({
    ...post,
    revisions: post.revisions.filter((other) => other !== id),
    autosaves: Object.fromEntries(Object.entries(post.autosaves).filter(([, other]) => other !== id)),
  });
}
