/**
 * The JSON that the console and its server exchange. Dates are as the content service gives them.
 * Types only, since both sides are compiled with them.
 */

/** A response of the content service, with the values of its headers. */
export interface ContentAnswerJson<T> {
  readonly body: T;
  /** Of a list: how many there are on all pages. */
  readonly total: number | null;
  /** Methods that the visitor may use on the path. */
  readonly allow: readonly string[];
}

/** The website as the page needs to know it. */
export interface SiteJson {
  /** The zone of the dates of records: `Europe/Berlin`, or `UTC+2`. */
  readonly zone: string;
}

/** Where the host edits a record, if it does. */
export interface EditorJson {
  readonly url: string | null;
}

export type CollectionName = "posts" | "pages" | "media";

export interface MeJson {
  readonly id: number;
  readonly capabilities: { readonly [name: string]: boolean };
}

/** `raw` where the visitor may edit. */
export interface TextJson {
  readonly raw?: string;
  readonly rendered: string;
}

interface AuthorJson {
  readonly id: number;
  readonly name?: string;
}

/** A post, a page or a media item; the fields that the console asks for. */
export interface RecordJson {
  readonly id: number;
  readonly status: string;
  /** The site's time, without a zone: `2026-11-22T09:00:00`. */
  readonly date: string;
  readonly modified: string;
  readonly modified_gmt: string;
  readonly slug: string;
  readonly title: TextJson;
  readonly link: string;
  readonly content?: TextJson;
  readonly excerpt?: TextJson;
  readonly alt_text?: string;
  readonly caption?: TextJson;
  readonly description?: TextJson;
  readonly mime_type?: string;
  readonly source_url?: string;
  readonly media_details?: MediaDetailsJson;
  readonly _links?: { readonly [relation: string]: unknown };
  readonly _embedded?: { readonly author?: readonly AuthorJson[] };
}

export interface MediaDetailsJson {
  readonly file?: string;
  readonly filesize?: number;
  readonly width?: number;
  readonly height?: number;
  readonly sizes?: { readonly [name: string]: { readonly file: string } };
}

export interface RevisionJson {
  readonly id: number;
  readonly date: string;
  readonly title: TextJson;
  readonly content: TextJson;
  readonly excerpt: TextJson;
  readonly _embedded?: { readonly author?: readonly AuthorJson[] };
}
