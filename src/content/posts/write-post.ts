/** What becomes of a post when it is written: pure rules for status, dates, slug and place in a tree, after the reference's. */

import type { Json } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { Collection } from "../collections.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns, PostStatus, PostType } from "../records/records.js";
import { hasUniqueSlug } from "../repository/content-repository.js";
import { RestError } from "../rest/error.js";
import type { Site } from "../site.js";
import { toDateFields } from "../text/dates.js";
import { isReservedSlug, uniqueSlug } from "../text/slug.js";
import type { FieldTarget } from "./post-fields.js";
import { writeMeta } from "./post-meta.js";
import { listFields } from "./post-schema.js";

/** The arguments of a request: absent ones are `undefined`. */
export type Values = { readonly [name: string]: Json | undefined };

export interface WriteContext {
  readonly collection: Collection;
  /** The category of a new post that is given none. */
  readonly defaultCategory: number | undefined;
  readonly caller: Caller;
  readonly site: Site;
  readonly index: SiteIndex;
  /** Epoch ms. */
  readonly now: number;
}

const MINUTE_MS = 60_000;
const TRASHED = "__trashed";

/** Statuses in which a post has no date of its own until it is given one. */
const IS_FLOATING: ReadonlySet<PostStatus> = new Set(["draft", "pending", "auto-draft"]);

export function createPost({
  collection,
  caller,
  site,
  now,
  defaultCategory,
}: WriteContext): Omit<Post, "id"> {
  const local = site.zone.toLocal(now);
  const openFor = (...types: readonly string[]): "open" | "closed" =>
    types.includes(collection.type) ? "open" : "closed";
  return {
    version: 0,
    type: collection.type,
    status: collection.type === "attachment" ? "inherit" : "draft",
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
    terms:
      collection.taxonomies[0] === "category" && defaultCategory !== undefined
        ? { category: [defaultCategory] }
        : {},
    mimeType: "",
    target: "",
    commentStatus: openFor("post", "attachment"),
    pingStatus: openFor("post"),
    template: "",
    featuredMedia: 0,
    meta: {},
    isTrusted: false,
    beforeTrash: null,
    revisions: [],
    autosaves: {},
    menuItem: null,
    media: null,
  };
}

/**
 * The record that comes of writing `values` over `previous`, or of creating one with the id `id`. Pure.
 *
 * Errors: RestError 400 for what contradicts itself or the record: `empty_content`, `rest_invalid_field`, `rest_post_invalid_id` …; 403 `rest_cannot_publish`.
 */
export function applyPostValues(
  values: Values,
  previous: Post | null,
  id: number,
  context: WriteContext,
  dates: PostDates,
): Post {
  const { collection, site, index, now } = context;
  const post: FieldTarget["post"] = previous === null ? { ...createPost(context), id } : { ...previous };
  for (const [name, field] of listFields(collection)) {
    const value = values[name];
    if (value !== undefined && value !== null) field.write?.(value, { ...context, post });
  }
  const { meta } = values;
  if (meta !== undefined && meta !== null) post.meta = writeMeta(post.meta, meta, collection.meta, context);

  const { status } = values;
  if (status !== undefined && status !== null) {
    post.status = writtenStatus((status || "draft") as PostStatus, previous, context);
  }
  refuseContradictions(values, post, context);
  if (post.status === "private") post.password = "";
  post.hasPassword = post.password !== "";
  post.parent = resolveParent(post, index);

  placeInTime(post, previous, dates, site, now);
  if (previous !== null) {
    post.modifiedGmt = now;
    post.modified = site.zone.toLocal(now);
  } else {
    post.modified = post.date;
    post.modifiedGmt = post.dateGmt ?? site.zone.toUtc(post.date);
  }
  post.status = statusByTime(post, now, site);

  if (previous?.status === "trash" && post.status !== "trash") {
    post.slug = previous.beforeTrash?.slug ?? post.slug;
    post.beforeTrash = null;
  }
  post.slug = writtenSlug(post, Boolean(values["slug"]), site, index);
  return post;
}

export interface PostDates {
  /** What `date` or `date_gmt` says: both forms, epoch ms. */
  readonly given: { readonly date: number; readonly dateGmt: number } | null;
  /** Whether one of them was sent as `null`: back to now, floating for a draft. */
  readonly isReset: boolean;
}

/** Errors: RestError 400 `rest_invalid_date` for what looks like a date and is none. */
export function resolvePostDates(values: Values, site: Site): PostDates {
  const { date, date_gmt: dateGmt } = values;
  const isReset = date === null || dateGmt === null;
  const text = typeof date === "string" ? { date } : typeof dateGmt === "string" ? { dateGmt } : undefined;
  if (text === undefined || isReset) return { given: null, isReset };
  const given = toDateFields(text, site.zone);
  if (given === undefined) throw new RestError(400, "rest_invalid_date", "The date is invalid.");
  return { given, isReset };
}

function placeInTime(
  post: FieldTarget["post"],
  previous: Post | null,
  { given, isReset }: PostDates,
  site: Site,
  now: number,
): void {
  const isFloatingDraft = previous !== null && IS_FLOATING.has(previous.status) && previous.dateGmt === null;
  if (given !== null) {
    post.date = given.date;
    post.dateGmt = given.dateGmt;
  } else if (isReset || isFloatingDraft || previous === null) {
    post.date = site.zone.toLocal(now);
    post.dateGmt = null;
  }
  if (post.dateGmt === null && !IS_FLOATING.has(post.status)) post.dateGmt = site.zone.toUtc(post.date);
}

/** What is to be published in the future waits for it; what waits for a time that has come is published. */
function statusByTime(post: PostColumns, now: number, site: Site): PostStatus {
  const { status } = post;
  if (status !== "publish" && status !== "future") return status;
  if (post.type === "attachment" || post.type === "nav_menu_item") return status;
  const at = post.dateGmt ?? site.zone.toUtc(post.date);
  return at - now >= MINUTE_MS ? "future" : "publish";
}

function writtenStatus(
  status: PostStatus,
  previous: Post | null,
  { collection, caller }: WriteContext,
): PostStatus {
  // An attachment is shown where its post is, or to nobody else.
  if (collection.type === "attachment") return status === "private" ? "private" : "inherit";
  const isChange = status !== previous?.status;
  const needsRight = isChange && (status === "publish" || status === "future" || status === "private");
  if (needsRight && !caller.canOf(collection.type, "publish_posts")) {
    const what = status === "private" ? "create private posts" : "publish posts";
    throw new RestError(
      caller.id === 0 ? 401 : 403,
      "rest_cannot_publish",
      `Sorry, you are not allowed to ${what} in this post type.`,
    );
  }
  return status;
}

export const emptyContent = (): RestError =>
  new RestError(400, "empty_content", "Content, title, and excerpt are empty.");

function refuseContradictions(values: Values, post: Post, { collection, index }: WriteContext): void {
  if (post.sticky && post.password !== "" && (values["sticky"] === true || Boolean(values["password"]))) {
    throw new RestError(400, "rest_invalid_field", "A post can not be sticky and have a password.");
  }
  const { parent } = values;
  if (collection.isHierarchical && parent !== undefined && parent !== null && parent !== 0) {
    if (index.post(Number(parent)) === undefined) {
      throw new RestError(400, "rest_post_invalid_id", "Invalid post parent ID.");
    }
  }
  if (collection.type === "attachment" && values["post"]) {
    if (index.post(Number(values["post"]))?.type === "attachment") {
      throw new RestError(400, "rest_invalid_param", "Invalid parent type.");
    }
  }
  const isEmpty = post.title === "" && post.content === "" && post.excerpt === "";
  if (isEmpty && collection.supports.includes("editor") && collection.type !== "nav_menu_item") {
    throw emptyContent();
  }
}

/** 0 where the parent is the post itself or below it: no cycle is ever stored. */
export function resolveParent({ id, type, parent }: PostColumns, index: Pick<SiteIndex, "post">): number {
  if (type !== "page") return parent;
  const seen = new Set([id]);
  for (let at = parent; at !== 0; at = index.post(at)?.parent ?? 0) {
    if (seen.has(at)) return 0;
    seen.add(at);
  }
  return parent;
}

/** Types whose posts have an address of their own; the one of an attachment is like that of any of them. */
const ADDRESSED: readonly PostType[] = ["post", "page", "attachment"];

/** Whether two posts with one slug would have one address: pages below one parent, attachments and all else that has an address. */
const shareAddress = (post: PostColumns, other: PostColumns): boolean => {
  if (post.type === "attachment") return ADDRESSED.includes(other.type);
  const isBeside = other.parent === post.parent;
  if (other.type === post.type) return post.type !== "page" || isBeside;
  return post.type === "page" && other.type === "attachment" && isBeside;
};

/** Whether another post, of the index or of those `beside` it that are about to be stored, has the slug where this one would. */
export function isSlugTaken(
  post: PostColumns,
  index: SiteIndex,
  beside: (slug: string) => readonly PostColumns[] = () => [],
): (slug: string) => boolean {
  const types = new Set([post.type, ...ADDRESSED]);
  const isInWay = (other: PostColumns | undefined): boolean =>
    other !== undefined && other.id !== post.id && shareAddress(post, other);
  return (slug) =>
    beside(slug).some(isInWay) ||
    [...types].some((type) => index.withSlug(type, slug).some((id) => isInWay(index.post(id))));
}

/** What lay below a page that goes, moved up to where the page lay. A slug that is taken there gets a number. */
export function reparentChildren(
  children: readonly Post[],
  gone: PostColumns,
  index: SiteIndex,
): readonly Post[] {
  const given = new Set<string>();
  return children.map((child) => {
    const moved = { ...child, parent: gone.parent };
    if (moved.type !== "page" || !hasUniqueSlug(moved) || moved.slug === "") return moved;
    const isHeld = (slug: string): boolean =>
      index
        .withSlug("page", slug)
        .some((id) => id !== moved.id && id !== gone.id && index.post(id)?.parent === moved.parent);
    const slug = uniqueSlug(moved.slug, (wanted) => given.has(wanted) || isHeld(wanted));
    given.add(slug);
    return { ...moved, slug };
  });
}

/** A draft keeps the slug it has, even one that is taken; one that is written is made unique at once, as by the reference. */
function writtenSlug(post: Post, isGiven: boolean, site: Site, index: SiteIndex): string {
  const isPlaced = hasUniqueSlug(post);
  if (!isPlaced && !isGiven) return post.slug;
  // A title of signs alone makes no slug; the reference takes the id then.
  const wanted = post.slug || site.slug(post.title) || String(post.id);
  const isTaken = isSlugTaken(post, index);
  return uniqueSlug(wanted, (slug) => isReservedSlug(slug, post.type) || isTaken(slug));
}

/** The post as it lies in the trash. Its slug is free for others. */
export function trashPost(post: Post, { site, index, now }: WriteContext): Post {
  const base =
    post.slug.endsWith(TRASHED) || post.slug === "" ? post.slug : `${post.slug.slice(0, 191)}${TRASHED}`;
  const trashed: Post = {
    ...post,
    status: "trash",
    beforeTrash: { status: post.status, slug: post.slug },
    modified: site.zone.toLocal(now),
    modifiedGmt: now,
  };
  return { ...trashed, slug: base === "" ? "" : uniqueSlug(base, isSlugTaken(trashed, index)) };
}
