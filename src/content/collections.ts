/** The table of collections: what each type of post is called, holds, lists by and starts with. Routes, arguments, schemas and the index are made from it. */

import { STATUSES } from "./query/row.js";
import type { PostOrder } from "./query/types.js";
import type { PostType, Taxonomy } from "./records/records.js";

/** A post format of the reference; `standard` stands for none. */
export const POST_FORMATS = [
  "standard",
  "aside",
  "chat",
  "gallery",
  "link",
  "image",
  "quote",
  "status",
  "video",
  "audio",
] as const;

/** Every status a list can be asked for, in the reference's order; the extra one is registered by a plug-in that most sites have. */
const LISTED_STATUSES: readonly string[] = [
  ...STATUSES,
  "request-pending",
  "request-confirmed",
  "request-failed",
  "request-completed",
  "dp-rewrite-republish",
  "any",
];

/** The statuses that can be written. */
export const WRITABLE_STATUSES = ["publish", "future", "draft", "pending", "private"] as const;

export interface MetaField {
  readonly type: "boolean" | "string";
  readonly default: boolean | string;
  readonly enum?: readonly string[];
  /** Whether revisions keep it. */
  readonly isRevisioned?: true;
}

const INLINE_FEATURED_IMAGE = {
  inline_featured_image: { type: "boolean", default: false },
} as const satisfies Record<string, MetaField>;
const FOOTNOTES = {
  footnotes: { type: "string", default: "", isRevisioned: true },
} as const satisfies Record<string, MetaField>;

export interface Collection {
  /** In paths: `/posts`. */
  readonly base: string;
  readonly type: PostType;
  readonly labels: { readonly name: string; readonly singular: string };
  readonly description: string;
  readonly isHierarchical: boolean;
  /** Whether it has an address of its own on the website. */
  readonly isViewable: boolean;
  /** Whether its lists and published items are for everybody; else a right to edit posts, or menus, is asked for. */
  readonly isPublic: boolean;
  readonly taxonomies: readonly Taxonomy[];
  /** What the reference calls supports, for `/types`. */
  readonly supports: readonly string[];
  /** The fields of an item in the order they are answered. */
  readonly fields: readonly string[];
  /** Arguments of the list beside those of every list. */
  readonly filters: readonly string[];
  readonly list: {
    readonly perPage: number;
    readonly order: "asc" | "desc";
    readonly orderBy: PostOrder;
    readonly orders: readonly PostOrder[];
    readonly status: string;
    readonly statuses: readonly string[];
  };
  readonly meta: { readonly [name: string]: MetaField };
  /** Whether a batch may use its routes. */
  readonly allowBatch: boolean;
  /** Whether deleting without `force` moves to the trash. */
  readonly hasTrash: boolean;
  readonly hasRevisions: boolean;
}

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
] as const satisfies readonly PostOrder[];

const LIST = {
  perPage: 10,
  order: "desc",
  orderBy: "date",
  orders: ORDERS,
  status: "publish",
  statuses: LISTED_STATUSES,
} as const satisfies Collection["list"];

const HEAD = [
  "id",
  "date",
  "date_gmt",
  "guid",
  "modified",
  "modified_gmt",
  "password",
  "slug",
  "status",
  "type",
  "link",
];

export const collections = {
  posts: {
    base: "posts",
    type: "post",
    labels: { name: "Posts", singular: "Post" },
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
    fields: [
      ...HEAD,
      "title",
      "content",
      "excerpt",
      "author",
      "featured_media",
      "comment_status",
      "ping_status",
      "sticky",
      "template",
      "format",
      "meta",
      "permalink_template",
      "generated_slug",
      "categories",
      "tags",
      "class_list",
    ],
    filters: [
      "author",
      "author_exclude",
      "tax_relation",
      "categories",
      "tags",
      "sticky",
      "ignore_sticky",
      "format",
    ],
    list: LIST,
    meta: { ...INLINE_FEATURED_IMAGE, ...FOOTNOTES },
    allowBatch: true,
    hasTrash: true,
    hasRevisions: true,
  },
  pages: {
    base: "pages",
    type: "page",
    labels: { name: "Pages", singular: "Page" },
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
      "excerpt",
      "autosave",
    ],
    fields: [
      ...HEAD,
      "title",
      "content",
      "excerpt",
      "author",
      "featured_media",
      "parent",
      "menu_order",
      "comment_status",
      "ping_status",
      "template",
      "meta",
      "permalink_template",
      "generated_slug",
      "class_list",
    ],
    filters: ["author", "author_exclude", "menu_order", "parent", "parent_exclude"],
    list: { ...LIST, orders: [...ORDERS, "menu_order"] },
    meta: { ...INLINE_FEATURED_IMAGE, ...FOOTNOTES },
    allowBatch: true,
    hasTrash: true,
    hasRevisions: true,
  },
  media: {
    base: "media",
    type: "attachment",
    labels: { name: "Media", singular: "Media" },
    description: "",
    isHierarchical: false,
    isViewable: true,
    isPublic: true,
    taxonomies: [],
    supports: ["title", "author", "comments"],
    fields: [
      ...HEAD.filter((name) => name !== "password"),
      "title",
      "author",
      "featured_media",
      "comment_status",
      "ping_status",
      "template",
      "meta",
      "permalink_template",
      "generated_slug",
      "class_list",
      "description",
      "caption",
      "alt_text",
      "media_type",
      "mime_type",
      "media_details",
      "post",
      "source_url",
      "missing_image_sizes",
      "filename",
      "filesize",
      "exif_orientation",
      "image_output_format",
      "image_quality",
      "image_save_progressive",
    ],
    filters: ["author", "author_exclude", "parent", "parent_exclude", "media_type", "mime_type"],
    list: { ...LIST, status: "inherit", statuses: ["inherit", "private", "trash"] },
    meta: INLINE_FEATURED_IMAGE,
    allowBatch: false,
    hasTrash: false,
    hasRevisions: false,
  },
  "menu-items": {
    base: "menu-items",
    type: "nav_menu_item",
    labels: { name: "Navigation Menu Items", singular: "Navigation Menu Item" },
    description: "",
    isHierarchical: false,
    isViewable: false,
    isPublic: false,
    taxonomies: ["nav_menu"],
    supports: ["title", "editor", "autosave"],
    fields: [
      "title",
      "id",
      "type_label",
      "type",
      "status",
      "parent",
      "attr_title",
      "classes",
      "description",
      "menu_order",
      "object",
      "object_id",
      "target",
      "url",
      "xfn",
      "invalid",
      "meta",
      "menus",
    ],
    filters: ["menu_order", "tax_relation", "menus"],
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
  },
  blocks: {
    base: "blocks",
    type: "wp_block",
    labels: { name: "Patterns", singular: "Pattern" },
    description: "",
    isHierarchical: false,
    isViewable: false,
    isPublic: false,
    taxonomies: ["wp_pattern_category"],
    supports: ["title", "excerpt", "editor", "revisions", "custom-fields", "autosave"],
    fields: [
      ...HEAD,
      "title",
      "content",
      "excerpt",
      "template",
      "meta",
      "wp_pattern_sync_status",
      "wp_pattern_category",
    ],
    filters: ["tax_relation", "wp_pattern_category"],
    list: LIST,
    meta: {
      ...INLINE_FEATURED_IMAGE,
      ...FOOTNOTES,
      wp_pattern_sync_status: { type: "string", default: "", enum: ["partial", "unsynced"] },
    },
    allowBatch: true,
    hasTrash: true,
    hasRevisions: true,
  },
} as const satisfies { readonly [base: string]: Collection };

export const getCollection = (type: PostType): Collection =>
  Object.values<Collection>(collections).find((collection) => collection.type === type) as Collection;
