/** The records of a site as plain data: dates as numbers, texts raw. */

import type { JsonObject } from "../../schema/types.js";

/**
 * The type of a post. The collections are `posts`, `pages`, `media`, `menu-items`, `blocks` and
 * `navigation`.
 */
export type PostType = BuiltInPostType | (string & {});

export type Taxonomy = BuiltInTaxonomy | (string & {});

/** The types that every site has. A host may add others. */
export type BuiltInPostType = "post" | "page" | "attachment" | "nav_menu_item" | "wp_block" | "wp_navigation";

export type BuiltInTaxonomy = "category" | "post_tag" | "nav_menu" | "wp_pattern_category";

/** The status of a post; media have `inherit`. */
export type PostStatus =
  | "publish"
  | "future"
  | "draft"
  | "pending"
  | "private"
  | "trash"
  | "auto-draft"
  | "inherit";

/**
 * The columns of a post of any type, which lists need. Every process holds them in memory.
 *
 * Times are epoch ms. `date` and `modified` are the site's wall-clock time read as if it were UTC,
 * so that their digits are the ones shown.
 */
export interface PostColumns {
  readonly id: number;
  readonly type: PostType;
  readonly status: PostStatus;
  readonly author: number;
  readonly date: number;
  /** `null` for a draft that never got a date. */
  readonly dateGmt: number | null;
  readonly modified: number;
  readonly modifiedGmt: number;
  readonly slug: string;
  readonly title: string;
  /** 0 for a post without a parent. */
  readonly parent: number;
  readonly menuOrder: number;
  readonly hasPassword: boolean;
  readonly sticky: boolean;
  /** `standard`, `aside` …; `standard` for types without formats. */
  readonly format: string;
  /** Ids in each taxonomy, ascending. Terms among them may have been deleted. */
  readonly terms: { readonly [taxonomy in Taxonomy]?: readonly number[] };
  /** The type of an attachment's file; empty for other types. */
  readonly mimeType: string;
  /** The record of the site that a menu item points at: `post/12`, `term/3`; else empty. */
  readonly target: string;
  /**
   * The status and slug before the post was trashed; `null` outside the trash. Absent in columns
   * whose reader does not need it.
   */
  readonly beforeTrash?: { readonly status: PostStatus; readonly slug: string } | null;
  /** The identity by which an import finds the post again; unique. Absent if never imported. */
  readonly importedAs?: string;
  /**
   * References to records that were not imported yet, by name, each with the identity of its target
   * or an empty text for a term. The next import sets only these. Absent if nothing is missing.
   */
  readonly importedOpen?: { readonly [name in ImportedReference]?: string };
}

export type ImportedReference = "parent" | "featuredMedia" | "object";

/** A whole post of any type. */
export interface Post extends PostColumns {
  /** The version of the stored record; 0 before it is stored. */
  readonly version: number;
  readonly content: string;
  readonly excerpt: string;
  readonly password: string;
  readonly commentStatus: "open" | "closed";
  readonly pingStatus: "open" | "closed";
  readonly template: string;
  readonly featuredMedia: number;
  readonly meta: JsonObject;
  /**
   * True if the last writer of its texts may publish unfiltered HTML. The texts of others are
   * sanitised again when they are rendered.
   */
  readonly isTrusted: boolean;
  readonly beforeTrash: { readonly status: PostStatus; readonly slug: string } | null;
  /**
   * Ids of its revisions, autosaves among them, in the order of their creation. Their records are
   * `revision/<id>`.
   */
  readonly revisions: readonly number[];
  /** Maps the id of a user to the one of `revisions` that is his autosave. */
  readonly autosaves: { readonly [userId: string]: number };
  /** `null` for other types than menu items. */
  readonly menuItem: MenuItem | null;
  /**
   * `null` for other types than attachments. The caption of an attachment is its excerpt, its
   * description the content.
   */
  readonly media: MediaFile | null;
  /** A digest of the item it was last imported from. An import skips the post while it is equal. */
  readonly importedState?: string;
}

/** The file of an attachment. The bytes are in the host's `files`, under `name`. */
export interface MediaFile {
  /** The path of the stored file below the URL of the uploads: `2026/11/heart.png`. */
  readonly name: string;
  readonly bytes: number;
  readonly altText: string;
  /** In pixels, as shown; 0 for a file that is not an image. */
  readonly width: number;
  readonly height: number;
  /** The EXIF orientation of a file that browsers must rotate; absent if it is upright. */
  readonly orientation?: number;
  /**
   * The uploaded file, if `name` is a version that is shown instead: smaller or rotated upright.
   */
  readonly original?: {
    readonly name: string;
    readonly bytes: number;
    readonly width: number;
    readonly height: number;
    readonly orientation?: number;
  };
  /** The id and file name of the image that this one was edited from. */
  readonly parentImage?: { readonly id: number; readonly name: string };
  /** Smaller versions by name: `thumbnail`, `medium` … */
  readonly sizes: {
    readonly [size: string]: {
      readonly name: string;
      readonly width: number;
      readonly height: number;
      readonly mimeType: string;
      readonly bytes: number;
    };
  };
  /** The URL of a file that was imported without its bytes. `files` does not have it. */
  readonly elsewhere?: string;
  /** Absent if the image has none. */
  readonly metadata?: ImageMetadata;
}

/** Metadata that a camera or a photographer wrote into an image. Empty members are absent. */
export interface ImageMetadata {
  /** Texts are sanitised HTML of at most 2000 characters of text. */
  readonly title?: string;
  readonly caption?: string;
  readonly credit?: string;
  readonly copyright?: string;
  readonly camera?: string;
  readonly keywords?: readonly string[];
  /** Plain text. */
  readonly altText?: string;
  /** When the picture was taken, in seconds since 1970, with the camera's clock taken for UTC. */
  readonly createdTimestamp?: number;
  /** The f-number. */
  readonly aperture?: number;
  /** In millimetres. */
  readonly focalLength?: number;
  /** In seconds. */
  readonly shutterSpeed?: number;
  readonly iso?: number;
  /** The EXIF orientation of the uploaded file. */
  readonly orientation?: number;
}

/** The additional data of a menu item. */
export interface MenuItem {
  readonly type: "taxonomy" | "post_type" | "post_type_archive" | "custom";
  /** `page`, `category`, `custom` … */
  readonly object: string;
  readonly objectId: number;
  readonly url: string;
  readonly target: string;
  readonly attrTitle: string;
  readonly description: string;
  readonly classes: readonly string[];
  readonly xfn: readonly string[];
}

/** A term of any taxonomy. Every process holds it in memory as a whole. */
export interface Term {
  id: number;
  version: number;
  taxonomy: Taxonomy;
  name: string;
  slug: string;
  description: string;
  parent: number;
  meta: JsonObject;
  /** For a menu: the value of `auto_add`; absent: false. */
  isAutoAdding?: boolean;
  /** As for a post; absent in a term that was never imported. */
  importedState?: string;
  /** True if its parent in the imported file was not imported yet. */
  importedOpen?: true;
}

/** An earlier state of a post, or an autosave. Its record is `revision/<id>`, never resident. */
export interface Revision {
  id: number;
  parent: number;
  author: number;
  date: number;
  dateGmt: number;
  title: string;
  content: string;
  excerpt: string;
  /** As for a post. */
  isTrusted: boolean;
  /** Only the meta fields that revisions keep. */
  meta: JsonObject;
}

/** A user of the site, as the host knows him. */
export interface User {
  readonly id: number;
  /** Used in URLs; public. Not empty, and without lone surrogates. */
  readonly slug: string;
  /** The display name; public. */
  readonly name: string;
  readonly roles: readonly string[];
  readonly description?: string | undefined;
  /**
   * The URL of a page about him; public. Quotes and control characters are removed; a URL whose
   * scheme can run a script, such as `javascript:` or `data:`, is shown as an empty text.
   */
  readonly url?: string | undefined;
  /**
   * URLs of his pictures by their width in pixels: `{ "96": "https://…" }`. They are cleaned like
   * `url`.
   */
  readonly avatarUrls?: { readonly [pixels: string]: string } | undefined;
  /** Returned in the context `edit` only. */
  readonly email?: string | undefined;
}

// Names the collection of each type and taxonomy, as paths and events call it. Plain data.

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
} as const satisfies { [type in BuiltInPostType | BuiltInTaxonomy]: string };

/** True for a type or taxonomy that every site has. */
export const isBuiltInName = (name: PostType | Taxonomy): boolean => Object.hasOwn(COLLECTION_NAMES, name);

// The formats of posts, such as an aside or a quote.

/** The post formats of WordPress. A post without a format has `standard`. */
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
