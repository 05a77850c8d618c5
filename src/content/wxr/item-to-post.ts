/** The post that an item of a file becomes. What it points at has the ids of the file still. Pure. */

import type { Json } from "../../schema/types.js";
import { type Collection, collections, POST_FORMATS } from "../collections.js";
import { writeMeta } from "../posts/post-meta.js";
import { createPost, type WriteContext } from "../posts/write-post.js";
import { STATUSES } from "../query/row.js";
import type { Post, PostStatus, Taxonomy } from "../records/records.js";
import { parseWholeNumber } from "./elements.js";
import { readItemDates } from "./item-dates.js";
import { toMedia } from "./item-to-media.js";
import { toMenuItem } from "./item-to-menu-item.js";
import type { NamedTerm } from "./term-key.js";
import type { WxrItem } from "./types.js";

/** What a post of the file points at, by the ids of the file; 0 for nothing. */
export interface References {
  readonly parent: number;
  readonly featuredMedia: number;
  readonly object: { readonly kind: "post" | "term"; readonly id: number } | null;
}

export interface PlannedPost {
  /** Without what it points at; its slug is the wanted one. */
  readonly post: Post;
  readonly references: References;
  /** Names of its meta values that there is no place for. */
  readonly unknownMeta: readonly string[];
}

export interface PlanContext extends Omit<WriteContext, "collection"> {
  readonly collection: Collection;
  readonly author: number;
  /** Whether its texts are kept as they are. */
  readonly isTrusted: boolean;
  readonly termId: (taxonomy: string, term: NamedTerm) => number | undefined;
}

const byType: ReadonlyMap<string, Collection> = new Map(
  Object.values<Collection>(collections).map((collection) => [collection.type, collection]),
);

/** `undefined` for a type that the site does not hold. */
export const findCollection = (type: string): Collection | undefined => byType.get(type);

const READ_META: ReadonlySet<string> = new Set([
  "_thumbnail_id",
  "_wp_page_template",
  "_wp_attached_file",
  "_wp_attachment_metadata",
  "_wp_attachment_image_alt",
  "_wp_trash_meta_status",
  "_wp_trash_meta_time",
  "_wp_desired_post_slug",
  "_menu_item_type",
  "_menu_item_menu_item_parent",
  "_menu_item_object_id",
  "_menu_item_object",
  "_menu_item_target",
  "_menu_item_classes",
  "_menu_item_xfn",
  "_menu_item_url",
]);

/** `previous`: the post as it was imported before; what the file does not tell of stays as it is. */
export function toPlannedPost(
  item: WxrItem,
  previous: Post | null,
  id: number,
  context: PlanContext,
): PlannedPost {
  const { collection, site, isTrusted, now } = context;
  const { type } = collection;
  const meta = new Map(item.meta.map(({ name, value }) => [name, value]));
  const text = (name: "title" | "content" | "excerpt"): string =>
    isTrusted ? item[name] : site.filter[name](item[name]);
  const status = statusOf(item);
  const password = status === "private" ? "" : item.password;
  const menu = type === "nav_menu_item" ? toMenuItem(item, meta) : undefined;
  const media = type === "attachment" ? toMedia(item, meta) : undefined;
  const base: Post = previous ?? { ...createPost(context), id };
  const times = readItemDates(item, site.zone, now);

  return {
    post: {
      ...base,
      ...times,
      dateGmt: times.dateGmt ?? (isFloating(status) ? null : site.zone.toUtc(times.date)),
      status,
      author: context.author,
      slug: site.slug(item.slug),
      title: text("title"),
      content: menu ? "" : text("content"),
      excerpt: menu ? "" : text("excerpt"),
      password,
      hasPassword: password !== "",
      parent: 0,
      menuOrder: item.menuOrder,
      sticky: type === "post" && item.isSticky,
      format: formatOf(item),
      terms: termsOf(item, base, context),
      commentStatus: item.commentStatus === "open" ? "open" : "closed",
      pingStatus: item.pingStatus === "open" ? "open" : "closed",
      template: templateOf(meta.get("_wp_page_template")),
      featuredMedia: 0,
      meta: metaOf(meta, base, context),
      isTrusted,
      beforeTrash: status === "trash" ? beforeTrash(meta, context) : null,
      menuItem:
        menu === undefined ? null : { ...menu.menuItem, objectId: menu.menuItem.type === "custom" ? id : 0 },
      target: "",
      mimeType: media?.mimeType ?? "",
      media: media?.media ?? null,
    },
    references: {
      parent: menu?.parent ?? item.parent,
      featuredMedia:
        type === "attachment" ? 0 : Math.max(parseWholeNumber(meta.get("_thumbnail_id") ?? ""), 0),
      object: objectOf(menu?.menuItem),
    },
    unknownMeta: item.meta.flatMap(({ name }) =>
      READ_META.has(name) || Object.hasOwn(collection.meta, name) ? [] : [name],
    ),
  };
}

const isFloating = (status: PostStatus): boolean => ["draft", "pending", "auto-draft"].includes(status);

/** A menu item is published or a draft, an attachment shown where its post is; a status of some plug-in is a draft. */
function statusOf({ type, status }: WxrItem): PostStatus {
  const known = STATUSES.find((name) => name === status) ?? "draft";
  if (type === "nav_menu_item") return known === "publish" ? "publish" : "draft";
  if (type !== "attachment") return known === "inherit" ? "draft" : known;
  return known === "private" || known === "trash" ? known : "inherit";
}

function formatOf({ terms, type }: WxrItem): string {
  const slug = terms.find(({ taxonomy }) => taxonomy === "post_format")?.slug.replace(/^post-format-/, "");
  return (type === "post" && POST_FORMATS.find((format) => format === slug)) || "standard";
}

const templateOf = (template: string | undefined): string =>
  template === undefined || template === "default" ? "" : template;

function termsOf(
  item: WxrItem,
  base: Post,
  { collection, termId, defaultCategory }: PlanContext,
): Post["terms"] {
  const terms: { [taxonomy in Taxonomy]?: readonly number[] } = {};
  for (const taxonomy of collection.taxonomies) {
    const ids = item.terms.flatMap((term) =>
      term.taxonomy === taxonomy ? (termId(taxonomy, term) ?? []) : [],
    );
    if (ids.length > 0) terms[taxonomy] = [...new Set(ids)].sort((a, b) => a - b);
  }
  const isBare = collection.type === "post" && terms.category === undefined && defaultCategory !== undefined;
  return isBare ? { ...terms, category: base.terms.category ?? [defaultCategory] } : terms;
}

/** The values that the collection has a field for, and that fit it. */
function metaOf(
  meta: ReadonlyMap<string, string>,
  base: Post,
  { collection, isTrusted, site }: PlanContext,
): Post["meta"] {
  const given: { [name: string]: Json } = {};
  for (const [name, field] of Object.entries(collection.meta)) {
    const value = meta.get(name);
    if (value === undefined || (field.enum !== undefined && !field.enum.includes(value))) continue;
    given[name] = field.type === "boolean" ? value === "1" : value;
  }
  return writeMeta(base.meta, given, collection.meta, { caller: { has: () => isTrusted }, site });
}

function beforeTrash(meta: ReadonlyMap<string, string>, { site }: PlanContext): Post["beforeTrash"] {
  const status = STATUSES.find((name) => name === meta.get("_wp_trash_meta_status"));
  return {
    status: status === undefined || status === "trash" ? "draft" : status,
    slug: site.slug(meta.get("_wp_desired_post_slug") ?? ""),
  };
}

function objectOf(menuItem: Post["menuItem"] | undefined): References["object"] {
  if (menuItem?.type === "post_type") return { kind: "post", id: menuItem.objectId };
  return menuItem?.type === "taxonomy" ? { kind: "term", id: menuItem.objectId } : null;
}
