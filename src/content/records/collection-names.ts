/** Names the collection of each type and taxonomy, as paths and events call it. Plain data. */

import type { PostType, Taxonomy } from "./records.js";

export const COLLECTION_NAMES = {
  post: "posts",
  page: "pages",
  attachment: "media",
  nav_menu_item: "menu-items",
  wp_block: "blocks",
  wp_navigation: "navigation",
  category: "categories",
  post_tag: "tags",
  nav_menu: "menus",
  wp_pattern_category: "wp_pattern_category",
} as const satisfies { readonly [type in PostType | Taxonomy]: string };
