/** Removes posts with everything that is stored for them alone. */

import type { Post } from "../records/records.js";
import type { ContentRepository, Transaction } from "./content-repository.js";

/** Returns which revisions of a post are autosaves. */
export const listAutosaves = ({ autosaves }: Post): Set<number> => new Set(Object.values(autosaves));

/** Removes posts with their revisions and autosaves. Skips ids that do not exist. */
export async function removePosts(
  transaction: Transaction,
  ids: number[],
  repository: ContentRepository,
): Promise<void> {
  const posts = (await repository.posts(ids)).filter((post) => post !== undefined);
  for (const post of posts) {
    transaction.removePost(post);
    const autosaves = listAutosaves(post);
    // Only autosaves are written more than once.
    for (const id of post.revisions) if (!autosaves.has(id)) transaction.removeRevision(id, 1);
  }
  const autosaves = posts.flatMap((post) => [...listAutosaves(post)]);
  for (const autosave of await repository.revisions(autosaves)) {
    if (autosave !== undefined) transaction.removeRevision(autosave.id, autosave.version);
  }
}
