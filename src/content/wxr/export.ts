/** `content.export`: writes the whole site as a WXR 1.2 file, piece by piece. */

import { refuseUnknownKeys } from "../../core/known-names.js";
import { toText } from "../../schema/coerce.js";
import type { Json, JsonObject } from "../../schema/types.js";
import type { ContentBase } from "../content-base.js";
import { toImageMeta } from "../media/image-metadata.js";
import { getFileBaseName } from "../media/media-rules.js";
import type { SiteIndex } from "../query/site-index.js";
import {
  type Collection,
  type ContentModel,
  getCollection,
  type MetaFields,
} from "../records/content-model.js";
import type { MediaFile, MenuItem, Post, PostType, Taxonomy, Term } from "../records/records.js";
import type { Site } from "../site.js";
import { listTermAncestors } from "../terms/term-fields.js";
import { formatDate } from "../text/dates.js";
import { cleanUrl, toWebUrl } from "../text/urls.js";
import { serializePhp, toMetaText } from "./php-serialize.js";
import { listPostIdsOfType } from "./post-ids.js";

/**
 * Options of `content.export`.
 *
 * @example
 * await pipeline(content.export({ onProgress: console.log }), createWriteStream("site.xml"));
 */
export interface ExportOptions {
  /** Called after every batch. Must not throw. */
  onProgress?: ((progress: ExportProgress) => void) | undefined;
  /** Once it is aborted, the stream throws its reason. */
  signal?: AbortSignal | undefined;
}

/** Progress of an export. */
export interface ExportProgress {
  /** Posts of any type that were written so far. */
  readonly items: number;
  readonly itemsTotal: number;
}

type Export = (options?: ExportOptions) => AsyncIterable<string>;

/** Posts that are read from the storage at once. */
const BATCH = 100;
/**
 * Targets of references come before the posts that refer to them, so that an import of the file as
 * a stream finds them.
 */
const FIRST: PostType[] = ["attachment", "page", "post", "wp_block", "wp_navigation"];
const LAST: PostType = "nav_menu_item";

const listTypesInOrder = ({ types }: ContentModel): PostType[] => {
  const others = [...types.keys()].filter((type) => !FIRST.includes(type) && type !== LAST);
  return [...FIRST, ...others, LAST];
};

const HEAD = `<?xml version="1.0" encoding="UTF-8" ?>
<rss version="2.0"
	xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/"
	xmlns:content="http://purl.org/rss/1.0/modules/content/"
	xmlns:wfw="http://wellformedweb.org/CommentAPI/"
	xmlns:dc="http://purl.org/dc/elements/1.1/"
	xmlns:wp="http://wordpress.org/export/1.2/"
>
<channel>
`;

export function createExport({ repository, site, users }: ContentBase): Export {
  const { index } = repository;

  return async function* exportSite(options = {}) {
    refuseUnknownKeys("content.export", options, ["onProgress", "signal"]);
    const { onProgress, signal } = options;
    await repository.current();
    const people = new Map((await users.all()).map((user) => [user.id, user]));
    const getLogin = (id: number): string => people.get(id)?.slug ?? (id === 0 ? "" : `user-${id}`);
    const posts = listTypesInOrder(index.model).flatMap((type) => listPostIdsOfType(index, type));
    const authors = new Set(posts.map((id) => index.post(id)?.author ?? 0));

    yield HEAD + writeSite(site);
    for (const id of authors) {
      if (id === 0) continue;
      const { email = "", name = getLogin(id) } = people.get(id) ?? {};
      yield `\t<wp:author>\n${writeElement("wp:author_id", id)}${writeElement("wp:author_login", getLogin(id))}${writeElement("wp:author_email", email)}${writeElement("wp:author_display_name", name)}\t</wp:author>\n`;
    }
    for (const taxonomy of index.model.taxonomies.keys()) {
      for (const term of listParentsFirst(taxonomy, index)) yield writeTerm(term, index);
    }
    yield `\t<generator>${escapeXml("https://www.npmjs.com/package/postbell")}</generator>\n`;
    for (let start = 0; start < posts.length; start += BATCH) {
      signal?.throwIfAborted();
      const batch = await repository.posts(posts.slice(start, start + BATCH));
      // A post that was deleted in the meantime is left out.
      yield batch
        .map((post) => (post === undefined ? "" : writeItem(post, { site, index, getLogin })))
        .join("");
      onProgress?.({ items: start + batch.length, itemsTotal: posts.length });
    }
    yield "</channel>\n</rss>\n";
  };
}

function listParentsFirst(taxonomy: Taxonomy, index: SiteIndex): Term[] {
  const depth = (term: Term): number => listTermAncestors(term, index).length;
  return index
    .terms(taxonomy)
    .map((term) => ({ term, depth: depth(term) }))
    .sort((a, b) => a.depth - b.depth || a.term.id - b.term.id)
    .map(({ term }) => term);
}

function writeTerm(term: Term, index: SiteIndex): string {
  const { id, taxonomy, slug, name, description, parent } = term;
  const above = index.term(parent)?.slug ?? "";
  const line = (tag: string, texts: [string, string | number][]): string =>
    `\t<${tag}>\n${texts.map(([child, text]) => writeElement(child, text)).join("")}\t</${tag}>\n`;
  if (taxonomy === "category") {
    return line("wp:category", [
      ["wp:term_id", id],
      ["wp:category_nicename", slug],
      ["wp:category_parent", above],
      ["wp:cat_name", name],
      ["wp:category_description", description],
    ]);
  }
  if (taxonomy === "post_tag") {
    return line("wp:tag", [
      ["wp:term_id", id],
      ["wp:tag_slug", slug],
      ["wp:tag_name", name],
      ["wp:tag_description", description],
    ]);
  }
  return line("wp:term", [
    ["wp:term_id", id],
    ["wp:term_taxonomy", taxonomy],
    ["wp:term_slug", slug],
    ["wp:term_parent", above],
    ["wp:term_name", name],
    ["wp:term_description", description],
  ]);
}

const writeSite = ({ name, url, home, description }: Site): string =>
  `\t<title>${escapeXml(name)}</title>\n\t<link>${escapeXml(home)}</link>\n\t<description>${escapeXml(description)}</description>\n\t<wp:wxr_version>1.2</wp:wxr_version>\n\t<wp:base_site_url>${escapeXml(url)}</wp:base_site_url>\n\t<wp:base_blog_url>${escapeXml(url)}</wp:base_blog_url>\n`;

// Writes a post as an item of a WXR file. Pure.

interface ExportContext {
  site: Site;
  index: SiteIndex;
  getLogin: (author: number) => string;
}

const ZERO_DATE = "0000-00-00 00:00:00";

const toSqlDate = (ms: number | null): string => (ms === null ? ZERO_DATE : formatDate(ms).replace("T", " "));

function writeItem(post: Post, { site, index, getLogin }: ExportContext): string {
  const { menuItem, media } = post;
  const parts = [
    "\t<item>\n",
    writeElement("title", post.title),
    `\t\t<link>${escapeXml(site.link(post, index))}</link>\n`,
    `\t\t<pubDate>${new Date(post.dateGmt ?? site.zone.toUtc(post.date)).toUTCString().replace("GMT", "+0000")}</pubDate>\n`,
    writeElement("dc:creator", getLogin(post.author)),
    `\t\t<guid isPermaLink="false">${escapeXml(site.guid(post))}</guid>\n`,
    "\t\t<description></description>\n",
    writeElement("content:encoded", menuItem?.description ?? post.content),
    writeElement("excerpt:encoded", menuItem?.attrTitle ?? post.excerpt),
    writeElement("wp:post_id", post.id),
    writeElement("wp:post_date", toSqlDate(post.date)),
    writeElement("wp:post_date_gmt", toSqlDate(post.dateGmt)),
    writeElement("wp:post_modified", toSqlDate(post.modified)),
    writeElement("wp:post_modified_gmt", toSqlDate(post.modifiedGmt)),
    writeElement("wp:comment_status", post.commentStatus),
    writeElement("wp:ping_status", post.pingStatus),
    writeElement("wp:post_name", post.slug),
    writeElement("wp:status", post.status),
    writeElement("wp:post_parent", menuItem === null ? post.parent : 0),
    writeElement("wp:menu_order", post.menuOrder),
    writeElement("wp:post_type", post.type),
    writeElement("wp:post_password", post.password),
    writeElement("wp:is_sticky", post.sticky ? 1 : 0),
    media === null ? "" : writeElement("wp:attachment_url", getExportedUrl(media, site)),
    ...writeAssignments(post, index),
    ...listMeta(post, getCollection(index.model, post.type)).map(
      ([name, value]) =>
        `\t\t<wp:postmeta>\n\t${writeElement("wp:meta_key", name)}\t${writeVerbatim("wp:meta_value", value)}\t\t</wp:postmeta>\n`,
    ),
    "\t</item>\n",
  ];
  return parts.join("");
}

function writeAssignments(post: Post, index: SiteIndex): string[] {
  const write = (taxonomy: string, slug: string, name: string): string =>
    `\t\t<category domain="${taxonomy}" nicename="${escapeXml(slug)}">${writeCdata(name)}</category>\n`;
  const terms = getCollection(index.model, post.type).taxonomies.flatMap(({ taxonomy }) =>
    index.termsOf(post, taxonomy).map((id) => {
      const { slug = "", name = "" } = index.term(id) ?? {};
      return write(taxonomy, slug, name);
    }),
  );
  const { format } = post;
  return format === "standard" ? terms : [...terms, write("post_format", `post-format-${format}`, format)];
}

type Meta = [name: string, value: string][];

function listMeta(post: Post, { meta }: Collection): Meta {
  const { featuredMedia, template, beforeTrash, media, menuItem } = post;
  return [
    ...toMeta("_thumbnail_id", featuredMedia > 0 ? String(featuredMedia) : ""),
    ...toMeta("_wp_page_template", template),
    ...toMeta("_wp_trash_meta_status", beforeTrash?.status ?? ""),
    ...toMeta("_wp_desired_post_slug", beforeTrash?.slug ?? ""),
    ...(media === null ? [] : listMediaMeta(media, post.mimeType)),
    ...(menuItem === null ? [] : listMenuItemMeta(menuItem, post)),
    ...listFieldMeta(post.meta, meta),
  ];
}

/** A key with several values has a row for each. */
function listFieldMeta(stored: JsonObject, fields: MetaFields): Meta {
  return Object.entries(stored).flatMap(([name, value]): Meta => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) return [];
    if (field.declared === undefined) {
      return toMeta(name, typeof value === "boolean" ? (value ? "1" : "") : toText(value));
    }
    const values = field.declared.isList && Array.isArray(value) ? (value as Json[]) : [value];
    return values.map((one) => [name, toMetaText(one, removeInvalid)]);
  });
}

/** Returns an empty text for a file that was imported without its bytes and without a valid URL. */
const getExportedUrl = ({ elsewhere, name }: MediaFile, site: Site): string =>
  elsewhere === undefined ? site.upload(name) : toWebUrl(elsewhere);

const toMeta = (name: string, value: string): Meta => (value === "" ? [] : [[name, value]]);

function listMediaMeta(file: MediaFile, mimeType: string): Meta {
  const { name, width, height, bytes, sizes, altText } = file;
  const metadata = {
    ...(mimeType.startsWith("image/") ? { width, height, file: name } : {}),
    filesize: bytes,
    sizes: Object.fromEntries(
      Object.entries(sizes).map(([size, version]) => [
        size,
        {
          file: getFileBaseName(version.name),
          width: version.width,
          height: version.height,
          "mime-type": version.mimeType,
          filesize: version.bytes,
        },
      ]),
    ),
    ...(mimeType.startsWith("image/") ? { image_meta: toImageMeta(file) } : {}),
  };
  return [
    ["_wp_attached_file", name],
    ["_wp_attachment_metadata", serializePhp(metadata)],
    ...toMeta("_wp_attachment_image_alt", altText),
  ];
}

function listMenuItemMeta(item: MenuItem, { id, parent }: Post): Meta {
  return [
    ["_menu_item_type", item.type],
    ["_menu_item_menu_item_parent", String(parent)],
    ["_menu_item_object_id", String(item.type === "custom" ? id : item.objectId)],
    ["_menu_item_object", item.object],
    ["_menu_item_target", item.target],
    ["_menu_item_classes", serializePhp(item.classes)],
    ["_menu_item_xfn", item.xfn.join(" ")],
    ["_menu_item_url", cleanUrl(item.url)],
  ];
}

// Writes texts as XML. Pure.

/** Invalid in XML 1.0: control characters, lone surrogates and two noncharacters. */
const INVALID = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]|\p{Surrogate}/gu;

const removeInvalid = (text: string): string => text.replace(INVALID, "");

/** Writes a CDATA section, so that markup stays readable. `]]>` is split over two of them. */
const writeCdata = (text: string): string =>
  `<![CDATA[${removeInvalid(text).replaceAll("]]>", "]]]]><![CDATA[>")}]]>`;

const ENTITIES: { [sign: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Escapes a text, or an attribute in double quotes. */
export const escapeXml = (text: string): string =>
  removeInvalid(text).replace(/[&<>"]/g, (sign) => ENTITIES[sign] ?? "");

/** Writes an element with a text on a separate line. */
const writeElement = (name: string, text: string | number): string =>
  `\t\t<${name}>${typeof text === "number" ? text : writeCdata(text)}</${name}>\n`;

/** XML reads a carriage return as a line feed, which changes the length of a serialized text. */
const writeVerbatim = (name: string, text: string): string =>
  writeElement(name, text).replaceAll("\r", "]]>&#13;<![CDATA[");
