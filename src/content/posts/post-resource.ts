/** One post type over REST: what the handlers of its routes share. */

import type { Context } from "../../schema/types.js";
import { listAncestors } from "../query/page-tree.js";
import type { Post, PostColumns } from "../records/records.js";
import type { Transaction } from "../repository/content-repository.js";
import { RestError } from "../rest/error.js";
import type { Item, RestRequest, RestResponse } from "../rest/types.js";
import type { Users } from "../users/users.js";
import { createPostPermissions, type PostPermissions } from "./post-permissions.js";
import { readExcerptLength } from "./post-renderer.js";
import type { PostRoutesOptions } from "./post-route-options.js";
import type { PostTypeHandler } from "./post-type-handler.js";
import type { WriteContext } from "./write-context.js";

export interface PostResource {
  readonly type: PostTypeHandler;
  readonly permissions: PostPermissions;
  /** @throws RestError 404 `rest_post_invalid_id` */
  readonly load: (id: number) => Promise<Post>;
  readonly render: (post: Post, request: RestRequest, context: Context) => Promise<Item>;
  /** Loads and renders an item that was just stored, for its editor. */
  readonly respondWritten: (id: number, request: RestRequest) => Promise<RestResponse["body"]>;
  readonly createWriteContext: (request: RestRequest) => WriteContext;
  /** Makes the change depend on the pages above a post too: their order must stay a tree. */
  readonly expectUnchangedAncestors: (transaction: Transaction, post: PostColumns) => void;
}

export type PostResourceOptions = Pick<PostRoutesOptions, "repository" | "site" | "renderer">;

export function createPostResource(
  type: PostTypeHandler,
  { repository, site, renderer }: PostResourceOptions,
): PostResource {
  const { collection } = type;
  const { index } = repository;
  const permissions = createPostPermissions(type, index);

  const load = async (id: number): Promise<Post> => {
    permissions.find(id);
    const [post] = await repository.posts([id]);
    if (post === undefined) throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
    return post;
  };

  const render: PostResource["render"] = (post, { values, caller, url, state, method }, context) =>
    renderer.render(post, {
      context,
      caller,
      url,
      isUnlocked: post.password !== "" && state?.matchedPassword === post.password,
      excerptLength: readExcerptLength(values),
      isWritten: method !== "GET",
    });

  return {
    type,
    permissions,
    load,
    render,
    async respondWritten(id, request) {
      return { item: await render(await load(id), request, "edit") };
    },
    createWriteContext: ({ caller }) => ({
      collection,
      caller,
      site,
      index,
      now: repository.now(),
      defaultCategory: repository.defaultCategory(),
    }),
    expectUnchangedAncestors(transaction, post) {
      if (!collection.isHierarchical) return;
      for (const id of listAncestors(post, index)) transaction.expectUnchanged(`post/${id}`);
    },
  };
}

/**
 * Refuses an author whom the host does not know. Call it before the change begins, since the host
 * may need time to look him up.
 *
 * @throws RestError 400 `rest_invalid_author`
 */
export async function assertAuthorExists(
  { values, caller }: RestRequest,
  { fields }: PostTypeHandler,
  users: Users,
): Promise<void> {
  const { author } = values;
  const isOther = typeof author === "number" && author !== 0 && author !== caller.id;
  if (!isOther || !fields.has("author")) return;
  if ((await users.get(author)) === null) {
    throw new RestError(400, "rest_invalid_author", "Invalid author ID.");
  }
}
