/** The table of taxonomies. Routes, arguments and schemas of terms are made from it. */

import type { PostType, Taxonomy } from "../records/records.js";
import { COLLECTION_NAMES } from "../records/records.js";

export interface TaxonomyDefinition {
  readonly taxonomy: Taxonomy;
  /** In paths: `/categories`; also the name of the field of a post that holds its terms. */
  readonly base: string;
  readonly labels: { readonly name: string; readonly singular: string };
  readonly isHierarchical: boolean;
  /** True if its terms have addresses of their own on the website. */
  readonly isViewable: boolean;
  /** True if everybody may read its terms; otherwise the caller must be able to edit something. */
  readonly isPublic: boolean;
  /** The types of posts that its terms can be given to. */
  readonly types: readonly PostType[];
  /** The fields of an item, in the order of the response. */
  readonly fields: readonly string[];
  /** Prefix of the class that a post has for each of its terms: `tag-<slug>`. */
  readonly classPrefix: string;
  /** Prefix of a term's path on the website. */
  readonly pathPrefix: string;
  /** True if deleting a term deletes its posts, as for the items of a menu. */
  readonly ownsItsPosts: boolean;
}

const FLAT = ["id", "count", "description", "link", "name", "slug", "taxonomy", "meta"];

export const taxonomies: { readonly [taxonomy in Taxonomy]: TaxonomyDefinition } = {
  category: {
    taxonomy: "category",
    base: COLLECTION_NAMES.category,
    labels: { name: "Categories", singular: "Category" },
    isHierarchical: true,
    isViewable: true,
    isPublic: true,
    types: ["post"],
    fields: ["id", "count", "description", "link", "name", "slug", "taxonomy", "parent", "meta"],
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

export const getTaxonomy = (taxonomy: Taxonomy): TaxonomyDefinition => taxonomies[taxonomy];
