/** How menu items differ from posts. */

import { canEditSomething } from "../../auth/capabilities.js";
import { refusal } from "../../rest/error.js";
import type { PostTypeRules } from "../post-type-handler.js";
import { menuItemFields } from "./menu-item-fields.js";
import { findTargetLink, listTargetKeys } from "./menu-item-target.js";
import { applyMenuItemValues } from "./write-menu-item.js";

export const menuItemRules: PostTypeRules = {
  fields: menuItemFields,
  write: applyMenuItemValues,
  createDefaults: { type: "custom", status: "publish", parent: 0, menu_order: 1, object_id: 0 },
  deletedContext: "view",
  // Whoever edits anything may see menus.
  authorizeView(caller) {
    if (canEditSomething(caller)) return;
    throw refusal(caller, "rest_cannot_view", "Sorry, you are not allowed to view menu items.");
  },
  listLinks(post, { index, to }) {
    const link = findTargetLink({ post, index }, to);
    return link === undefined ? {} : { "wp:menu-item-object": [link] };
  },
  listDependencies: listTargetKeys,
};
