/**
 * Restores a revision of a post, for the host. There is no route: over REST a client reads the
 * revision and updates the post.
 */

import { isDate } from "node:util/types";
import { PostbellError } from "../../../core/errors.js";
import { readCallArguments } from "../../../core/known-names.js";
import type { Caller } from "../../auth/caller.js";
import { checkUserId } from "../../callers.js";
import type { Content } from "../../content.js";
import type { Post } from "../../records/records.js";
import { RestError, refusal } from "../../rest/error.js";
import { assertUnmodified } from "../change-post.js";
import type { PostBase } from "../post-base.js";
import { resolvePostDates } from "../post-dates.js";
import { sanitiseValues } from "../write-post.js";
import { createRevisionPermissions } from "./revision-permissions.js";

/**
 * Gives a post the texts and meta fields of one of its revisions or autosaves, like an update by
 * `caller`. If that changes the post, it leaves a new revision.
 *
 * @throws RestError 404 for an unknown post or revision, or a revision of another post; 401 or 403
 * `rest_cannot_edit`; 412 if the post was changed since `since`; 400 if an update would be refused
 */
export type RestoreRevision = (
  postId: number,
  revisionId: number,
  caller: Caller,
  /** Epoch ms of the state that the caller has seen. Default: not checked. */
  since?: number,
) => Promise<void>;

const notFound = (): RestError => new RestError(404, "rest_post_invalid_id", "Invalid post ID.");

export function createRestoreRevision({
  repository,
  postTypes,
  site,
  keepRevision,
}: Pick<PostBase, "repository" | "postTypes" | "site" | "keepRevision">): RestoreRevision {
  async function load(postId: number, caller: Caller, since: number): Promise<Post> {
    // A record of a type that the site has no longer is not in the index.
    const [post] = repository.index.post(postId) === undefined ? [] : await repository.posts([postId]);
    if (post === undefined || !postTypes.get(post.type).collection.hasRevisions) throw notFound();
    if (!caller.may("edit", post)) {
      throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to edit this post.");
    }
    assertUnmodified(since, post);
    return post;
  }

  return (postId, revisionId, caller, since = Number.NaN) =>
    repository.change(async (transaction) => {
      const previous = await load(postId, caller, since);
      const type = postTypes.get(previous.type);
      const { find } = createRevisionPermissions(previous.type, { repository, what: "revisions" });
      const revision = await find(revisionId, previous);
      const { title, content, excerpt } = revision;
      // Fields that revisions no longer hold stay as they are.
      const { meta: fields } = type.collection;
      const revisioned = Object.entries(revision.meta).filter(
        ([name]) => fields[name]?.isRevisioned === true,
      );
      const meta = Object.fromEntries(revisioned);
      const request = { caller, sanitised: { characters: 0 } };
      const values = await sanitiseValues({ title, content, excerpt, meta }, request, type, site);
      const context = {
        collection: type.collection,
        caller,
        site,
        index: repository.index,
        now: repository.now(),
        defaultCategory: repository.defaultCategory(),
      };
      const dates = resolvePostDates(values, site);
      const written = type.write({ values, previous, id: postId, dates }, context);
      // Restoring a text does not make it trusted.
      const restored: Post = { ...written, isTrusted: written.isTrusted && revision.isTrusted };
      transaction.putPost(await keepRevision(transaction, restored, caller.id));
    });
}

/** Returns the method of the service, which checks its arguments and reads the newest state. */
export function createRevisionRestorer(base: PostBase): Content["restoreRevision"] {
  const { repository, callers } = base;
  const restore = createRestoreRevision(base);
  return async (request) => {
    const { postId, revisionId, as, ifUnmodifiedSince } = readCallArguments("restoreRevision", request, [
      "postId",
      "revisionId",
      "as",
      "ifUnmodifiedSince",
    ]);
    checkUserId("restoreRevision", as);
    const since = isDate(ifUnmodifiedSince) ? ifUnmodifiedSince.getTime() : Number.NaN;
    if (ifUnmodifiedSince !== undefined && Number.isNaN(since)) {
      throw new PostbellError(
        "invalid_argument",
        "restoreRevision: ifUnmodifiedSince must be a valid Date.",
        { field: "ifUnmodifiedSince" },
      );
    }
    await repository.current();
    await restore(postId, revisionId, await callers.load(as), since);
  };
}
