/** Moves a post to the trash, or removes it with everything that belongs to it alone. */

import type { Post } from "../records/records.js";
import type { Transaction } from "../repository/content-repository.js";
import { removePosts } from "../repository/remove-posts.js";
import { RestError } from "../rest/error.js";
import type { RestRequest, RestResponse } from "../rest/types.js";
import { reparentChildren } from "./page-hierarchy.js";
import type { PostResource } from "./post-resource.js";
import type { PostRoutesOptions } from "./post-route-options.js";
import { assertUnmodified, parsePrecondition } from "./precondition.js";
import { trashPost } from "./trash-post.js";

export function createDeletePost(
  resource: PostResource,
  { repository, keepRevision }: PostRoutesOptions,
): (request: RestRequest) => Promise<RestResponse> {
  const { type, permissions, load, render } = resource;
  const { collection, uploads, deletedContext = "edit" } = type;
  const { index } = repository;

  /** Loads the post for a change, if the caller may delete the version that is stored now. */
  async function loadForDeletion(request: RestRequest): Promise<Post> {
    const post = await load(Number(request.values["id"]));
    permissions.delete(request, post);
    assertUnmodified(parsePrecondition(request.headers), post);
    return post;
  }

  /** Children move up to the post's parent. Menu items that point at the post are removed. */
  async function removeWhole(transaction: Transaction, post: Post): Promise<void> {
    const isMenuItem = collection.type === "nav_menu_item";
    const targeting = isMenuItem ? [] : index.targeting(`post/${post.id}`);
    await removePosts(transaction, [post.id, ...targeting], repository);
    if (isMenuItem) return;
    const children = (await repository.posts(index.childrenOf(post.id))).filter(
      (child): child is Post =>
        child !== undefined && (collection.isHierarchical || child.type === "attachment"),
    );
    for (const child of reparentChildren(children, post, index)) transaction.putPost(child);
  }

  async function remove(request: RestRequest): Promise<RestResponse> {
    const { post, item } = await repository.change(async (transaction) => {
      const removed = await loadForDeletion(request);
      await removeWhole(transaction, removed);
      return { post: removed, item: await render(removed, request, deletedContext) };
    });
    await uploads?.remove(post);
    return { status: 200, headers: {}, body: { json: { deleted: true, previous: item.fields } } };
  }

  async function trash(request: RestRequest): Promise<RestResponse> {
    await repository.change(async (transaction) => {
      const post = await loadForDeletion(request);
      if (post.status === "trash") {
        throw new RestError(410, "rest_already_trashed", "The post has already been deleted.");
      }
      const trashed = trashPost(post, resource.createWriteContext(request));
      transaction.putPost(await keepRevision(transaction, trashed, request.caller.id));
    });
    const post = await load(Number(request.values["id"]));
    return { status: 200, headers: {}, body: { item: await render(post, request, "edit") } };
  }

  return async (request) => {
    if (request.values["force"] === true) return remove(request);
    if (collection.hasTrash) return trash(request);
    throw new RestError(
      501,
      "rest_trash_not_supported",
      "The post does not support trashing. Set 'force=true' to delete.",
    );
  };
}
