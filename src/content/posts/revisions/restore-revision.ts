/** Puts a post back into a state that a revision kept, for the host. Has no route: over REST a client reads the revision and updates the post. */

import type { Caller } from "../../auth/caller.js";
import { getCollection } from "../../collections.js";
import type { Post } from "../../records/records.js";
import type { ContentRepository } from "../../repository/content-repository.js";
import { RestError, refusal } from "../../rest/error.js";
import type { Site } from "../../site.js";
import type { KeepRevision } from "../post-route-options.js";
import { createPostWriter } from "../post-routes.js";
import { assertUnmodified } from "../precondition.js";
import { resolvePostDates } from "../write-post.js";
import { createRevisionPermissions } from "./revision-permissions.js";

/**
 * Gives a post the texts and kept meta fields of one of its revisions or autosaves, as an update by `caller` would; that leaves a revision of its own
 * where something changed.
 *
 * Errors: RestError 404 for an unknown post or revision, or one of another post; 401 or 403 `rest_cannot_edit`; 412 where the post was changed since `known`; 400 where an
 * update would be refused.
 */
export type RestoreRevision = (
  postId: number,
  revisionId: number,
  caller: Caller,
  /** Epoch milliseconds of the state that he has seen. Default: he does not say. */
  known?: number,
) => Promise<void>;

export interface RestoreOptions {
  readonly library: ContentRepository;
  readonly site: Site;
  readonly keepRevision: KeepRevision;
}

export function createRestoreRevision({ library, site, keepRevision }: RestoreOptions): RestoreRevision {
  const { index } = library;

  const notFound = (): RestError => new RestError(404, "rest_post_invalid_id", "Invalid post ID.");

  async function load(id: number): Promise<Post> {
    const [post] = await library.posts([id]);
    if (post === undefined) throw notFound();
    return post;
  }

  return async (postId, revisionId, caller, known = Number.NaN) => {
    await library.change(async (draft) => {
      const post = await load(postId);
      const collection = getCollection(post.type);
      if (!collection.hasRevisions) throw notFound();
      if (!caller.may("edit", post)) {
        throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to edit this post.");
      }
      assertUnmodified(known, post);
      const revision = await createRevisionPermissions(post.type, { library, what: "revisions" }).find(
        revisionId,
        post,
      );
      const { title, content, excerpt, meta } = revision;
      const values = { title, content, excerpt, meta };
      const context = {
        collection,
        caller,
        site,
        index,
        now: library.now(),
        defaultCategory: library.defaultCategory(),
      };
      const written = createPostWriter(collection)(
        values,
        post,
        postId,
        context,
        resolvePostDates(values, site),
      );
      // What somebody without the right wrote does not become trustworthy by being brought back.
      const restored: Post = { ...written, isTrusted: written.isTrusted && revision.isTrusted };
      draft.putPost(await keepRevision(draft, restored, caller.id));
    });
  };
}
