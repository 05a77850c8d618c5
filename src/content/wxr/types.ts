/** Entries of a WXR file. Their texts lack only what `wxr-text.ts` repairs. */

export interface WxrSite {
  readonly kind: "site";
  /** `1.0`, `1.1` or `1.2`. */
  readonly version: string;
  readonly title: string;
  /** URL of the site that wrote the file; empty if the file does not name it. */
  readonly url: string;
}

export interface WxrAuthor {
  readonly kind: "author";
  readonly login: string;
  readonly email: string;
  readonly name: string;
  /** As in `WxrItem`. */
  readonly size: number;
}

export interface WxrTerm {
  readonly kind: "term";
  readonly line: number;
  /** 0 if the file has none. */
  readonly id: number;
  readonly taxonomy: string;
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  /** Slug of the parent term; empty at the top. */
  readonly parent: string;
  /** As in `WxrItem`. */
  readonly size: number;
}

/** A post of any type. */
export interface WxrItem {
  readonly kind: "item";
  /** Line of its first element, from 1. */
  readonly line: number;
  /** 0 if the file has none. */
  readonly id: number;
  readonly type: string;
  readonly status: string;
  readonly title: string;
  readonly content: string;
  readonly excerpt: string;
  readonly slug: string;
  /** Login of the author. */
  readonly creator: string;
  readonly guid: string;
  readonly password: string;
  /** Id in the file; 0 at the top. */
  readonly parent: number;
  readonly menuOrder: number;
  readonly isSticky: boolean;
  /** `2026-11-21 10:00:00`, `0000-00-00 00:00:00` or empty, like the other dates. */
  readonly date: string;
  readonly dateGmt: string;
  readonly modified: string;
  readonly modifiedGmt: string;
  readonly commentStatus: string;
  readonly pingStatus: string;
  readonly attachmentUrl: string;
  readonly terms: readonly { readonly taxonomy: string; readonly slug: string; readonly name: string }[];
  readonly meta: readonly { readonly name: string; readonly value: string }[];
  readonly comments: number;
  /** Memory that it takes, in characters: all its texts, and a fixed cost for each element. */
  readonly size: number;
}

/** An author, term or item that is damaged or larger than it may be. Nothing of it is kept. */
export interface WxrRefusedEntry {
  readonly kind: "refused";
  readonly line: number;
  /** `item`, `wp:author`, `wp:category` … */
  readonly element: string;
  /** The type of an item; empty if it was not read yet. */
  readonly type: string;
  /** Says what is wrong: `it has more than 1000 categories`, `it is damaged in line 12 (…)`. */
  readonly reason: string;
}

/** A damaged place of the file that was repaired or skipped. */
export interface WxrDamage {
  readonly kind: "damage";
  readonly line: number;
  /** A sentence for the summary of the import. */
  readonly message: string;
}

export type WxrEntry = WxrSite | WxrAuthor | WxrTerm | WxrItem | WxrRefusedEntry | WxrDamage;
