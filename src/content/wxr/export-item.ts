/** Writes a post as an item of a WXR file. Pure. */

import { toText } from "../../schema/text-of.js";
import { getCollection } from "../collections.js";
import { toImageMeta } from "../media/image-metadata.js";
import { getFileBaseName } from "../media/media-url.js";
import type { SiteIndex } from "../query/site-index.js";
import type { MediaFile, MenuItem, Post } from "../records/records.js";
import type { Site } from "../site.js";
import { formatDate } from "../text/dates.js";
import { cleanUrl, toWebUrl } from "../text/urls.js";
import { serializePhp } from "./php-serialize.js";
import { escapeXml, writeCdata, writeElement } from "./xml.js";

export interface ExportContext {
  readonly site: Site;
  readonly index: SiteIndex;
  readonly getLogin: (author: number) => string;
}

const ZERO_DATE = "0000-00-00 00:00:00";

const toSqlDate = (ms: number | null): string => (ms === null ? ZERO_DATE : formatDate(ms).replace("T", " "));

export function writeItem(post: Post, { site, index, getLogin }: ExportContext): string {
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
    ...listMeta(post).map(
      ([name, value]) =>
        `\t\t<wp:postmeta>\n\t${writeElement("wp:meta_key", name)}\t${writeElement("wp:meta_value", value)}\t\t</wp:postmeta>\n`,
    ),
    "\t</item>\n",
  ];
  return parts.join("");
}

function writeAssignments(post: Post, index: SiteIndex): readonly string[] {
  const write = (taxonomy: string, slug: string, name: string): string =>
    `\t\t<category domain="${taxonomy}" nicename="${escapeXml(slug)}">${writeCdata(name)}</category>\n`;
  const terms = getCollection(post.type).taxonomies.flatMap((taxonomy) =>
    index.termsOf(post, taxonomy).map((id) => {
      const { slug = "", name = "" } = index.term(id) ?? {};
      return write(taxonomy, slug, name);
    }),
  );
  const { format } = post;
  return format === "standard" ? terms : [...terms, write("post_format", `post-format-${format}`, format)];
}

type Meta = readonly (readonly [name: string, value: string])[];

function listMeta(post: Post): Meta {
  const { featuredMedia, template, beforeTrash, media, menuItem, type } = post;
  const { meta } = getCollection(type);
  return [
    ...toMeta("_thumbnail_id", featuredMedia > 0 ? String(featuredMedia) : ""),
    ...toMeta("_wp_page_template", template),
    ...toMeta("_wp_trash_meta_status", beforeTrash?.status ?? ""),
    ...toMeta("_wp_desired_post_slug", beforeTrash?.slug ?? ""),
    ...(media === null ? [] : listMediaMeta(media, post.mimeType)),
    ...(menuItem === null ? [] : listMenuItemMeta(menuItem, post)),
    ...Object.entries(post.meta).flatMap(([name, value]) =>
      Object.hasOwn(meta, name)
        ? toMeta(name, typeof value === "boolean" ? (value ? "1" : "") : toText(value))
        : [],
    ),
  ];
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
