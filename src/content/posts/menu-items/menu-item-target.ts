/** The record that a menu item points at, and what the item shows of it. */

import type { Caller } from "../../auth/caller.js";
import { listAncestors } from "../../query/row.js";
import type { SiteIndex } from "../../query/site-index.js";
import { getTaxonomy } from "../../records/content-model.js";
import type { MenuItem, Post, PostColumns, Term } from "../../records/records.js";
import type { ItemLink } from "../../rest/types.js";
import { listTermAncestors, termLink } from "../../terms/term-fields.js";
import { cleanUrl } from "../../text/urls.js";
import type { FieldView } from "../post-field.js";
import { postPath } from "../post-links.js";

export type MenuItemView = { post: FieldView["post"]; index: FieldView["index"] };

type Target = { post: PostColumns } | { term: Term };

/** Every menu item has it. */
export const getMenuItem = ({ post }: { post: FieldView["post"] }): MenuItem => post.menuItem as MenuItem;

const isTargeted = (type: MenuItem["type"]): boolean => type === "post_type" || type === "taxonomy";

/** Returns `undefined` if the item points at nothing, or at a record that is gone. */
function findTarget({ post, index }: MenuItemView): Target | undefined {
  const item = post.menuItem;
  if (item?.type === "post_type") {
    const found = index.post(item.objectId);
    return found && { post: found };
  }
  if (item?.type === "taxonomy") {
    const found = index.term(item.objectId);
    // As in WordPress, the id of a term counts only in its taxonomy; that of a post always.
    return found?.taxonomy === item.object ? { term: found } : undefined;
  }
  return undefined;
}

/** Returns the title of the item, or else of its target or archive. */
export function resolveMenuItemTitle(view: MenuItemView): string {
  if (view.post.title !== "") return view.post.title;
  const { type, object, objectId } = getMenuItem(view);
  if (type === "post_type_archive") return view.index.model.types.get(object)?.labels.archives ?? "";
  if (!isTargeted(type)) return "";
  const target = findTarget(view);
  const title = target && ("post" in target ? target.post.title : target.term.name);
  return title || `#${objectId} (no title)`;
}

/** True if the item has no title, and points at a post that has one. */
export function showsTitleOfPost(view: MenuItemView): boolean {
  const target = view.post.title === "" ? findTarget(view) : undefined;
  return target !== undefined && "post" in target && target.post.title !== "";
}

export function isInvalidMenuItem(view: MenuItemView): boolean {
  const { type, object } = getMenuItem(view);
  if (type === "post_type_archive") return !view.index.model.types.has(object);
  if (!isTargeted(type)) return false;
  if (findLabel(view) === undefined) return true;
  const target = findTarget(view);
  return target === undefined || ("post" in target && target.post.status === "trash");
}

/** True unless the item points at a post that `caller` may not read. */
export function mayReadMenuItemTarget(view: MenuItemView, caller: Caller): boolean {
  const target = findTarget(view);
  if (target === undefined || !("post" in target)) return true;
  const { post } = target;
  return caller.may("read", post, post.status === "inherit" ? view.index.post(post.parent) : undefined);
}

export function readTypeLabel(view: MenuItemView): string {
  const item = getMenuItem(view);
  if (isTargeted(item.type)) return findLabel(view) ?? item.object;
  return item.type === "post_type_archive" ? "Post Type Archive" : "Custom Link";
}

/** Returns the label of the type or taxonomy that the item names, whatever its target is. */
function findLabel(view: MenuItemView): string | undefined {
  const { type, object } = getMenuItem(view);
  const { types, taxonomies } = view.index.model;
  return (type === "post_type" ? types : taxonomies).get(object)?.labels.singular;
}

/** Returns the address that the item leads to. */
export function resolveMenuItemUrl(view: FieldView): string {
  const { type, object, url } = getMenuItem(view);
  // The front page lists the posts. No other type has an archive.
  if (type === "post_type_archive") return object === "post" ? view.site.home : "";
  const target = findTarget(view);
  // An earlier version may have stored it unchecked.
  if (target === undefined) return cleanUrl(url);
  if ("post" in target) return view.site.link(target.post, view.index);
  return termLink(target.term, getTaxonomy(view.index.model, target.term.taxonomy), view.site, view.index);
}

/** Returns the link to the target over REST. */
export function findTargetLink(view: MenuItemView, to: (path: string) => string): ItemLink | undefined {
  const target = findTarget(view);
  if (target === undefined) return undefined;
  return "post" in target
    ? { post_type: target.post.type, embeddable: true, href: to(postPath(target.post, view.index)) }
    : {
        taxonomy: target.term.taxonomy,
        embeddable: true,
        href: to(`/${getTaxonomy(view.index.model, target.term.taxonomy).base}/${target.term.id}`),
      };
}

/** Returns the keys of the target and of the records above it, which its address is made of. */
export function listTargetKeys(post: Post, index: SiteIndex): string[] {
  // The target may be gone, or may not exist yet.
  const targets = post.target === "" ? [] : [post.target];
  const target = findTarget({ post, index });
  if (target === undefined) return targets;
  if ("post" in target) {
    const ids = [target.post.id, ...listAncestors(target.post, index)];
    return [...targets, ...ids.map((id) => `post/${id}`)];
  }
  const terms = [target.term, ...listTermAncestors(target.term, index)];
  return [...targets, ...terms.map(({ id }) => `term/${id}`)];
}
