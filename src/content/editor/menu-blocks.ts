/** Writes the items of a classic menu as blocks: links, and submenus for items that have others. */

import type { JsonObject } from "../../schema/types.js";
import {
  getMenuItem,
  isInvalidMenuItem,
  resolveMenuItemTitle,
  resolveMenuItemUrl,
} from "../posts/menu-items/menu-item-target.js";
import type { FieldView } from "../posts/post-field.js";

/**
 * Returns the blocks as text. Items that point at a record that is gone are left out, with the
 * items below them.
 *
 * @param items in the order of the menu
 */
export function toNavigationBlocks(items: readonly FieldView[]): string {
  const below = new Map<number, FieldView[]>();
  for (const item of items) {
    if (isInvalidMenuItem(item)) continue;
    const { parent } = item.post;
    const siblings = below.get(parent);
    if (siblings === undefined) below.set(parent, [item]);
    else siblings.push(item);
  }
  // An item is its own parent's child once, so a circle of items is never reached from the root.
  const write = (parent: number): string =>
    (below.get(parent) ?? []).map((item) => toBlock(item, write(item.post.id))).join("");
  return write(0);
}

function toBlock(view: FieldView, inner: string): string {
  const name = inner === "" ? "navigation-link" : "navigation-submenu";
  const attributes = serialiseAttributes(toAttributes(view));
  return inner === ""
    ? `<!-- wp:${name} ${attributes} /-->`
    : `<!-- wp:${name} ${attributes} -->${inner}<!-- /wp:${name} -->`;
}

/** Attributes without a value are left out. */
function toAttributes(view: FieldView): JsonObject {
  const { type, object, objectId, description, classes, target, xfn, attrTitle } = getMenuItem(view);
  const all: JsonObject = {
    className: classes.join(" ").trim(),
    description,
    id: type === "post_type" || type === "taxonomy" ? objectId : 0,
    kind: type.replaceAll("_", "-"),
    label: resolveMenuItemTitle(view),
    opensInNewTab: target === "_blank",
    rel: xfn.join(" ").trim(),
    title: attrTitle,
    type: object,
    url: resolveMenuItemUrl(view),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => Boolean(value)));
}

/** Returns JSON in which nothing can end the comment that a block delimiter is. */
const serialiseAttributes = (attributes: JsonObject): string =>
  JSON.stringify(attributes)
    .replaceAll("--", "\\u002d\\u002d")
    .replaceAll("<", "\\u003c")
    .replaceAll(">", "\\u003e")
    .replaceAll("&", "\\u0026")
    .replaceAll('\\"', "\\u0022");
