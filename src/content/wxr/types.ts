/** What a WXR file holds, as it is read: texts as they stand in it, without the control characters that XML does not know. */

export interface WxrSite {
  readonly kind: "site";
  /** `1.0`, `1.1` or `1.2`. */
  readonly version: string;
  readonly title: string;
  /** The address that the ids of the file belong to; empty where the file names none. */
  readonly url: string;
}

export interface WxrAuthor {
  readonly kind: "author";
  readonly login: string;
  readonly email: string;
  readonly name: string;
  /** As of an item. */
  readonly size: number;
}

export interface WxrTerm {
  readonly kind: "term";
  readonly line: number;
  /** 0 where the file does not say. */
  readonly id: number;
  readonly taxonomy: string;
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  /** Slug of the term above it; empty for none. */
  readonly parent: string;
  /** As of an item. */
  readonly size: number;
}

/** A post of any type. */
export interface WxrItem {
  readonly kind: "item";
  /** Of its first element, from 1. */
  readonly line: number;
  /** 0 where the file does not say. */
  readonly id: number;
  readonly type: string;
  readonly status: string;
  readonly title: string;
  readonly content: string;
  readonly excerpt: string;
  readonly slug: string;
  /** Login of its author. */
  readonly creator: string;
  readonly guid: string;
  readonly password: string;
  /** An id of the file; 0 for none. */
  readonly parent: number;
  readonly menuOrder: number;
  readonly isSticky: boolean;
  /** `2026-11-21 10:00:00`, `0000-00-00 00:00:00`, or empty where the file does not say; so are the others. */
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
  /** What it takes in memory, in characters: of all its texts, and something for each element. */
  readonly size: number;
}

export type WxrEntry = WxrSite | WxrAuthor | WxrTerm | WxrItem;
