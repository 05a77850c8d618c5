/** Writes values to a post or creates one, by WordPress's rules. Pure. */

import type { Collection } from "../collections.js";
import type { Post, PostStatus } from "../records/records.js";
import { RestError, refusal } from "../rest/error.js";
import { createPost } from "./new-post.js";
import { resolveParent } from "./page-hierarchy.js";
import { resolveScheduledStatus, setDates } from "./post-dates.js";
import { type FieldTarget, isEmptyText } from "./post-field.js";
import { writeMeta } from "./post-meta.js";
import { resolveSlug } from "./post-slug.js";
import type { PostTypeHandler } from "./post-type-handler.js";
import type { PostChange, Values, WriteContext } from "./write-context.js";

/**
 * Returns the record that results from a change.
 *
 * @throws RestError 400 for values that contradict each other or the record (`empty_content`,
 * `rest_invalid_field`, `rest_post_invalid_id` …); 403 `rest_cannot_publish`
 */
export function applyPostValues(change: PostChange, context: WriteContext, type: PostTypeHandler): Post {
  const { values, previous, id } = change;
  const { site, index, now } = context;
  const post: FieldTarget["post"] = previous === null ? { ...createPost(context), id } : { ...previous };
  writeFields(values, { ...context, post }, type);
  const { status } = values;
  if (status !== undefined && status !== null) {
    post.status = resolveStatus((status || "draft") as PostStatus, { previous, context, type });
  }
  assertConsistent(values, post, type, context);
  if (post.status === "private") post.password = "";
  post.hasPassword = post.password !== "";
  post.parent = resolveParent(post, index);
  setDates(post, change, context);
  if (type.resolveStatus === undefined) post.status = resolveScheduledStatus(post, now, site);
  if (previous?.status === "trash" && post.status !== "trash") {
    post.slug = previous.beforeTrash?.slug ?? post.slug;
    post.beforeTrash = null;
  }
  post.slug = resolveSlug(post, { isGiven: Boolean(values["slug"]), site, index });
  return post;
}

function writeFields(values: Values, target: FieldTarget, { fields }: PostTypeHandler): void {
  const { post, collection } = target;
  for (const [name, field] of fields) {
    const value = values[name];
    if (value !== undefined && value !== null) field.write?.(value, target);
  }
  const { meta } = values;
  if (meta !== undefined && meta !== null) post.meta = writeMeta(post.meta, meta, collection.meta);
}

const PUBLISHING: ReadonlySet<PostStatus> = new Set(["publish", "future", "private"]);

function resolveStatus(
  status: PostStatus,
  {
    previous,
    context: { collection, caller },
    type,
  }: { readonly previous: Post | null; readonly context: WriteContext; readonly type: PostTypeHandler },
): PostStatus {
  if (type.resolveStatus !== undefined) return type.resolveStatus(status);
  const isPublishing = status !== previous?.status && PUBLISHING.has(status);
  if (isPublishing && !caller.canOf(collection.type, "publish_posts")) {
    const what = status === "private" ? "create private posts" : "publish posts";
    throw refusal(caller, "rest_cannot_publish", `Sorry, you are not allowed to ${what} in this post type.`);
  }
  return status;
}

/** As in WordPress, only items of a type with all three texts need one of them: pages do not. */
export const mayBeEmpty = ({ supports }: Collection): boolean =>
  !["title", "editor", "excerpt"].every((text) => supports.includes(text));

export const emptyContent = (): RestError =>
  new RestError(400, "empty_content", "Content, title, and excerpt are empty.");

function assertConsistent(
  values: Values,
  post: Post,
  type: PostTypeHandler,
  { collection, index }: WriteContext,
): void {
  assertNotStickyAndProtected(values, post);
  if (collection.isHierarchical && values["parent"]) {
    if (index.post(Number(values["parent"])) === undefined) {
      throw new RestError(400, "rest_post_invalid_id", "Invalid post parent ID.");
    }
  }
  type.assertConsistent?.(values, index);
  const isEmpty = [post.title, post.content, post.excerpt].every(isEmptyText);
  if (isEmpty && !mayBeEmpty(collection)) throw emptyContent();
}

function assertNotStickyAndProtected(values: Values, post: Post): void {
  const isWritten = values["sticky"] === true || Boolean(values["password"]);
  if (!isWritten || !post.sticky || post.password === "") return;
  throw new RestError(400, "rest_invalid_field", "A post can not be sticky and have a password.");
}
