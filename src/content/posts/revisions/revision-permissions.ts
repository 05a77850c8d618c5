/** Who may see and remove the revisions of a post, in the order in which the reference asks. Each check throws the error it is answered with. */

import type { Caller } from "../../auth/caller.js";
import type { PostColumns, PostType } from "../../records/records.js";
import type { ContentRepository, StoredRevision } from "../../repository/content-repository.js";
import { RestError, refusal } from "../../rest/error.js";

export interface RevisionPermissions {
  /** The post whose revisions, or autosaves, are asked for. Errors: RestError 404 `rest_post_invalid_parent`, 401 or 403 `rest_cannot_read`. */
  readonly read: (id: number, caller: Caller) => PostColumns;
  /** A revision of that post. Errors: RestError 404 `rest_post_invalid_id`, `rest_revision_parent_id_mismatch`. */
  readonly find: (id: number, parent: PostColumns) => Promise<StoredRevision>;
  /** A revision that the caller may remove: one of a post that he may delete, and edit, since he is answered what it was. Errors: those of both. */
  readonly remove: (id: number, parentId: number, caller: Caller) => Promise<StoredRevision>;
}

/** `what`: as people call it, `revisions`. */
export function createRevisionPermissions(
  type: PostType,
  { library, what }: { readonly library: ContentRepository; readonly what: "revisions" | "autosaves" },
): RevisionPermissions {
  const parentOf = (id: number): PostColumns => {
    const post = library.index.post(id);
    if (post?.type === type) return post;
    throw new RestError(404, "rest_post_invalid_parent", "Invalid post parent ID.");
  };

  const read: RevisionPermissions["read"] = (id, caller) => {
    const parent = parentOf(id);
    if (caller.may("edit", parent)) return parent;
    throw refusal(caller, "rest_cannot_read", `Sorry, you are not allowed to view ${what} of this post.`);
  };

  const find: RevisionPermissions["find"] = async (id, parent) => {
    const [revision] = await library.revisions([id]);
    if (revision === undefined) throw new RestError(404, "rest_post_invalid_id", "Invalid revision ID.");
    if (revision.parent !== parent.id) {
      throw new RestError(
        404,
        "rest_revision_parent_id_mismatch",
        `The revision does not belong to the specified parent with id of "${parent.id}".`,
      );
    }
    return revision;
  };

  return {
    read,
    find,
    async remove(id, parentId, caller) {
      const parent = parentOf(parentId);
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
