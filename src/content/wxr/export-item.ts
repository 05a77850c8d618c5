/** One post as an item of a WXR file. Pure. */

import { toText } from "../../schema/text-of.js";
import { getCollection } from "../collections.js";
import type { SiteIndex } from "../query/site-index.js";
import type { MediaFile, MenuItem, Post } from "../records/records.js";
import type { Site } from "../site.js";
import { formatDate } from "../text/dates.js";
import { serializePhp } from "./php-serialize.js";
import { cdata, element, escaped } from "./xml.js";

export interface ExportContext {
  readonly site: Site;
  readonly index: SiteIndex;
  readonly loginOf: (author: number) => string;
}

const ZERO_DATE = "0000-00-00 00:00:00";

const sqlDate = (ms: number | null): string => (ms === null ? ZERO_DATE : formatDate(ms).replace("T", " "));

export function writeItem(post: Post, { site, index, loginOf }: ExportContext): string {
  const { menuItem, media } = post;
  const parts = [
    "\t<item>\n",
    element("title", post.title),
    `\t\t<link>${escaped(site.link(post, index))}</link>\n`,
    `\t\t<pubDate>${new Date(post.dateGmt ?? site.zone.toUtc(post.date)).toUTCString().replace("GMT", "+0000")}</pubDate>\n`,
    element("dc:creator", loginOf(post.author)),
    `\t\t<guid isPermaLink="false">${escaped(site.guid(post))}</guid>\n`,
    "\t\t<description></description>\n",
    element("content:encoded", menuItem?.description ?? post.content),
    element("excerpt:encoded", menuItem?.attrTitle ?? post.excerpt),
    element("wp:post_id", post.id),
    element("wp:post_date", sqlDate(post.date)),
    element("wp:post_date_gmt", sqlDate(post.dateGmt)),
    element("wp:post_modified", sqlDate(post.modified)),
    element("wp:post_modified_gmt", sqlDate(post.modifiedGmt)),
    element("wp:comment_status", post.commentStatus),
    element("wp:ping_status", post.pingStatus),
    element("wp:post_name", post.slug),
    element("wp:status", post.status),
    element("wp:post_parent", menuItem === null ? post.parent : 0),
    element("wp:menu_order", post.menuOrder),
    element("wp:post_type", post.type),
    element("wp:post_password", post.password),
    element("wp:is_sticky", post.sticky ? 1 : 0),
    media === null ? "" : element("wp:attachment_url", media.elsewhere ?? site.upload(media.name)),
    ...assignments(post, index),
    ...metaOf(post).map(
      ([name, value]) =>
        `\t\t<wp:postmeta>\n\t${element("wp:meta_key", name)}\t${element("wp:meta_value", value)}\t\t</wp:postmeta>\n`,
    ),
    "\t</item>\n",
  ];
  return parts.join("");
}

function assignments(post: Post, index: SiteIndex): readonly string[] {
  const write = (taxonomy: string, slug: string, name: string): string =>
    `\t\t<category domain="${taxonomy}" nicename="${escaped(slug)}">${cdata(name)}</category>\n`;
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

function metaOf(post: Post): Meta {
  const { featuredMedia, template, beforeTrash, media, menuItem, type } = post;
  const { meta } = getCollection(type);
  return [
    ...given("_thumbnail_id", featuredMedia > 0 ? String(featuredMedia) : ""),
    ...given("_wp_page_template", template),
    ...given("_wp_trash_meta_status", beforeTrash?.status ?? ""),
    ...given("_wp_desired_post_slug", beforeTrash?.slug ?? ""),
    ...(media === null ? [] : mediaMeta(media, post.mimeType)),
    ...(menuItem === null ? [] : menuMeta(menuItem, post)),
    ...Object.entries(post.meta).flatMap(([name, value]) =>
      Object.hasOwn(meta, name)
        ? given(name, typeof value === "boolean" ? (value ? "1" : "") : toText(value))
        : [],
    ),
  ];
}

const given = (name: string, value: string): Meta => (value === "" ? [] : [[name, value]]);

const basename = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

function mediaMeta({ name, width, height, bytes, sizes, altText }: MediaFile, mimeType: string): Meta {
  const metadata = {
    ...(mimeType.startsWith("image/") ? { width, height, file: name } : {}),
    filesize: bytes,
    sizes: Object.fromEntries(
      Object.entries(sizes).map(([size, version]) => [
        size,
        {
          file: basename(version.name),
          width: version.width,
          height: version.height,
          "mime-type": version.mimeType,
          filesize: version.bytes,
        },
      ]),
    ),
  };
  return [
    ["_wp_attached_file", name],
    ["_wp_attachment_metadata", serializePhp(metadata)],
    ...given("_wp_attachment_image_alt", altText),
  ];
}

function menuMeta(item: MenuItem, { id, parent }: Post): Meta {
  return [
    ["_menu_item_type", item.type],
    ["_menu_item_menu_item_parent", String(parent)],
    ["_menu_item_object_id", String(item.type === "custom" ? id : item.objectId)],
    ["_menu_item_object", item.object],
    ["_menu_item_target", item.target],
    ["_menu_item_classes", serializePhp(item.classes)],
    ["_menu_item_xfn", item.xfn.join(" ")],
    ["_menu_item_url", item.url],
  ];
}
