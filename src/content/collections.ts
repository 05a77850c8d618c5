/**
 * The table of the built-in post types: names, path, taxonomies, default order of lists, meta
 * fields. Routes, arguments, schemas and the index are built from it. The fields are in
 * `posts/post-fields.ts`.
 */

import { STATUSES } from "./query/row.js";
import type { Collection, MetaFields, PostOrder } from "./records/content-model.js";
import type { BuiltInPostType, BuiltInTaxonomy } from "./records/records.js";
import { COLLECTION_NAMES } from "./records/records.js";

/**
 * Every status that a list accepts, in WordPress's order. A plug-in that most sites have registers
 * `dp-rewrite-republish`.
 */
const LISTED_STATUSES: string[] = [
  ...STATUSES,
  "request-pending",
  "request-confirmed",
  "request-failed",
  "request-completed",
  "dp-rewrite-republish",
  "any",
];

/** The statuses that a client may write. */
export const WRITABLE_STATUSES = ["publish", "future", "draft", "pending", "private"] as const;

const INLINE_FEATURED_IMAGE = {
  inline_featured_image: { schema: { type: "boolean", default: false }, default: false },
} as const satisfies MetaFields;
const FOOTNOTES = {
  footnotes: { schema: { type: "string", default: "" }, default: "", isRevisioned: true },
} as const satisfies MetaFields;

const ORDERS = [
  "author",
  "date",
  "id",
  "include",
  "modified",
  "parent",
  "relevance",
  "slug",
  "include_slugs",
  "title",
] as const satisfies PostOrder[];

const LIST = {
  perPage: 10,
  order: "desc",
  orderBy: "date",
  orders: ORDERS,
  status: "publish",
  statuses: LISTED_STATUSES,
} as const satisfies Collection["list"];

const CLOSED_DRAFT = {
  status: "draft",
  commentStatus: "closed",
  pingStatus: "closed",
} as const satisfies Collection["newPost"];

export const collections = {
  posts: {
    base: COLLECTION_NAMES.post,
    type: "post",
    labels: { name: "Posts", singular: "Post", archives: "Post Archives" },
    description: "",
    isHierarchical: false,
    isViewable: true,
    isPublic: true,
    taxonomies: ["category", "post_tag"],
    supports: [
      "title",
      "editor",
      "author",
      "thumbnail",
      "excerpt",
      "trackbacks",
      "custom-fields",
      "comments",
      "revisions",
      "post-formats",
      "autosave",
    ],
    newPost: { status: "draft", commentStatus: "open", pingStatus: "open" },
    list: LIST,
    meta: { ...INLINE_FEATURED_IMAGE, ...FOOTNOTES },
    allowBatch: true,
    hasTrash: true,
    hasRevisions: true,
    hasAttachments: true,
  },
  pages: {
    base: COLLECTION_NAMES.page,
    type: "page",
    labels: { name: "Pages", singular: "Page", archives: "Page Archives" },
    description: "",
    isHierarchical: true,
    isViewable: true,
    isPublic: true,
    taxonomies: [],
    supports: [
      "title",
      "editor",
      "author",
      "thumbnail",
      "page-attributes",
      "custom-fields",
      "comments",
      "revisions",
      "autosave",
    ],
    newPost: CLOSED_DRAFT,
    list: { ...LIST, orders: [...ORDERS, "menu_order"] },
    meta: { ...INLINE_FEATURED_IMAGE, ...FOOTNOTES },
    allowBatch: true,
    hasTrash: true,
    hasRevisions: true,
    hasAttachments: true,
  },
  media: {
    base: COLLECTION_NAMES.attachment,
    type: "attachment",
    labels: { name: "Media", singular: "Media", archives: "Post Archives" },
    description: "",
    isHierarchical: false,
    isViewable: true,
    isPublic: true,
    taxonomies: [],
    supports: ["title", "author", "comments"],
    newPost: { status: "inherit", commentStatus: "open", pingStatus: "closed" },
    list: { ...LIST, status: "inherit", statuses: ["inherit", "private", "trash"] },
    meta: INLINE_FEATURED_IMAGE,
    allowBatch: false,
    hasTrash: false,
    hasRevisions: false,
    hasAttachments: false,
  },
  "menu-items": {
    base: COLLECTION_NAMES.nav_menu_item,
    type: "nav_menu_item",
    labels: {
      name: "Navigation Menu Items",
      singular: "Navigation Menu Item",
      archives: "Post Archives",
    },
    description: "",
    isHierarchical: false,
    isViewable: false,
    isPublic: false,
    taxonomies: ["nav_menu"],
    supports: ["title", "editor", "autosave"],
    newPost: CLOSED_DRAFT,
    list: {
      ...LIST,
      perPage: 100,
      order: "asc",
      orderBy: "menu_order",
      orders: [...ORDERS, "menu_order"],
    },
    meta: INLINE_FEATURED_IMAGE,
    allowBatch: true,
    hasTrash: false,
    hasRevisions: false,
    hasAttachments: false,
  },
  blocks: {
    base: COLLECTION_NAMES.wp_block,
    type: "wp_block",
    labels: { name: "Patterns", singular: "Pattern", archives: "All Patterns" },
    description: "",
    isHierarchical: false,
    isViewable: false,
    isPublic: false,
    taxonomies: ["wp_pattern_category"],
    supports: ["title", "excerpt", "editor", "revisions", "custom-fields", "autosave"],
    newPost: CLOSED_DRAFT,
    list: LIST,
    meta: {
      ...INLINE_FEATURED_IMAGE,
      ...FOOTNOTES,
      wp_pattern_sync_status: {
        schema: { type: "string", default: "", enum: ["partial", "unsynced"] },
        default: "",
      },
    },
    allowBatch: true,
    hasTrash: true,
    hasRevisions: true,
    hasAttachments: true,
  },
  navigation: {
    base: COLLECTION_NAMES.wp_navigation,
    type: "wp_navigation",
    labels: {
      name: "Navigation Menus",
      singular: "Navigation Menu",
      archives: "Navigation Menu archives",
    },
    description: "Navigation menus that can be inserted into your site.",
    isHierarchical: false,
    isViewable: false,
    isPublic: true,
    taxonomies: [],
    supports: ["title", "editor", "revisions", "autosave"],
    newPost: CLOSED_DRAFT,
    list: LIST,
    meta: {},
    allowBatch: true,
    hasTrash: true,
    hasRevisions: true,
    hasAttachments: true,
  },
} as const satisfies { [base: string]: BuiltInCollection };

/** The rows of declared types begin with these values, which they share with posts. */
export const DECLARED = {
  list: LIST,
  meta: FOOTNOTES,
  allowBatch: true,
  hasTrash: true,
  hasAttachments: true,
} as const satisfies Partial<Collection>;

/** A row of the table. The model of the content adds what other tables say about the type. */
export interface BuiltInCollection extends Omit<Collection, "taxonomies" | "capabilities"> {
  type: BuiltInPostType;
  taxonomies: BuiltInTaxonomy[];
}
