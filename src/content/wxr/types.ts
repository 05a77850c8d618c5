/** Entries of a WXR file. Their texts lack only what `wxr-text.ts` repairs. */

export interface WxrSite {
  kind: "site";
  /** `1.0`, `1.1` or `1.2`. */
  version: string;
  title: string;
  /** URL of the site that wrote the file; empty if the file does not name it. */
  url: string;
}

export interface WxrAuthor {
  kind: "author";
  login: string;
  email: string;
  name: string;
  /** As in `WxrItem`. */
  size: number;
}

export interface WxrTerm {
  kind: "term";
  line: number;
  /** 0 if the file has none. */
  id: number;
  taxonomy: string;
  slug: string;
  name: string;
  description: string;
  /** Slug of the parent term; empty at the top. */
  parent: string;
  /** As in `WxrItem`. */
  size: number;
}

/** A post of any type. */
export interface WxrItem {
  kind: "item";
  /** Line of its first element, from 1. */
  line: number;
  /** 0 if the file has none. */
  id: number;
  type: string;
  status: string;
  title: string;
  content: string;
  excerpt: string;
  slug: string;
  /** Login of the author. */
  creator: string;
  guid: string;
  password: string;
  /** Id in the file; 0 at the top. */
  parent: number;
  menuOrder: number;
  isSticky: boolean;
  /** `2026-11-21 10:00:00`, `0000-00-00 00:00:00` or empty, like the other dates. */
  date: string;
  dateGmt: string;
  modified: string;
  modifiedGmt: string;
  commentStatus: string;
  pingStatus: string;
  attachmentUrl: string;
  terms: { taxonomy: string; slug: string; name: string }[];
  meta: { name: string; value: string }[];
  comments: number;
  /** Memory that it takes, in characters: all its texts, and a fixed cost for each element. */
  size: number;
}

/** An author, term or item that is damaged or larger than it may be. Nothing of it is kept. */
export interface WxrRefusedEntry {
  kind: "refused";
  line: number;
  /** `item`, `wp:author`, `wp:category` … */
  element: string;
  /** The type of an item; empty if it was not read yet. */
  type: string;
  /** Says what is wrong: `it has more than 1000 categories`, `it is damaged in line 12 (…)`. */
  reason: string;
}

/** A damaged place of the file that was repaired or skipped. */
export interface WxrDamage {
  kind: "damage";
  line: number;
  /** A sentence for the summary of the import. */
  message: string;
}

export type WxrEntry = WxrSite | WxrAuthor | WxrTerm | WxrItem | WxrRefusedEntry | WxrDamage;
