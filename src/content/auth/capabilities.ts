/**
 * Maps the general capabilities of WordPress to those of each type and taxonomy. Plain data; knows
 * no role and no user.
 */

import type { CapabilityNames } from "../records/content-model.js";
import type { BuiltInPostType, BuiltInTaxonomy } from "../records/records.js";

/** Returns the names of a type whose capabilities end in `_<plural>`. */
export const namesEndingIn = (plural: string): CapabilityNames => ({
  read: "read",
  create_posts: `edit_${plural}`,
  edit_posts: `edit_${plural}`,
  edit_others_posts: `edit_others_${plural}`,
  edit_published_posts: `edit_published_${plural}`,
  edit_private_posts: `edit_private_${plural}`,
  publish_posts: `publish_${plural}`,
  read_private_posts: `read_private_${plural}`,
  delete_posts: `delete_${plural}`,
  delete_others_posts: `delete_others_${plural}`,
  delete_published_posts: `delete_published_${plural}`,
  delete_private_posts: `delete_private_${plural}`,
});

const posts = namesEndingIn("posts");

const withValue = (names: CapabilityNames, value: string): CapabilityNames =>
  Object.fromEntries(Object.keys(names).map((name) => [name, value]));

const termNames = (manage: string, edit: string, remove: string, assign: string): CapabilityNames => ({
  manage_terms: manage,
  edit_terms: edit,
  delete_terms: remove,
  assign_terms: assign,
});

/**
 * The names by type or taxonomy. No role has the private ones of patterns, so a private pattern is
 * visible to its author only.
 *
 * Source: the capabilities with which WordPress 7.1 registers its types and taxonomies.
 */
export const capabilityNames: {
  [of in BuiltInPostType | BuiltInTaxonomy]: CapabilityNames;
} = {
  post: posts,
  page: namesEndingIn("pages"),
  attachment: { ...posts, create_posts: "upload_files" },
  nav_menu_item: { ...withValue(posts, "edit_theme_options"), read: "read" },
  wp_block: {
    ...posts,
    read: "edit_posts",
    create_posts: "publish_posts",
    publish_posts: "publish_blocks",
    read_private_posts: "read_private_blocks",
    edit_private_posts: "edit_private_blocks",
    delete_private_posts: "delete_private_blocks",
  },
  wp_navigation: { ...withValue(posts, "edit_theme_options"), read: "read" },
  category: termNames("manage_categories", "edit_categories", "delete_categories", "assign_categories"),
  post_tag: termNames("manage_post_tags", "edit_post_tags", "delete_post_tags", "assign_post_tags"),
  nav_menu: termNames("edit_theme_options", "edit_theme_options", "edit_theme_options", "edit_theme_options"),
  wp_pattern_category: termNames("manage_categories", "manage_categories", "manage_categories", "edit_posts"),
};

/** Capabilities that no role has by name, each with the capability that implies it. */
export const impliedBy: Map<string, string> = new Map([
  ["edit_categories", "manage_categories"],
  ["delete_categories", "manage_categories"],
  ["assign_categories", "edit_posts"],
  ["manage_post_tags", "manage_categories"],
  ["edit_post_tags", "manage_categories"],
  ["delete_post_tags", "manage_categories"],
  ["assign_post_tags", "edit_posts"],
  ["publish_blocks", "publish_posts"],
]);
