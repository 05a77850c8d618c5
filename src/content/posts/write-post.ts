/** Writes values to a post or creates one, by WordPress's rules, and sanitises them before. */

import type { Json, JsonObject } from "../../schema/types.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Collection } from "../records/content-model.js";
import type { Post, PostColumns, PostStatus } from "../records/records.js";
import { hasSlugPerParent, hasUniqueSlug } from "../records/unique-names.js";
import { RestError, refusal } from "../rest/error.js";
import { countSanitised } from "../rest/sanitised-characters.js";
import type { RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";
import { resolveScheduledStatus, setDates } from "./post-dates.js";
import { type FieldTarget, isEmptyText, readRaw } from "./post-field.js";
import type {
  PostChange,
  PostTypeHandler,
  SanitisedValues,
  Values,
  WriteContext,
} from "./post-type-handler.js";
import { writeMeta } from "./text-fields.js";

/**
 * Returns the record that results from a change.
 *
 * @throws RestError 400 for values that contradict each other or the record (`empty_content`,
 * `rest_invalid_field`, `rest_post_invalid_id` …); 403 `rest_cannot_publish`
 */
export function applyPostValues(change: PostChange, context: WriteContext, type: PostTypeHandler): Post {
  const { values, previous, id } = change;
  const { collection, site, index, now } = context;
  const post: FieldTarget["post"] = previous === null ? { ...createPost(context), id } : { ...previous };
  writeFields(values, { ...context, post }, type);
  const { status } = values;
  if (status !== undefined && status !== null) {
    post.status = resolveStatus((status || "draft") as PostStatus, { previous, context, type });
  }
  assertConsistent(values, post, type, context);
  assignDefaultCategory(post, values, context);
  if (post.status === "private") post.password = "";
  post.hasPassword = post.password !== "";
  post.parent = resolveParent(post, collection, index);
  setDates(post, change, context);
  if (type.resolveStatus === undefined) post.status = resolveScheduledStatus(post, now, site);
  if (previous?.status === "trash" && post.status !== "trash") {
    post.slug = previous.beforeTrash?.slug ?? post.slug;
    post.beforeTrash = null;
  }
  // As in WordPress, the slug of a pending post is up to those who may publish it.
  const isReviewed = post.status === "pending" && !context.caller.canOf(post.type, "publish_posts");
  if (isReviewed) post.slug = "";
  else post.slug = resolveSlug(post, { isGiven: Boolean(values["slug"]), site, index });
  return post;
}

function writeFields(values: Values, target: FieldTarget, { fields }: PostTypeHandler): void {
  const { post, collection, caller } = target;
  for (const [name, field] of fields) {
    const value = values[name];
    if (value !== undefined && value !== null) field.write?.(value, target);
  }
  const { meta } = values;
  if (meta === undefined || meta === null) return;
  post.meta = writeMeta(post.meta, meta, collection.meta, { caller, id: post.id });
}

/** As in WordPress, an update gives a post without a category the default one. */
function assignDefaultCategory(
  post: FieldTarget["post"],
  values: Values,
  { index, defaultCategory }: WriteContext,
): void {
  const isAsked = values["categories"] !== undefined && values["categories"] !== null;
  if (post.type !== "post" || post.status === "auto-draft" || isAsked || defaultCategory === undefined)
    return;
  if (index.termsOf(post, "category").length > 0) return;
  post.terms = { ...post.terms, category: [defaultCategory] };
}

const PUBLISHING: Set<PostStatus> = new Set(["publish", "future", "private"]);

function resolveStatus(
  status: PostStatus,
  {
    previous,
    context: { collection, caller },
    type,
  }: { previous: Post | null; context: WriteContext; type: PostTypeHandler },
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

// The record of a post before anything is written to it.

export function createPost(context: WriteContext): Omit<Post, "id"> {
  const { collection, caller, site, now, defaultCategory } = context;
  const local = site.zone.toLocal(now);
  const { status, commentStatus, pingStatus } = collection.newPost;
  const isOpen = site.newPostsAre();
  const newPost = {
    status,
    commentStatus: commentStatus === "open" ? isOpen.commentStatus : commentStatus,
    pingStatus: pingStatus === "open" ? isOpen.pingStatus : pingStatus,
  };
  const isCategorised = collection.type === "post" && defaultCategory !== undefined;
  return {
    version: 0,
    type: collection.type,
    author: caller.id,
    date: local,
    dateGmt: null,
    modified: local,
    modifiedGmt: now,
    slug: "",
    title: "",
    content: "",
    excerpt: "",
    password: "",
    hasPassword: false,
    parent: 0,
    menuOrder: 0,
    sticky: false,
    format: "standard",
    terms: isCategorised ? { category: [defaultCategory] } : {},
    mimeType: "",
    target: "",
    template: "",
    featuredMedia: 0,
    meta: {},
    isTrusted: false,
    beforeTrash: null,
    revisions: [],
    autosaves: {},
    menuItem: null,
    media: null,
    // Last: members after a spread take ten times as long.
    ...newPost,
  };
}

/** Returns `wanted`, or `wanted` with a number, so that no other post has it where `post` would. */
export const findFreeSlug = (post: PostColumns, wanted: string, index: SiteIndex): string =>
  uniqueSlug(
    wanted,
    (slug) => isReservedSlug(slug, post.type) || index.isSlugTaken(post, slug, (id) => id === post.id),
    {
      nextFree: (stem, from) => index.nextFreeSlug(post, stem, from),
      vacated: [index.post(post.id)?.slug],
    },
  );

/**
 * Returns the slug to store. A draft keeps its slug, even one that is taken. Like in WordPress, a
 * slug becomes unique at once if the client writes it.
 */
function resolveSlug(
  post: Post,
  { isGiven, site, index }: { isGiven: boolean; site: Site; index: SiteIndex },
): string {
  if (!hasUniqueSlug(post) && !isGiven) return post.slug;
  // A title without letters and digits has no slug. WordPress uses the id then.
  return findFreeSlug(post, post.slug || site.slug(post.title) || String(post.id), index);
}

/** Returns the parent to store: 0 instead of the item itself or an item below it. */
function resolveParent(
  { id, parent }: PostColumns,
  { isHierarchical }: Collection,
  index: SiteIndex,
): number {
  if (!isHierarchical) return parent;
  const seen = new Set([id]);
  for (let at = parent; at !== 0; at = index.post(at)?.parent ?? 0) {
    if (seen.has(at)) return 0;
    seen.add(at);
  }
  return parent;
}

/**
 * Moves the children of a removed page up to its parent. A slug that is taken there gets a suffix.
 */
export function reparentChildren(children: Post[], removed: PostColumns, index: SiteIndex): Post[] {
  const assigned = new Set<string>();
  return children.map((child) => {
    const moved = { ...child, parent: removed.parent };
    if (!hasSlugPerParent(moved.type) || !hasUniqueSlug(moved) || moved.slug === "") return moved;
    const isMoving = (id: number): boolean => id === moved.id || id === removed.id;
    const isTaken = (slug: string): boolean => assigned.has(slug) || index.isSlugTaken(moved, slug, isMoving);
    const slug = uniqueSlug(moved.slug, isTaken, {
      nextFree: (stem, from) => index.nextFreeSlug(moved, stem, from),
      vacated: [removed.slug],
    });
    assigned.add(slug);
    return { ...moved, slug };
  });
}

// Sanitises what a user without `unfiltered_html` writes to a post.

/**
 * Resolves with `values` as the caller may store them. Other requests run meanwhile, so call it
 * before the change begins if the texts are known by then.
 *
 * @throws RestError 413 `rest_text_too_large` or `rest_too_much_text`
 */
export async function sanitiseValues(
  values: Values,
  request: { caller: RestRequest["caller"]; sanitised: RestRequest["sanitised"] },
  { fields, collection }: PostTypeHandler,
  site: Site,
): Promise<SanitisedValues> {
  const sanitised: { [name: string]: Json | undefined } = { ...values };
  if (request.caller.has("unfiltered_html")) return sanitised as SanitisedValues;
  const sanitise: Site["sanitise"] = (field, raw) => {
    countSanitised(raw, request, site.filteredCharacters);
    return site.sanitise(field, raw);
  };
  for (const [name, { html }] of fields) {
    const raw = readRaw(values[name] ?? null);
    if (html === undefined || raw === undefined) continue;
    const text = await sanitise(html, raw);
    // A harmless value keeps its form: an object with an empty title keeps the stored title.
    if (text !== raw) sanitised[name] = text;
  }
  const meta = (values["meta"] ?? {}) as JsonObject;
  const { footnotes } = meta;
  if (typeof footnotes === "string" && Object.hasOwn(collection.meta, "footnotes")) {
    sanitised["meta"] = { ...meta, footnotes: await sanitise("footnotes", footnotes) };
  }
  return sanitised as SanitisedValues;
}

/**
 * Resolves with the texts of a post that a trusted user wrote, sanitised for a caller who is not:
 * as in WordPress, whoever saves a post answers for all its texts.
 */
export async function sanitiseStored(
  previous: Post,
  { caller }: RestRequest,
  { fields }: PostTypeHandler,
  site: Pick<Site, "sanitise">,
): Promise<SanitisedValues> {
  const texts: { [name: string]: Json } = {};
  if (!previous.isTrusted || caller.has("unfiltered_html")) return texts as SanitisedValues;
  for (const name of ["title", "content", "excerpt"] as const) {
    const html = fields.get(name)?.html;
    if (html !== undefined) texts[name] = await site.sanitise(html, previous[name]);
  }
  return texts as SanitisedValues;
}
