/**
 * Who may see and remove the revisions of a post, checked in WordPress's order. A check throws the
 * error that the client receives.
 */

import type { Caller } from "../../auth/caller.js";
import type { PostColumns, PostType } from "../../records/records.js";
import type { ContentRepository, StoredRevision } from "../../repository/content-repository.js";
import { RestError, refusal } from "../../rest/error.js";

export interface RevisionPermissions {
  /**
   * Returns the post whose revisions or autosaves are requested.
   *
   * @throws RestError 404 `rest_post_invalid_parent`; 401 or 403 `rest_cannot_read`
   */
  read: (id: number, caller: Caller) => PostColumns;
  /**
   * Returns a revision of that post.
   *
   * @throws RestError 404 `rest_post_invalid_id`, `rest_revision_parent_id_mismatch`
   */
  find: (id: number, parent: PostColumns) => Promise<StoredRevision>;
  /**
   * Returns a revision that the caller may remove. That requires deleting the post, and editing it,
   * since the response contains the revision. Throws the errors of both.
   */
  remove: (id: number, parentId: number, caller: Caller) => Promise<StoredRevision>;
}

/** `what`: the word in messages. */
export function createRevisionPermissions(
  type: PostType,
  { repository, what }: { repository: ContentRepository; what: "revisions" | "autosaves" },
): RevisionPermissions {
  const findParent = (id: number): PostColumns => {
    const post = repository.index.post(id);
    if (post?.type === type) return post;
    throw new RestError(404, "rest_post_invalid_parent", "Invalid post parent ID.");
  };

  const read: RevisionPermissions["read"] = (id, caller) => {
    const parent = findParent(id);
    if (caller.may("edit", parent)) return parent;
    throw refusal(caller, "rest_cannot_read", `Sorry, you are not allowed to view ${what} of this post.`);
  };

  const find: RevisionPermissions["find"] = async (id, parent) => {
    const [revision] = await repository.revisions([id]);
    if (revision === undefined) throw new RestError(404, "rest_post_invalid_id", "Invalid revision ID.");
    if (revision.parent === parent.id) return revision;
    throw new RestError(
      404,
      "rest_revision_parent_id_mismatch",
      `The revision does not belong to the specified parent with id of "${parent.id}".`,
    );
  };

  return {
    read,
    find,
    async remove(id, parentId, caller) {
      const parent = findParent(parentId);
      if (!caller.may("delete", parent)) {
        throw refusal(
          caller,
          "rest_cannot_delete",
          "Sorry, you are not allowed to delete revisions of this post.",
        );
      }
      const revision = await find(id, parent);
      read(parentId, caller);
      return revision;
    },
  };
}
