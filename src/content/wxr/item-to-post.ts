/** Converts an item of a file to a post. Its references still have the ids of the file. Pure. */

import type { Json, JsonObject } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { resolveScheduledStatus } from "../posts/post-dates.js";
import type { WriteContext } from "../posts/post-type-handler.js";
import { writeMeta } from "../posts/text-fields.js";
import { createPost } from "../posts/write-post.js";
import { STATUSES } from "../query/row.js";
import type { Collection, MetaField, MetaFields } from "../records/content-model.js";
import { type MenuItem, POST_FORMATS, type Post, type PostStatus } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { parseDate, type SiteZone } from "../text/dates.js";
import { cleanClasses, stripAll } from "../text/markup.js";
import { cleanUrl } from "../text/urls.js";
import { parseWholeNumber } from "./entry-collector.js";
import { getMenu, type NamedTerm } from "./identity.js";
import { toMedia } from "./item-to-media.js";
import { isRelativePath, mayImport } from "./options.js";
import { fromMetaText, unserializePhp } from "./php-serialize.js";
import type { WxrItem } from "./types.js";

/** References of a post, by the ids of the file; 0 for none. */
export interface References {
  parent: number;
  /** The slug of the menu that the parent of a menu item is in; empty for other posts. */
  menu: string;
  featuredMedia: number;
  object: { kind: "post" | "term"; id: number } | null;
}

export interface PlannedPost {
  /** Has no references yet. Its slug is the one in the file. */
  post: Post;
  references: References;
  /** Names of meta values that this site has no place for, or that do not fit their schema. */
  unknownMeta: string[];
}

interface PlanContext extends Omit<WriteContext, "collection"> {
  collection: Collection;
  author: number;
  /** False if the texts of the item were sanitised. */
  isTrusted: boolean;
  findTermId: (taxonomy: string, term: NamedTerm) => number | undefined;
}

const READ_META: Set<string> = new Set([
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

/** The record that an item is converted for. */
export interface PlannedFrom {
  id: number;
  /** The post as it is now; what the file does not contain stays as it is. */
  previous: Post | null;
}

/** The parts of an item that only some types have. */
interface TypedParts {
  menu: ReturnType<typeof toMenuItem> | undefined;
  media: ReturnType<typeof toMedia> | undefined;
}

type MetaValues = Map<string, string>;

export function toPlannedPost(
  item: WxrItem,
  { id, previous }: PlannedFrom,
  context: PlanContext,
): PlannedPost {
  const { collection } = context;
  const meta: MetaValues = new Map(item.meta.map(({ name, value }) => [name, value]));
  const parts: TypedParts = {
    menu: collection.type === "nav_menu_item" ? toMenuItem(item, meta) : undefined,
    media: collection.type === "attachment" ? toMedia(item, meta) : undefined,
  };
  const base: Post = previous ?? { ...createPost(context), id };
  const { meta: written, refused } = toMeta(item.meta, base.meta, collection.meta);
  const status = toAllowedStatus(toStatus(item), item, context);
  return {
    post: {
      ...base,
      ...toDates(item, status, context),
      ...toTexts(item, parts, context),
      ...toSettings(item, status, context),
      author: context.author,
      terms: toTerms(item, base, context),
      template: toTemplate(meta.get("_wp_page_template")),
      meta: written,
      isTrusted: context.isTrusted,
      beforeTrash: status === "trash" ? toBeforeTrash(meta, context) : null,
      parent: 0,
      featuredMedia: 0,
      target: "",
      menuItem: parts.menu === undefined ? null : withOwnId(parts.menu.menuItem, id),
      mimeType: parts.media?.mimeType ?? "",
      media: parts.media?.media ?? null,
    },
    references: toReferences(item, meta, parts),
    unknownMeta: [
      ...item.meta.flatMap(({ name }) =>
        READ_META.has(name) || Object.hasOwn(collection.meta, name) ? [] : [name],
      ),
      ...refused,
    ],
  };
}

/** A post without a scheduled date has no date in UTC. */
function toDates(item: WxrItem, status: PostStatus, { site, now }: PlanContext) {
  const dates = readItemDates(item, site.zone, now);
  const isFloating = ["draft", "pending", "auto-draft"].includes(status);
  return { ...dates, dateGmt: dates.dateGmt ?? (isFloating ? null : site.zone.toUtc(dates.date)) };
}

/** The excerpt and content of a menu item are its title attribute and description. */
function toTexts(item: WxrItem, { menu }: TypedParts, { site }: PlanContext) {
  return {
    slug: site.slug(item.slug),
    title: item.title,
    content: menu ? "" : item.content,
    excerpt: menu ? "" : item.excerpt,
  };
}

function toSettings(item: WxrItem, status: PostStatus, { collection, caller }: PlanContext) {
  const password = status === "private" ? "" : item.password;
  // As over REST, no post is sticky that has a password or is in the trash.
  const mayStick =
    mayImport(caller, "post", "edit_others_posts") || mayImport(caller, "post", "publish_posts");
  const isSticky = item.isSticky && mayStick && password === "" && status !== "trash";
  return {
    status,
    password,
    hasPassword: password !== "",
    menuOrder: item.menuOrder,
    sticky: collection.type === "post" && isSticky,
    format: collection.supports.includes("post-formats") ? toFormat(item) : "standard",
    commentStatus: toOpenOrClosed(item.commentStatus),
    pingStatus: toOpenOrClosed(item.pingStatus),
  };
}

const toOpenOrClosed = (status: string): "open" | "closed" => (status === "open" ? "open" : "closed");

/** A custom item refers to itself, as in WordPress. Other objects are resolved later. */
const withOwnId = (menuItem: MenuItem, id: number): MenuItem => ({
  ...menuItem,
  objectId: menuItem.type === "custom" ? id : 0,
});

const toReferences = (item: WxrItem, meta: MetaValues, { menu, media }: TypedParts): References => ({
  parent: menu?.parent ?? item.parent,
  menu: getMenu(item),
  featuredMedia: media === undefined ? Math.max(parseWholeNumber(meta.get("_thumbnail_id") ?? ""), 0) : 0,
  object: toObjectReference(menu?.menuItem),
});

/**
 * A menu item is either published or a draft. An attachment inherits the status of its post. An
 * unknown status, such as one of a plug-in, becomes a draft.
 */
function toStatus({ type, status }: WxrItem): PostStatus {
  const found = STATUSES.find((name) => name === status) ?? "draft";
  if (type === "nav_menu_item") return found === "publish" ? "publish" : "draft";
  if (type !== "attachment") return found === "inherit" ? "draft" : found;
  return found === "private" || found === "trash" ? found : "inherit";
}

/**
 * Applies the rules of REST: a date in the future schedules a post, and only who may publish
 * publishes.
 */
function toAllowedStatus(
  status: PostStatus,
  item: WxrItem,
  { collection: { type }, caller, site, now }: PlanContext,
): PostStatus {
  if (type === "nav_menu_item" || type === "attachment") return status;
  const isPublishing = status === "publish" || status === "future" || status === "private";
  if (isPublishing && !mayImport(caller, type, "publish_posts")) return "pending";
  return resolveScheduledStatus({ status, ...readItemDates(item, site.zone, now) }, now, site);
}

function toFormat({ terms }: WxrItem): string {
  const slug = terms.find(({ taxonomy }) => taxonomy === "post_format")?.slug.replace(/^post-format-/, "");
  return POST_FORMATS.find((format) => format === slug) ?? "standard";
}

/** A theme may take it for the path of a file, which must not lead out of its folder. */
const toTemplate = (template = ""): string =>
  template === "default" || template.length > LENGTHS.name || !isRelativePath(template) ? "" : template;

function toTerms(
  item: WxrItem,
  base: Post,
  { collection, index, findTermId, defaultCategory }: PlanContext,
): Post["terms"] {
  // Terms of a taxonomy that the site does not have at the moment stay.
  const { model } = index;
  const terms: { [taxonomy: string]: readonly number[] | undefined } = Object.fromEntries(
    Object.entries(base.terms).filter(([name]) => !model.taxonomies.has(name)),
  );
  for (const { taxonomy } of collection.taxonomies) {
    const ids = item.terms.flatMap((term) =>
      term.taxonomy === taxonomy ? (findTermId(taxonomy, term) ?? []) : [],
    );
    if (ids.length > 0) terms[taxonomy] = [...new Set(ids)].sort((a, b) => a - b);
  }
  const needsDefault =
    collection.type === "post" && terms["category"] === undefined && defaultCategory !== undefined;
  return needsDefault ? { ...terms, category: base.terms.category ?? [defaultCategory] } : terms;
}

/** Takes the values for which there is a field, if they fit it. `refused`: names of the others. */
function toMeta(
  rows: WxrItem["meta"],
  stored: JsonObject,
  fields: MetaFields,
): { meta: JsonObject; refused: string[] } {
  const texts = new Map<string, string[]>();
  for (const { name, value } of rows) {
    const found = texts.get(name);
    if (found !== undefined) found.push(value);
    else if (Object.hasOwn(fields, name)) texts.set(name, [value]);
  }
  let meta = stored;
  const refused: string[] = [];
  for (const [name, values] of texts) {
    const value = toMetaValue(values, fields[name] as MetaField);
    try {
      if (value !== undefined) meta = writeMeta(meta, { [name]: value }, fields);
    } catch (error) {
      if (!(error instanceof RestError)) throw error;
      refused.push(name);
    }
  }
  return { meta, refused };
}

/** Returns `undefined` for a value that is left out. */
function toMetaValue(texts: string[], { schema, declared }: MetaField): Json | undefined {
  const last = texts.at(-1) ?? "";
  if (declared === undefined) {
    if (schema.type === "boolean") return last === "1";
    return schema.enum?.includes(last) === false ? undefined : last;
  }
  const { type } = declared.isList ? (schema.items ?? {}) : schema;
  const read = (text: string): Json => (type === "boolean" && text === "" ? false : fromMetaText(text));
  // WordPress shows the first of several values.
  return declared.isList ? texts.map(read) : read(texts[0] ?? "");
}

function toBeforeTrash(meta: MetaValues, { site }: PlanContext): Post["beforeTrash"] {
  const status = STATUSES.find((name) => name === meta.get("_wp_trash_meta_status"));
  return {
    status: status === undefined || status === "trash" ? "draft" : status,
    slug: site.slug(meta.get("_wp_desired_post_slug") ?? ""),
  };
}

function toObjectReference(menuItem: Post["menuItem"] | undefined): References["object"] {
  if (menuItem?.type === "post_type") return { kind: "post", id: menuItem.objectId };
  return menuItem?.type === "taxonomy" ? { kind: "term", id: menuItem.objectId } : null;
}

// Converts an item of a file to a menu item. Its references have the ids of the file. Pure.

const TYPES: MenuItem["type"][] = ["taxonomy", "post_type", "post_type_archive", "custom"];

/** `parent` is the id in the file of the parent menu item. */
function toMenuItem(item: WxrItem, meta: Map<string, string>): { menuItem: MenuItem; parent: number } {
  const text = (name: string): string => meta.get(`_menu_item_${name}`) ?? "";
  const type = TYPES.find((name) => name === text("type")) ?? "custom";
  const classes = unserializePhp(text("classes"));
  const names =
    classes instanceof Map ? [...classes.values()].filter((name) => typeof name === "string") : [];
  return {
    parent: parseWholeNumber(text("menu_item_parent")),
    menuItem: {
      type,
      object: type === "custom" ? "custom" : stripAll(text("object")),
      objectId: type === "post_type" || type === "taxonomy" ? parseWholeNumber(text("object_id")) : 0,
      url: type === "custom" ? cleanUrl(text("url")) : "",
      target: stripAll(text("target")),
      attrTitle: stripAll(item.excerpt),
      description: stripAll(item.content),
      classes: cleanClasses(names),
      xfn: cleanClasses(text("xfn").split(/\s+/).filter(Boolean)),
    },
  };
}

/** Returns epoch milliseconds, or `undefined`, also for `0000-00-00 00:00:00`. */
const parse = (text: string): number | undefined => parseDate(text)?.ms;

interface ItemDates {
  date: number;
  /** `null` if the file has no date, as for a draft that was never scheduled. */
  dateGmt: number | null;
  modified: number;
  modifiedGmt: number;
}

/**
 * Reads the dates as they are in the file, whatever the time zone of this site. `now` is the date
 * of an item without any.
 */
export function readItemDates(item: WxrItem, zone: SiteZone, now: number): ItemDates {
  const gmt = parse(item.dateGmt);
  const changedGmt = parse(item.modifiedGmt);
  const changed = parse(item.modified) ?? (changedGmt === undefined ? undefined : zone.toLocal(changedGmt));
  const date =
    parse(item.date) ?? (gmt === undefined ? undefined : zone.toLocal(gmt)) ?? changed ?? zone.toLocal(now);
  const modified = changed ?? date;
  return {
    date,
    dateGmt: gmt ?? null,
    modified,
    modifiedGmt: changedGmt ?? (changed === undefined && gmt !== undefined ? gmt : zone.toUtc(modified)),
  };
}
