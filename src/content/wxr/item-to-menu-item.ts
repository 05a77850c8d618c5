/** Converts an item of a file to a menu item. Its references have the ids of the file. Pure. */

import type { MenuItem } from "../records/records.js";
import { cleanClasses, stripAll } from "../text/plain.js";
import { cleanUrl } from "../text/urls.js";
import { parseWholeNumber } from "./elements.js";
import { unserializePhp } from "./php-serialize.js";
import type { WxrItem } from "./types.js";

const TYPES: readonly MenuItem["type"][] = ["taxonomy", "post_type", "post_type_archive", "custom"];

/** `parent` is the id in the file of the parent menu item. */
export function toMenuItem(
  item: WxrItem,
  meta: ReadonlyMap<string, string>,
): { readonly menuItem: MenuItem; readonly parent: number } {
  const text = (name: string): string => meta.get(`_menu_item_${name}`) ?? "";
  const type = TYPES.find((known) => known === text("type")) ?? "custom";
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
