/** Creates a post, with its file if it is a media item. */

import { toText } from "../../schema/coerce.js";
import type { Arguments } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns } from "../records/records.js";
import type { Transaction } from "../repository/content-repository.js";
import { removePosts } from "../repository/remove-posts.js";
import { readSiteOption } from "../repository/small-records.js";
import { RestError } from "../rest/error.js";
import type { RestRequest, RestResponse } from "../rest/types.js";
import { cutSlug } from "../text/slug.js";
import type { PostBase } from "./post-base.js";
import { resolvePostDates } from "./post-dates.js";
import { assertAuthorExists, type PostResource } from "./post-resource.js";
import {
  itemSchema,
  type NewMediaFile,
  orUnchanged,
  type PostTypeHandler,
  type WriteContext,
  writeArguments,
} from "./post-type-handler.js";
import { findFreeSlug, reparentChildren, sanitiseStored, sanitiseValues } from "./write-post.js";

export function createCreatePost(
  resource: PostResource,
  { repository, site, users, namespace }: PostBase,
): (request: RestRequest) => Promise<RestResponse> {
  const { type, permissions } = resource;

  const store = async (request: RestRequest, file: NewMediaFile | undefined): Promise<number> => {
    const sent = { ...request.values, ...file?.values };
    const values = await sanitiseValues(sent, request, type, site);
    return repository.changeTogether(async (transaction) => {
      const dates = resolvePostDates(values, site);
      const id = await transaction.newId("post");
      const post = type.write({ values, previous: null, id, dates }, resource.createWriteContext(request));
      transaction.putPost(file === undefined ? post : file.complete(post));
      resource.expectUnchangedAncestors(transaction, post);
      return id;
    });
  };

  return async (request) => {
    // Like WordPress, looks for the record 0 then.
    if (request.isGiven("id") && request.input["id"] !== null) permissions.find(0);
    await assertAuthorExists(request, type, users);
    const file = await type.uploads?.take(request);
    const id = await store(request, file).catch(async (error: unknown) => {
      await file?.discard();
      throw error;
    });
    return {
      status: 201,
      headers: { location: request.url(`/${namespace}/${type.collection.base}/${id}`) },
      body: await resource.respondWritten(id, request),
    };
  };
}

/** Returns the arguments that update an item. */
export function updateArguments(type: PostTypeHandler, { repository, site }: PostBase): Arguments {
  const { status = {} } = itemSchema(type).properties ?? {};
  return writeArguments(type, {
    status: { validate: orUnchanged(status, (id) => repository.index.post(id)?.status) },
    template: {
      accepted: { type: "string", enum: ["", ...site.templates] },
      validate: (value, name) =>
        value === "" || site.templates.includes(toText(value))
          ? undefined
          : { code: "rest_invalid_param", message: `${name} is not a template of this site.` },
    },
    slug: { sanitize: (value) => (value === null ? null : site.slug(toText(value))) },
  });
}

export function createUpdatePost(
  resource: PostResource,
  { repository, site, users, keepRevision }: PostBase,
): (request: RestRequest) => Promise<RestResponse> {
  const { type, permissions, load } = resource;
  return async (request) => {
    await assertAuthorExists(request, type, users);
    const id = Number(request.values["id"]);
    const dates = resolvePostDates(request.values, site);
    const values = await sanitiseValues(request.values, request, type, site);
    await repository.changeTogether(async (transaction) => {
      const previous = await load(id);
      // Checks the version that the change replaces.
      permissions.update(request, previous);
      assertUnmodified(parsePrecondition(request.headers), previous);
      const texts = await sanitiseStored(previous, request, type, site);
      const post = type.write(
        { values: { ...texts, ...values }, previous, id, dates },
        resource.createWriteContext(request),
      );
      transaction.putPost(await keepRevision(transaction, post, request.caller.id));
      resource.expectUnchangedAncestors(transaction, post);
    });
    return { status: 200, headers: {}, body: await resource.respondWritten(id, request) };
  };
}

// Moves a post to the trash, or removes it with everything that belongs to it alone.

export function createDeletePost(
  resource: PostResource,
  { repository, keepRevision }: PostBase,
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
    resetFrontPage(transaction, post.id, index);
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
      resetFrontPage(transaction, post.id, index);
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

/** As in WordPress, a site whose front page goes shows its posts there again. */
function resetFrontPage(transaction: Transaction, id: number, index: SiteIndex): void {
  const settings = readSiteOption(index, "settings");
  const isFront = settings["page_on_front"] === id;
  const isForPosts = settings["page_for_posts"] === id;
  if (!isFront && !isForPosts) return;
  transaction.putOption("settings", {
    ...settings,
    ...(isFront ? { show_on_front: "posts", page_on_front: 0 } : {}),
    ...(isForPosts ? { page_for_posts: 0 } : {}),
  });
}

// Moves a post to the trash.

const SUFFIX = "__trashed";
/** A slug has at most 200 characters. */
const MAX_BASE = 191;

/** Returns the record in the trash. It gives up its slug, so that other posts can have it. */
function trashPost(post: Post, { site, index, now }: WriteContext): Post {
  const isMarked = post.slug.endsWith(SUFFIX) || post.slug === "";
  const slug = isMarked ? post.slug : `${cutSlug(post.slug, MAX_BASE)}${SUFFIX}`;
  const trashed: Post = {
    ...post,
    status: "trash",
    sticky: false,
    beforeTrash: { status: post.status, slug: post.slug },
    modified: site.zone.toLocal(now),
    modifiedGmt: now,
  };
  return { ...trashed, slug: slug === "" ? "" : findFreeSlug(trashed, slug, index) };
}

/**
 * Returns the time of `If-Unmodified-Since` (RFC 9110 §13.1.4) in epoch ms. NaN for an invalid
 * date, which the RFC requires to ignore.
 */
function parsePrecondition(headers: Record<string, string>): number {
  const text = headers["if-unmodified-since"] ?? "";
  return text.length > LENGTHS.date ? Number.NaN : Date.parse(text);
}

/**
 * Compares `since` with `modified_gmt`, both in whole seconds. NaN sets no condition. WordPress has
 * no preconditions.
 *
 * @throws RestError 412 `rest_precondition_failed`
 */
export function assertUnmodified(since: number, { modifiedGmt }: PostColumns): void {
  if (Number.isNaN(since) || Math.floor(modifiedGmt / 1000) * 1000 <= since) return;
  throw new RestError(412, "rest_precondition_failed", "The item was changed since then.");
}
