/** What becomes of a menu item when it is written. Pure rules after the reference's, which stores an item as a post of its own type. */

import { toText } from "../../../schema/text-of.js";
import type { Json } from "../../../schema/types.js";
import type { SiteIndex } from "../../query/site-index.js";
import type { MenuItem, Post } from "../../records/records.js";
import { RestError } from "../../rest/error.js";
import { cleanClasses, stripAll } from "../../text/plain.js";
import { readRaw } from "../post-fields.js";
import { writeMeta } from "../post-meta.js";
import { sanitiseText } from "../sanitised-text.js";
import { createPost, type PostDates, type Values, type WriteContext } from "../write-post.js";
import { menuItemTitle } from "./menu-item-fields.js";

const NEW_ITEM: MenuItem = {
  type: "custom",
  object: "",
  objectId: 0,
  url: "",
  target: "",
  attrTitle: "",
  description: "",
  classes: [],
  xfn: [],
};

const refused = (code: string, message: string): RestError => new RestError(400, code, message);

/**
 * The record that comes of writing `values` over `previous`, or of creating one with the id `id`.
 *
 * Errors: RestError 400: `rest_title_required`, `rest_url_required`, `rest_term_invalid_id`, `rest_post_invalid_id`, `rest_post_invalid_type`, `invalid_menu_id`.
 */
export function applyMenuItemValues(
  values: Values,
  previous: Post | null,
  id: number,
  context: WriteContext,
  _dates: PostDates,
): Post {
  const { collection, index, now, site } = context;
  const base: Post = previous ?? { ...createPost(context), id, dateGmt: now };
  const before = base.menuItem ?? NEW_ITEM;
  const written = itemOf(values, before);
  const isRetargeted = written.type !== before.type || written.objectId !== before.objectId;
  // A type that changed takes the kind of object from what it now points at.
  const object = values["object"] === undefined && isRetargeted ? "" : written.object;
  const isTitled = values["title"] !== undefined;
  const title = isTitled ? filtered(readRaw(values["title"] as Json) ?? "", context) : base.title;
  const item = { ...written, object: object || objectOf(written, index) };
  if (item.type === "post_type_archive" && !["post", "page"].includes(item.object)) {
    throw refused("rest_post_invalid_type", "Invalid post type.");
  }
  if (item.type === "custom") {
    if (title === "")
      throw refused("rest_title_required", "The title is required when using a custom menu item type.");
    if (item.url === "")
      throw refused("rest_url_required", "The url is required when using a custom menu item type.");
  }
  const post: Post = {
    ...base,
    title,
    status: statusOf(values["status"], base.status, previous === null),
    parent: Number(values["parent"] ?? base.parent),
    menuOrder: Number(values["menu_order"] ?? base.menuOrder),
    terms: menuOf(values["menus"], base, index),
    meta:
      values["meta"] === undefined
        ? base.meta
        : writeMeta(base.meta, values["meta"], collection.meta, context),
    // The reference lets an item of its own point at itself.
    menuItem: item.type === "custom" ? { ...item, object: "custom", objectId: id } : { ...item, url: "" },
    target:
      item.type === "post_type"
        ? `post/${item.objectId}`
        : item.type === "taxonomy"
          ? `term/${item.objectId}`
          : "",
    modified: site.zone.toLocal(now),
    modifiedGmt: now,
  };
  // A title that says what the object says anyway follows the object.
  return isTitled &&
    item.type !== "custom" &&
    title === menuItemTitle({ post: { ...post, title: "" }, index })
    ? { ...post, title: "" }
    : post;
}

const filtered = (title: string, { caller, site }: WriteContext): string =>
  caller.has("unfiltered_html") ? title : sanitiseText(title, "title", site);

/** `null` empties a field, as in the reference. */
function itemOf(values: Values, before: MenuItem): MenuItem {
  const text = (name: string, kept: string): string =>
    values[name] === undefined ? kept : stripAll(toText(values[name]));
  const list = (name: string, kept: readonly string[]): readonly string[] => {
    const value = values[name];
    if (value === undefined) return kept;
    return cleanClasses((value ?? []) as readonly string[]);
  };
  return {
    type: (values["type"] === undefined ? before.type : (values["type"] ?? "")) as MenuItem["type"],
    object: text("object", before.object),
    objectId: Number(values["object_id"] ?? before.objectId),
    url: values["url"] === undefined ? before.url : toText(values["url"]),
    target: text("target", before.target),
    attrTitle: text("attr_title", before.attrTitle),
    description: text("description", before.description),
    classes: list("classes", before.classes),
    xfn: list("xfn", before.xfn),
  };
}

/** What kind of object an item points at, found by its id. */
function objectOf({ type, objectId }: MenuItem, index: SiteIndex): string {
  if (type === "taxonomy") {
    const term = index.term(objectId);
    if (term === undefined) throw refused("rest_term_invalid_id", "Invalid term ID.");
    return term.taxonomy;
  }
  if (type === "post_type") {
    const post = index.post(objectId);
    if (post === undefined) throw refused("rest_post_invalid_id", "Invalid post ID.");
    return post.type;
  }
  return "";
}

/** A menu item is published or a draft: whatever else is asked for makes a draft. */
function statusOf(value: Json | undefined, before: Post["status"], isNew: boolean): Post["status"] {
  if (value === undefined || value === null) return isNew ? "publish" : before;
  return value === "publish" ? "publish" : "draft";
}

function menuOf(value: Json | undefined, { terms }: Post, index: SiteIndex): Post["terms"] {
  if (value === undefined || value === null || value === 0) return terms;
  if (index.term(Number(value))?.taxonomy !== "nav_menu")
    throw refused("invalid_menu_id", "Invalid menu ID.");
  return { ...terms, nav_menu: [Number(value)] };
}
