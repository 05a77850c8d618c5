/** The records of a site as the service holds them: plain data, dates as numbers, texts raw. */

import type { JsonObject } from "../../schema/types.js";

/** What a post is: by its collection `posts`, `pages`, `media`, `menu-items` or `blocks`. */
export type PostType = "post" | "page" | "attachment" | "nav_menu_item" | "wp_block";

export type Taxonomy = "category" | "post_tag" | "nav_menu" | "wp_pattern_category";

/** Where a post stands; `inherit` is what media are. */
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
 * What a list needs of a post of any type; resident in every process.
 * Times are epoch ms. `date` and `modified` are the site's wall-clock time read as if it were UTC, so that their digits are the ones shown.
 */
export interface PostColumns {
  readonly id: number;
  readonly type: PostType;
  readonly status: PostStatus;
  readonly author: number;
  readonly date: number;
  /** `null`: floating, as of a draft that was never given a date. */
  readonly dateGmt: number | null;
  readonly modified: number;
  readonly modifiedGmt: number;
  readonly slug: string;
  readonly title: string;
  /** 0: none. */
  readonly parent: number;
  readonly menuOrder: number;
  readonly hasPassword: boolean;
  readonly sticky: boolean;
  /** `standard`, `aside` …; `standard` where the type has none. */
  readonly format: string;
  /** Ids in each taxonomy, ascending; may name terms that were deleted since. */
  readonly terms: { readonly [taxonomy in Taxonomy]?: readonly number[] };
  /** Of attachments; else empty. */
  readonly mimeType: string;
  /** Of menu items that point at a record of the site: `post/12`, `term/3`; else empty. */
  readonly target: string;
  /** The status and slug it had before it was trashed; `null` for what is not in the trash. Left out where nothing asks for it. */
  readonly beforeTrash?: { readonly status: PostStatus; readonly slug: string } | null;
  /** What an import knows it by; no two posts have the same. Absent in what was never imported. */
  readonly importedAs?: string;
}

/** A post of any type, whole. */
export interface Post extends PostColumns {
  /** Of the stored record; 0 before it is stored. */
  readonly version: number;
  readonly content: string;
  readonly excerpt: string;
  readonly password: string;
  readonly commentStatus: "open" | "closed";
  readonly pingStatus: "open" | "closed";
  readonly template: string;
  readonly featuredMedia: number;
  readonly meta: JsonObject;
  /** Whether whoever wrote its texts last may publish unfiltered HTML; what others wrote is filtered once more when it is rendered. */
  readonly isTrusted: boolean;
  readonly beforeTrash: { readonly status: PostStatus; readonly slug: string } | null;
  /** Ids of its revisions, autosaves among them, in the order of their making; the records are `revision/<id>`. */
  readonly revisions: readonly number[];
  /** By the id of a user, which of `revisions` is what he last saved without meaning it; never more than one for each. */
  readonly autosaves: { readonly [userId: string]: number };
  /** Of menu items. */
  readonly menuItem: MenuItem | null;
  /** Of attachments. Their caption is the excerpt, their description the content. */
  readonly media: MediaFile | null;
  /** A digest of what it was last imported from: an import leaves it alone while that is the same. */
  readonly importedState?: string;
  /** What it points at in that file and not here yet: the next import sets these alone. Absent where nothing is missing. */
  readonly importedOpen?: readonly ("parent" | "featuredMedia" | "object")[];
}

/** The file of an attachment. The bytes are in the host's `files`, under `name`. */
export interface MediaFile {
  /** Of the stored file, below the address of the uploads: `2026/11/heart.png`. */
  readonly name: string;
  readonly bytes: number;
  readonly altText: string;
  /** In pixels, as it is shown; 0 for what is no image. */
  readonly width: number;
  readonly height: number;
  /** As EXIF numbers it, of a file that a browser has to turn; left out where it is upright. */
  readonly orientation?: number;
  /** What was uploaded, where `name` is a version of it that is shown instead: smaller, or turned upright. */
  readonly original?: {
    readonly name: string;
    readonly bytes: number;
    readonly width: number;
    readonly height: number;
    readonly orientation?: number;
  };
  /** Of an image that was made by editing another one: that one's id, and the name of its file. */
  readonly parentImage?: { readonly id: number; readonly name: string };
  /** Smaller versions by their name: `thumbnail`, `medium` … */
  readonly sizes: {
    readonly [size: string]: {
      readonly name: string;
      readonly width: number;
      readonly height: number;
      readonly mimeType: string;
      readonly bytes: number;
    };
  };
  /** Where the file is that was imported without its bytes: `files` holds nothing of it. */
  readonly elsewhere?: string;
}

/** What a post of a menu has beside the rest. */
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

/** A term of any taxonomy; resident whole. */
export interface Term {
  readonly id: number;
  readonly version: number;
  readonly taxonomy: Taxonomy;
  readonly name: string;
  readonly slug: string;
  readonly description: string;
  readonly parent: number;
  readonly meta: JsonObject;
  /** As of a post; absent in a term that the site made itself. */
  readonly importedState?: string;
  /** Whether its parent in that file is not here yet. */
  readonly importedOpen?: true;
}

/** A state that a post had, or that somebody may give it; `revision/<id>`, never resident. */
export interface Revision {
  readonly id: number;
  readonly parent: number;
  readonly author: number;
  readonly date: number;
  readonly dateGmt: number;
  readonly title: string;
  readonly content: string;
  readonly excerpt: string;
  /** As of a post. */
  readonly isTrusted: boolean;
  /** Those fields alone that revisions keep. */
  readonly meta: JsonObject;
}

/** Somebody who may act on the site, as the host knows him. */
export interface User {
  readonly id: number;
  /** For addresses; public. */
  readonly slug: string;
  /** Shown to everybody. */
  readonly name: string;
  readonly roles: readonly string[];
  readonly description?: string | undefined;
  readonly url?: string | undefined;
  /** Addresses of pictures of him, by their width in pixels: `{ "96": "https://…" }`. */
  readonly avatarUrls?: { readonly [pixels: string]: string } | undefined;
  /** Answered in the context `edit` only. */
  readonly email?: string | undefined;
}
