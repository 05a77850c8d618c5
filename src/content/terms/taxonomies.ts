/** The table of taxonomies: what each is called, holds and is written with. Routes, arguments and schemas are made from it. */

import type { PostType, Taxonomy } from "../records/records.js";

export interface TaxonomyDefinition {
  readonly taxonomy: Taxonomy;
  /** In paths: `/categories`; also the name of the field of a post that holds its terms. */
  readonly base: string;
  readonly labels: { readonly name: string; readonly singular: string };
  readonly isHierarchical: boolean;
  /** Whether its terms have an address of their own on the website. */
  readonly isViewable: boolean;
  /** Whether everybody may read its terms; else it takes a right to write something. */
  readonly isPublic: boolean;
  /** Of the posts that its terms are given to. */
  readonly types: readonly PostType[];
  /** The fields of an item in the order they are answered. */
  readonly fields: readonly string[];
  /** Of a post's class for each of its terms: `tag-<slug>`. */
  readonly classPrefix: string;
  /** Of the address of a term on the website. */
  readonly pathPrefix: string;
  /** Whether the posts of a term go with it. */
  readonly ownsItsPosts: boolean;
}

const FLAT = ["id", "count", "description", "link", "name", "slug", "taxonomy", "meta"];

export const taxonomies: { readonly [taxonomy in Taxonomy]: TaxonomyDefinition } = {
  category: {
    taxonomy: "category",
    base: "categories",
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
    base: "tags",
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
    base: "menus",
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
    base: "wp_pattern_category",
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
