/** How menu items differ from posts. */

import { toText } from "../../../schema/coerce.js";
import type { Json } from "../../../schema/types.js";
import type { SiteIndex } from "../../query/site-index.js";
import type { MenuItem, Post } from "../../records/records.js";
import { RestError, refusal } from "../../rest/error.js";
import { cleanClasses, stripAll } from "../../text/markup.js";
import { readRawTitle } from "../post-field.js";
import type { PostChange, PostTypeRules, Values, WriteContext } from "../post-type-handler.js";
import { writeMeta } from "../text-fields.js";
import { createPost } from "../write-post.js";
import { menuItemFields } from "./menu-item-fields.js";
import { findTargetLink, listTargetKeys, resolveMenuItemTitle } from "./menu-item-target.js";

export const menuItemRules: PostTypeRules = {
  fields: menuItemFields,
  write: applyMenuItemValues,
  createDefaults: { type: "custom", status: "publish", parent: 0, menu_order: 1, object_id: 0 },
  deletedContext: "view",
  // Whoever edits anything may see menus.
  authorizeView(caller) {
    if (caller.canEditSomething()) return;
    throw refusal(caller, "rest_cannot_view", "Sorry, you are not allowed to view menu items.");
  },
  listLinks(post, { index, to }) {
    const link = findTargetLink({ post, index }, to);
    return link === undefined ? {} : { "wp:menu-item-object": [link] };
  },
  listDependencies: listTargetKeys,
};

// Writes values to a menu item or creates one, by WordPress's rules. Menu items are stored as posts
// of their own type. Pure.

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

const invalid = (code: string, message: string): RestError => new RestError(400, code, message);

/**
 * Returns the record that results from a change.
 *
 * @throws RestError 400 `rest_title_required`, `rest_url_required`, `rest_term_invalid_id`,
 * `rest_post_invalid_id`, `rest_post_invalid_type` or `invalid_menu_id`
 */
function applyMenuItemValues({ values, previous, id }: PostChange, context: WriteContext): Post {
  const { index, now, site } = context;
  const base: Post = previous ?? { ...createPost(context), id, dateGmt: now };
  const written = readRawTitle(values["title"] ?? null);
  const title = written ?? base.title;
  const item = resolveItem(values, base.menuItem ?? NEW_ITEM, index);
  assertComplete(item, title, index);
  const post: Post = {
    ...applyColumns(values, base, { context, id, isNew: previous === null }),
    title: title.trim(),
    isTrusted: written === undefined ? base.isTrusted : context.caller.has("unfiltered_html"),
    // Like in WordPress, a custom item points at itself.
    menuItem: item.type === "custom" ? { ...item, object: "custom", objectId: id } : { ...item, url: "" },
    target: toTargetKey(item),
    modified: site.zone.toLocal(now),
    modifiedGmt: now,
  };
  return written !== undefined && isTitleOfTarget(post, index) ? { ...post, title: "" } : post;
}

/** A title that repeats the target's is not stored, so that it follows the target. */
const isTitleOfTarget = (post: Post, index: SiteIndex): boolean =>
  post.menuItem?.type !== "custom" &&
  post.title === resolveMenuItemTitle({ post: { ...post, title: "" }, index });

/** Writes the values that menu items store like posts do. */
function applyColumns(
  values: Values,
  base: Post,
  { context, id, isNew }: { context: WriteContext; id: number; isNew: boolean },
): Post {
  const { meta } = values;
  const parent = Number(values["parent"] ?? base.parent);
  const terms = resolveMenu(values["menus"], base, context.index);
  // As in WordPress, only an item of a menu has an order. It begins at 1, also if an import says 0.
  const isInMenu = context.index.termsOf({ ...base, terms }, "nav_menu").length > 0;
  return {
    ...base,
    status: resolveStatus(values["status"], base.status, isNew),
    parent: parent === id ? 0 : parent,
    menuOrder: isInMenu ? Number(values["menu_order"] ?? base.menuOrder) || 1 : 1,
    terms,
    meta:
      meta === undefined
        ? base.meta
        : writeMeta(base.meta, meta, context.collection.meta, { caller: context.caller, id }),
  };
}

/** An item with another target takes the kind of object from the target. */
function resolveItem(values: Values, before: MenuItem, index: SiteIndex): MenuItem {
  const item = readItem(values, before);
  const isRetargeted = item.type !== before.type || item.objectId !== before.objectId;
  const object = values["object"] === undefined && isRetargeted ? "" : item.object;
  return { ...item, object: object || findObjectKind(item, index) };
}

function assertComplete(item: MenuItem, title: string, { model }: SiteIndex): void {
  if (item.type === "post_type_archive" && !model.types.has(item.object)) {
    throw invalid("rest_post_invalid_type", "Invalid post type.");
  }
  if (item.type !== "custom") return;
  const [first, ...others] = [
    ...(title === "" ? [required("title")] : []),
    ...(item.url === "" ? [required("url")] : []),
  ];
  if (first === undefined) return;
  const additional = others.map(({ code, message }) => ({ code, message, data: { status: 400 } }));
  throw new RestError(400, first.code, first.message, { additional });
}

const required = (field: "title" | "url") => ({
  code: `rest_${field}_required`,
  message: `The ${field} is required when using a custom menu item type.`,
});

function toTargetKey({ type, objectId }: MenuItem): string {
  if (type === "post_type") return `post/${objectId}`;
  return type === "taxonomy" ? `term/${objectId}` : "";
}

/** Like in WordPress, `null` empties a field. */
function readItem(values: Values, before: MenuItem): MenuItem {
  const text = (name: string, stored: string): string =>
    values[name] === undefined ? stored : stripAll(toText(values[name]));
  const list = (name: string, stored: readonly string[]): readonly string[] => {
    const value = values[name];
    return value === undefined ? stored : cleanClasses((value ?? []) as string[]);
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

/** Returns the post type or taxonomy of the target. */
function findObjectKind({ type, objectId }: MenuItem, index: SiteIndex): string {
  if (type === "taxonomy") {
    const term = index.term(objectId);
    if (term === undefined) throw invalid("rest_term_invalid_id", "Invalid term ID.");
    return term.taxonomy;
  }
  if (type === "post_type") {
    const post = index.post(objectId);
    if (post === undefined) throw invalid("rest_post_invalid_id", "Invalid post ID.");
    return post.type;
  }
  return "";
}

/** A menu item is published or a draft. Any other status becomes a draft. */
function resolveStatus(value: Json | undefined, before: Post["status"], isNew: boolean): Post["status"] {
  if (value === undefined || value === null) return isNew ? "publish" : before;
  return value === "publish" ? "publish" : "draft";
}

function resolveMenu(value: Json | undefined, { terms }: Post, index: SiteIndex): Post["terms"] {
  if (value === undefined || value === null || value === 0) return terms;
  if (index.term(Number(value))?.taxonomy !== "nav_menu") {
    throw invalid("invalid_menu_id", "Invalid menu ID.");
  }
  return { ...terms, nav_menu: [Number(value)] };
}
