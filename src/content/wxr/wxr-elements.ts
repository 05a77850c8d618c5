/** The elements of a WXR file that are read, by the element they are in, and their limits. */

import { LENGTHS } from "../argument-bounds.js";

const CHANNEL = ["title", "link", "wp:wxr_version", "wp:base_site_url", "wp:base_blog_url"];

/** Elements of the channel that become entries, and the elements of theirs that are read. */
const ENTRIES: { [element: string]: string[] } = {
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

/** The elements that one item may have. A larger item is skipped. */
export const MAX_ELEMENTS: { [element: string]: { count: number; what: string } } = {
  category: { count: 1_000, what: "categories, tags and other terms" },
  "wp:postmeta": { count: 5_000, what: "custom fields (wp:postmeta)" },
  // Comments are not imported, so they cost little.
  "wp:comment": { count: 100_000, what: "comments" },
};

const { title, slug, name, termName, password, url, date, number } = LENGTHS;

/** The longest text of an element, in characters. The size of an entry limits all others. */
const LONGEST: { [element: string]: number } = {
  title,
  link: url,
  "wp:base_site_url": url,
  "wp:base_blog_url": url,
  "wp:wxr_version": number,
  "wp:author_login": name,
  "wp:author_email": 320,
  "wp:author_display_name": termName,
  "wp:category_nicename": slug,
  "wp:category_parent": slug,
  "wp:cat_name": termName,
  "wp:tag_slug": slug,
  "wp:tag_name": termName,
  "wp:term_id": number,
  "wp:term_taxonomy": name,
  "wp:term_slug": slug,
  "wp:term_parent": slug,
  "wp:term_name": termName,
  category: termName,
  "dc:creator": name,
  guid: url,
  "wp:post_name": slug,
  "wp:post_id": number,
  "wp:post_parent": number,
  "wp:menu_order": number,
  "wp:is_sticky": number,
  "wp:post_date": date,
  "wp:post_date_gmt": date,
  "wp:post_modified": date,
  "wp:post_modified_gmt": date,
  "wp:comment_status": name,
  "wp:ping_status": name,
  "wp:status": name,
  "wp:post_type": name,
  "wp:post_password": password,
  "wp:meta_key": termName,
};

export const getLongest = (element: string): number =>
  (Object.hasOwn(LONGEST, element) ? LONGEST[element] : undefined) ?? Number.POSITIVE_INFINITY;

/** True if the text of the innermost element of `path` is read. `path` begins with the root. */
export function isTextRead(path: string[]): boolean {
  const [, , entry = "", element = "", inner = ""] = path;
  if (path.length === 3) return CHANNEL.includes(entry);
  if (path.length === 4) return isEntry(entry) && ENTRIES[entry]?.includes(element) === true;
  return path.length === 5 && entry === "item" && element === "wp:postmeta" && META.includes(inner);
}

/** True for elements that become entries where they are in the channel. */
export const isEntry = (element: string): boolean => Object.hasOwn(ENTRIES, element);

/**
 * True for an element that begins the next entry, although `entry` has no end tag. Authors come
 * first in a file, items last: an author inside an item is an element of another program.
 */
export function mayFollow(entry: string, element: string): boolean {
  const names = Object.keys(ENTRIES);
  return isEntry(element) && names.indexOf(element) >= names.indexOf(entry);
}
