/** Helpers of the renderers of dynamic blocks: attributes, classes, and the parts of a post. */

import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns, Taxonomy, Term, User } from "../records/records.js";
import type { Settings } from "../settings/settings.js";
import type { Site } from "../site.js";
import { termLink } from "../terms/term-fields.js";
import { formatPhpDate } from "../text/php-date.js";
import type { Users } from "../users/users.js";
import { escapeAttribute, escapeUrl, renderImage } from "./image-markup.js";
import type { PublicRecords } from "./public-records.js";
import type { BlockCall } from "./render-blocks.js";

/** Where dynamic blocks find their data. */
export interface BlockSources {
  index: SiteIndex;
  records: PublicRecords;
  settings: Settings;
  users: Users;
}

export const readAttributeText = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns a whole number of at least 0; `initial` for anything else. */
export const readCount = (value: unknown, initial: number): number => {
  const number = typeof value === "string" ? Number.parseInt(value, 10) : value;
  return Number.isSafeInteger(number) && Number(number) >= 0 ? Number(number) : initial;
};

/** Returns the ids in a list of numbers, or of objects with an `id`. */
export const readIds = (value: unknown): number[] =>
  (Array.isArray(value) ? value : [])
    .map((item: unknown) => (typeof item === "object" && item !== null && "id" in item ? item.id : item))
    .map((id) => (typeof id === "number" || typeof id === "string" ? Number(id) : 0))
    .filter((id) => Number.isSafeInteger(id) && id > 0)
    .slice(0, 100);

/** Hides short codes in HTML of a record: they would run in the content that shows it. */
export const hideBrackets = (html: string): string => html.replaceAll("[", "&#91;");

/** Escapes a text of a record or an attribute for HTML, and hides its short codes. */
export const escapeRecordText = (text: string): string => hideBrackets(escapeAttribute(text));

/** A text that authors wrote, on one line and without its markup. */
export const showText = (site: Site, value: unknown): string =>
  escapeRecordText(site.plainText(readAttributeText(value)));

/** Returns the attribute `class` of a block's outer element. */
export function wrapperClass(name: string, { attributes }: BlockCall, ...more: string[]): string {
  const { align, className, textAlign } = attributes;
  const classes = [
    ...more,
    readAttributeText(textAlign) && `has-text-align-${readAttributeText(textAlign)}`,
    readAttributeText(align) && `align${readAttributeText(align)}`,
    readAttributeText(className),
    `wp-block-${name}`,
  ];
  return `class="${escapeAttribute(classes.filter(Boolean).join(" "))}"`;
}

/** Returns `h2`, or the element of another level; 0 is a paragraph. */
export function headingOf(level: unknown, initial: number): string {
  const number = readCount(level, initial);
  return number === 0 ? "p" : `h${Math.min(number, 6)}`;
}

/** Returns the attributes of a link to another place, as the attributes of its block want it. */
export function linkAttributes(href: string, { attributes: { linkTarget, rel } }: BlockCall): string {
  const relation = readAttributeText(rel);
  const target = readAttributeText(linkTarget) || "_self";
  return `href="${escapeUrl(href)}" target="${escapeAttribute(target)}"${relation && ` rel="${escapeAttribute(relation)}"`}`;
}

export const postLink = (post: PostColumns, site: Site, index: SiteIndex): string =>
  escapeUrl(site.link(post, index));

/** Returns the excerpt without its paragraph; a note for a post with a password. */
export async function renderPlainExcerpt(post: Post, site: Site, words: number): Promise<string> {
  if (post.password !== "") return "There is no excerpt because this is a protected post.";
  const excerpt = (await site.render.excerpt(post, words)).replace(/^<p>|<\/p>\s*$/g, "");
  // The ellipsis of a shortened excerpt is no short code.
  return hideBrackets(excerpt).replaceAll("&#91;&hellip;]", "[&hellip;]");
}

/** Returns a `<time>` with the date in a format, or in the one of the site. */
export function renderTime(
  local: number,
  {
    site,
    settings,
    format,
    className = "",
    href = "",
  }: {
    site: Site;
    settings: BlockSources["settings"];
    format?: unknown;
    className?: string;
    /** The escaped address that the date leads to. */
    href?: string;
  },
): string {
  const date = formatPhpDate(local, readAttributeText(format) || settings.read().date_format, site.zone);
  const shown = href === "" ? escapeAttribute(date) : `<a href="${href}">${escapeAttribute(date)}</a>`;
  const classes = className && ` class="${className}"`;
  return `<time datetime="${formatPhpDate(local, "c", site.zone)}"${classes}>${shown}</time>`;
}

/** Returns the author; `undefined` if the host knows no such user or fails. */
export async function findAuthor({ author }: Post, { users }: BlockSources): Promise<User | undefined> {
  try {
    return (await users.get(author)) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Returns the `<img>` of the featured image in a size; empty without a public one. */
export async function renderFeaturedImage(
  post: Post,
  { site, size, records }: { site: Site; size: string; records: PublicRecords },
): Promise<string> {
  if (post.featuredMedia <= 0 || post.password !== "") return "";
  const [image] = await records.media([post.featuredMedia], post.id, "image/");
  return image === undefined
    ? ""
    : renderImage(image, site, size).replace(/ class="([^"]*)"/, ' class="$1 wp-post-image"');
}

/** Returns the address of a term; `undefined` if its taxonomy has none on the website. */
export function findTermLink(term: Term, site: Site, index: SiteIndex): string | undefined {
  const definition = index.model.taxonomies.get(term.taxonomy);
  return definition?.isViewable ? escapeUrl(termLink(term, definition, site, index)) : undefined;
}

/** Returns the terms of a viewable taxonomy that have published posts, by name. */
export function listUsedTerms(taxonomy: Taxonomy, index: SiteIndex): Term[] {
  if (index.model.taxonomies.get(taxonomy)?.isViewable !== true) return [];
  const used = index.terms(taxonomy).filter(({ id }) => index.countOf(taxonomy, id) > 0);
  return used.sort((a, b) => a.name.localeCompare(b.name, "en"));
}
