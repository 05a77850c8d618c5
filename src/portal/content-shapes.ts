/**
 * The JSON that the console and its server exchange. Dates are as the content service gives them.
 * Types only, since both sides are compiled with them.
 */

/** A response of the content service, with the values of its headers. */
export interface ContentResponseJson<T> {
  body: T;
  /** Of a list: how many there are on all pages. */
  total: number | null;
  /** Methods that the visitor may use on the path. */
  allow: string[];
}

/** The website as the page needs to know it. */
export interface SiteJson {
  /** The zone of the dates of records: `Europe/Berlin`, or `UTC+2`. */
  zone: string;
}

/** Where the host edits a record, if it does. */
export interface EditorJson {
  url: string | null;
}

export type CollectionName = "posts" | "pages" | "media";

export interface MeJson {
  id: number;
  capabilities: { [name: string]: boolean };
}

/** `raw` where the visitor may edit. */
export interface TextJson {
  raw?: string;
  rendered: string;
}

interface AuthorJson {
  id: number;
  name?: string;
}

/** A post, a page or a media item; the fields that the console asks for. */
export interface RecordJson {
  id: number;
  status: string;
  /** The site's time, without a zone: `2026-11-22T09:00:00`. */
  date: string;
  modified: string;
  modified_gmt: string;
  slug: string;
  title: TextJson;
  link: string;
  content?: TextJson;
  excerpt?: TextJson;
  /** The id of a file; 0 without one. */
  featured_media?: number;
  alt_text?: string;
  caption?: TextJson;
  description?: TextJson;
  mime_type?: string;
  source_url?: string;
  media_details?: MediaDetailsJson;
  _links?: { [relation: string]: unknown };
  _embedded?: { author?: AuthorJson[] };
}

export interface MediaDetailsJson {
  file?: string;
  filesize?: number;
  width?: number;
  height?: number;
  sizes?: { [name: string]: { file: string } };
}

export interface RevisionJson {
  id: number;
  date: string;
  title: TextJson;
  content: TextJson;
  excerpt: TextJson;
  _embedded?: { author?: AuthorJson[] };
}
