/** The table of the built-in taxonomies. Routes, arguments and schemas are made from it. */

import type { TaxonomyDefinition } from "../records/content-model.js";
import type { BuiltInTaxonomy } from "../records/records.js";
import { COLLECTION_NAMES } from "../records/records.js";

const FLAT = ["id", "count", "description", "link", "name", "slug", "taxonomy", "meta"];
const TREE = ["id", "count", "description", "link", "name", "slug", "taxonomy", "parent", "meta"];

/** The fields of a term of the host's. */
export const TERM_FIELDS = { flat: FLAT, tree: TREE };

export const taxonomies: {
  [taxonomy in BuiltInTaxonomy]: Omit<TaxonomyDefinition, "capabilities" | "taxonomy"> & {
    taxonomy: BuiltInTaxonomy;
  };
} = {
  category: {
    taxonomy: "category",
    base: COLLECTION_NAMES.category,
    labels: { name: "Categories", singular: "Category" },
    isHierarchical: true,
    isViewable: true,
    isPublic: true,
    types: ["post"],
    fields: TREE,
    classPrefix: "category",
    pathPrefix: "category",
    ownsItsPosts: false,
  },
  post_tag: {
    taxonomy: "post_tag",
    base: COLLECTION_NAMES.post_tag,
    labels: { name: "Tags", singular: "Tag" },
    isHierarchical: false,
    isViewable: true,
    isPublic: true,
    types: ["post"],
    fields: FLAT,
    classPrefix: "tag",
    pathPrefix: "tag",
    ownsItsPosts: false,
  },
  nav_menu: {
    taxonomy: "nav_menu",
    base: COLLECTION_NAMES.nav_menu,
    labels: { name: "Navigation Menus", singular: "Navigation Menu" },
    isHierarchical: false,
    isViewable: false,
    isPublic: false,
    types: ["nav_menu_item"],
    fields: ["id", "description", "name", "slug", "meta", "locations", "auto_add"],
    classPrefix: "nav_menu",
    pathPrefix: "nav_menu",
    ownsItsPosts: true,
  },
  wp_pattern_category: {
    taxonomy: "wp_pattern_category",
    base: COLLECTION_NAMES.wp_pattern_category,
    labels: { name: "Pattern Categories", singular: "Pattern Category" },
    isHierarchical: false,
    isViewable: false,
    isPublic: true,
    types: ["wp_block"],
    fields: FLAT,
    classPrefix: "wp_pattern_category",
    pathPrefix: "wp_pattern_category",
    ownsItsPosts: false,
  },
};
