/** Lists the elements of a WXR file that are read, by the element they are in, and their limits. */

import { LENGTHS } from "../argument-bounds.js";
import type { WxrAuthor, WxrTerm } from "./types.js";

/** Texts of an entry, by the element they were in. */
export type Texts = { readonly [element: string]: string };

const CHANNEL = ["title", "link", "wp:wxr_version", "wp:base_site_url", "wp:base_blog_url"];

/** Elements of the channel that become entries, and the elements of theirs that are read. */
const ENTRIES: { readonly [element: string]: readonly string[] } = {
  "wp:author": ["wp:author_login", "wp:author_email", "wp:author_display_name"],
  "wp:category": [
    "wp:term_id",
    "wp:category_nicename",
    "wp:category_parent",
    "wp:cat_name",
    "wp:category_description",
  ],
  "wp:tag": ["wp:term_id", "wp:tag_slug", "wp:tag_name", "wp:tag_description"],
  "wp:term": [
    "wp:term_id",
    "wp:term_taxonomy",
    "wp:term_slug",
    "wp:term_parent",
    "wp:term_name",
    "wp:term_description",
  ],
  item: [
    "title",
    "dc:creator",
    "guid",
    "content:encoded",
    "excerpt:encoded",
    "category",
    "wp:post_id",
    "wp:post_date",
    "wp:post_date_gmt",
    "wp:post_modified",
    "wp:post_modified_gmt",
    "wp:comment_status",
    "wp:ping_status",
    "wp:post_name",
    "wp:status",
    "wp:post_parent",
    "wp:menu_order",
    "wp:post_type",
    "wp:post_password",
    "wp:is_sticky",
    "wp:attachment_url",
  ],
};
const META = ["wp:meta_key", "wp:meta_value"];

/** Elements that one item may hold at most. A larger item is skipped. */
export const MOST_ELEMENTS: {
  readonly [element: string]: { readonly count: number; readonly what: string };
} = {
  category: { count: 1_000, what: "categories, tags and other terms" },
  "wp:postmeta": { count: 5_000, what: "custom fields (wp:postmeta)" },
  // Comments are not imported, so they cost little.
  "wp:comment": { count: 100_000, what: "comments" },
};

const { title, slug, name, termName, password, url, date, number } = LENGTHS;

/** The longest text of an element, in characters. The size of an entry limits all others. */
const LONGEST: { readonly [element: string]: number } = {
  ...{ title, link: url, "wp:base_site_url": url, "wp:base_blog_url": url, "wp:wxr_version": number },
  ...{ "wp:author_login": name, "wp:author_email": 320, "wp:author_display_name": termName },
  ...{ "wp:category_nicename": slug, "wp:category_parent": slug, "wp:cat_name": termName },
  ...{ "wp:tag_slug": slug, "wp:tag_name": termName },
  ...{ "wp:term_id": number, "wp:term_taxonomy": name, "wp:term_slug": slug },
  ...{ "wp:term_parent": slug, "wp:term_name": termName },
  ...{ category: termName, "dc:creator": name, guid: url, "wp:post_name": slug },
  ...{ "wp:post_id": number, "wp:post_parent": number, "wp:menu_order": number, "wp:is_sticky": number },
  ...{ "wp:post_date": date, "wp:post_date_gmt": date },
  ...{ "wp:post_modified": date, "wp:post_modified_gmt": date },
  ...{ "wp:comment_status": name, "wp:ping_status": name, "wp:status": name, "wp:post_type": name },
  ...{ "wp:post_password": password, "wp:meta_key": termName },
};

export const getLongest = (element: string): number => LONGEST[element] ?? Number.POSITIVE_INFINITY;

/** True if the text of the innermost element of `path` is read. `path` begins with the root. */
export function isTextRead(path: readonly string[]): boolean {
  const [, , entry = "", element = "", inner = ""] = path;
  if (path.length === 3) return CHANNEL.includes(entry);
  if (path.length === 4) return ENTRIES[entry]?.includes(element) ?? false;
  return path.length === 5 && entry === "item" && element === "wp:postmeta" && META.includes(inner);
}

export const isEntry = (element: string): boolean => Object.hasOwn(ENTRIES, element);

export function readAuthorElement(texts: Texts, size: number): WxrAuthor {
  return {
    kind: "author",
    login: texts["wp:author_login"] ?? "",
    email: texts["wp:author_email"] ?? "",
    name: texts["wp:author_display_name"] ?? "",
    size,
  };
}

/** Reads a term from one of the three elements that describe terms. */
export function readTermElement(element: string, texts: Texts, line: number, size: number): WxrTerm {
  const text = (name: string): string => texts[name] ?? "";
  const id = parseWholeNumber(text("wp:term_id"));
  if (element === "wp:category") {
    return {
      ...{ kind: "term", line, size, id, taxonomy: "category" },
      slug: text("wp:category_nicename"),
      name: text("wp:cat_name"),
      description: text("wp:category_description"),
      parent: text("wp:category_parent"),
    };
  }
  if (element === "wp:tag") {
    return {
      ...{ kind: "term", line, size, id, taxonomy: "post_tag", parent: "" },
      slug: text("wp:tag_slug"),
      name: text("wp:tag_name"),
      description: text("wp:tag_description"),
    };
  }
  return {
    ...{ kind: "term", line, size, id },
    taxonomy: text("wp:term_taxonomy"),
    slug: text("wp:term_slug"),
    name: text("wp:term_name"),
    description: text("wp:term_description"),
    parent: text("wp:term_parent"),
  };
}

/** Returns 0 for a text that is not a whole number. */
export function parseWholeNumber(text: string): number {
  const number = /^\s*-?\d{1,15}\s*$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(number) ? number : 0;
}
