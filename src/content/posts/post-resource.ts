/** One post type over REST: what the handlers of its routes share. */

import type { Context, JsonObject } from "../../schema/types.js";
import type { Caller, PostAction } from "../auth/caller.js";
import { listAncestors } from "../query/row.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns } from "../records/records.js";
import type { Transaction } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import type { Item, RestRequest, RestResponse } from "../rest/types.js";
import type { Users } from "../users/users.js";
import type { PostBase } from "./post-base.js";
import { readExcerptLength } from "./post-renderer.js";
import type { PostTypeHandler, WriteContext } from "./post-type-handler.js";

export interface PostResource {
  type: PostTypeHandler;
  permissions: PostPermissions;
  /** @throws RestError 404 `rest_post_invalid_id` */
  load: (id: number) => Promise<Post>;
  render: (post: Post, request: RestRequest, context: Context) => Promise<Item>;
  /** Loads and renders an item that was just stored, for its editor. */
  respondWritten: (id: number, request: RestRequest) => Promise<RestResponse["body"]>;
  createWriteContext: (request: RestRequest) => WriteContext;
  /** Makes the change depend on the pages above a post too: their order must stay a tree. */
  expectUnchangedAncestors: (transaction: Transaction, post: PostColumns) => void;
}

export function createPostResource(
  type: PostTypeHandler,
  { repository, site, renderer }: PostBase,
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
 * Returns the password that unlocks a protected text. Like in WordPress, only the query counts: a
 * body may write a new password.
 */
export const readPassword = ({ password }: JsonObject): string | undefined =>
  typeof password === "string" && password !== "" ? password : undefined;

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

// Who may do what to the posts of a type, checked in WordPress's order. Each check throws the error
// that the client receives.

const FORBIDDEN = "Sorry, you are not allowed to do that.";

/**
 * `read`, `update` and `delete` check `post`, by default the post that the request names, as the
 * index has it. Handlers check it again once it is loaded: another writer may have changed it.
 */
interface PostPermissions {
  /** Returns the post with an id of this type. @throws RestError 404 `rest_post_invalid_id` */
  find: (id: number) => PostColumns & { version: number };
  may: (caller: Caller, action: PostAction, post: PostColumns) => boolean;
  list: (request: RestRequest) => void;
  /** `isUnlocked`: false if the client gave a wrong password. */
  read: (request: RestRequest, post?: PostColumns, isUnlocked?: boolean) => void;
  create: (request: RestRequest) => void;
  update: (request: RestRequest, post?: PostColumns) => void;
  delete: (request: RestRequest, post?: PostColumns) => void;
}

function createPostPermissions(handler: PostTypeHandler, index: SiteIndex): PostPermissions {
  const { type } = handler.collection;

  const find: PostPermissions["find"] = (id) => {
    const post = index.post(id);
    if (post?.type === type) return post;
    throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
  };

  const may: PostPermissions["may"] = (caller, action, post) =>
    caller.may(action, post, post.status === "inherit" ? index.post(post.parent) : undefined);

  const authorizeValues = (request: RestRequest): void => {
    authorizeAuthor(request, handler);
    authorizeSticky(request, handler);
  };

  const authorizeRelations = (request: RestRequest): void => {
    authorizeTerms(request, handler, index);
    handler.authorizeValues?.(request, { index, may });
  };

  return {
    find,
    may,
    list({ values, caller }) {
      if (values["context"] === "edit" && !caller.canOf(type, "edit_posts")) {
        throw refusal(
          caller,
          "rest_forbidden_context",
          "Sorry, you are not allowed to edit posts in this post type.",
        );
      }
      handler.authorizeView?.(caller);
    },
    read({ values, caller }, post = find(Number(values["id"])), isUnlocked = true) {
      if ((values["context"] as Context) === "edit" && !may(caller, "edit", post)) {
        throw refusal(caller, "rest_forbidden_context", "Sorry, you are not allowed to edit this post.");
      }
      if (!isUnlocked) {
        throw new RestError(403, "rest_post_incorrect_password", "Incorrect post password.");
      }
      if (post.status === "publish") handler.authorizeView?.(caller);
      if (!may(caller, "read", post)) throw refusal(caller, "rest_forbidden", FORBIDDEN);
    },
    create(request) {
      const { input, caller } = request;
      if (input["id"]) {
        throw new RestError(400, "rest_post_exists", "Cannot create existing post.");
      }
      authorizeValues(request);
      if (!caller.canOf(type, "create_posts")) {
        throw refusal(
          caller,
          "rest_cannot_create",
          "Sorry, you are not allowed to create posts as this user.",
        );
      }
      authorizeRelations(request);
    },
    update(request, post = find(Number(request.values["id"]))) {
      const { caller } = request;
      if (!may(caller, "edit", post)) {
        throw refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to edit this post.");
      }
      authorizeValues(request);
      authorizeRelations(request);
    },
    delete({ values, caller }, post = find(Number(values["id"]))) {
      if (!may(caller, "delete", post)) {
        throw refusal(caller, "rest_cannot_delete", "Sorry, you are not allowed to delete this post.");
      }
    },
  };
}

function authorizeAuthor(
  { values, caller, isGiven }: RestRequest,
  { collection: { type, labels }, fields }: PostTypeHandler,
): void {
  const { author } = values;
  const isOther = isGiven("author") && author !== null && author !== 0 && author !== caller.id;
  if (!isOther || !fields.has("author") || caller.canOf(type, "edit_others_posts")) return;
  throw refusal(
    caller,
    "rest_cannot_edit_others",
    `Sorry, you are not allowed to create or update ${labels.name.toLowerCase()} as this user.`,
  );
}

function authorizeSticky({ values, caller }: RestRequest, { collection, fields }: PostTypeHandler): void {
  const { type } = collection;
  if (values["sticky"] !== true || !fields.has("sticky")) return;
  if (caller.canOf(type, "edit_others_posts") || caller.canOf(type, "publish_posts")) return;
  throw refusal(caller, "rest_cannot_assign_sticky", "Sorry, you are not allowed to make posts sticky.");
}

function authorizeTerms(
  { values, caller, isGiven }: RestRequest,
  { collection }: PostTypeHandler,
  index: SiteIndex,
): void {
  for (const { taxonomy, base } of collection.taxonomies) {
    const value = values[base];
    if (!isGiven(base) || value === null || value === undefined) continue;
    const ids = Array.isArray(value) ? (value as number[]) : [Number(value)];
    const existing = ids.filter((id) => index.term(id)?.taxonomy === taxonomy);
    if (existing.length > 0 && !caller.canOf(taxonomy, "assign_terms")) {
      throw refusal(
        caller,
        "rest_cannot_assign_term",
        "Sorry, you are not allowed to assign the provided terms.",
      );
    }
  }
}
