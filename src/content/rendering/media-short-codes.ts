/**
 * The short codes that WordPress has itself, as HTML without scripts: captions, galleries, players,
 * playlists and embeds. Their attributes are what authors wrote, so every value is escaped.
 */

import { getMediaUrl } from "../media/media-rules.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post } from "../records/records.js";
import type { RenderBudget } from "../render-budget.js";
import type { Site } from "../site.js";
import { cleanClasses } from "../text/markup.js";
import { fold } from "../text/normalise.js";
import type { ShortCodeAttributes } from "../text/short-codes.js";
import { texturise } from "../text/typography.js";
import { escapeAttribute, escapeUrl, renderImage } from "./image-markup.js";
import { ownerId, type PublicRecords } from "./public-records.js";

/** A short code with what it may show. */
export interface BuiltInCall {
  attributes: ShortCodeAttributes;
  /** The HTML between its tags, with its short codes run. */
  content: string;
  /** The post whose content it stands in. */
  post: Post;
  /** Counts the short codes of this name in the content, from 1. */
  instance: number;
  site: Site;
  index: SiteIndex;
  records: PublicRecords;
  budget: RenderBudget;
}

type BuiltIn = (call: BuiltInCall) => string | Promise<string>;

/** One class name without other characters. */
const toClass = (name: string): string => cleanClasses([name])[0] ?? "";

const toCount = (text: string | undefined, initial: number): number => {
  const count = Number.parseInt(text ?? "", 10);
  return Number.isNaN(count) ? initial : Math.abs(count);
};

const toIds = (text: string): number[] =>
  text.split(/[\s,]+/, 1_000).flatMap((id) => (/^\d{1,15}$/.test(id) ? [Number(id)] : []));

const IMAGE_AND_TEXT = /^((?:<a [^>]+>\s*)?<img [^>]+>(?:\s*<\/a>)?)(.*)$/is;

/** Returns the start of the first image, or of the link directly around it; -1 without one. */
function findLinkedImage(content: string): number {
  const image = content.search(/<img /i);
  const before = content.slice(0, Math.max(image, 0)).trimEnd();
  const tag = before.lastIndexOf("<");
  return before.endsWith(">") && /^<a [^>]/i.test(before.slice(tag)) ? tag : image;
}

/** The image and the caption, from the attribute or from the content. */
function readCaption(attributes: ShortCodeAttributes, content: string): [string, string] {
  const { caption } = attributes;
  if (caption !== undefined) return [content, caption];
  const from = findLinkedImage(content);
  const [, image, text = ""] = IMAGE_AND_TEXT.exec(from === -1 ? "" : content.slice(from)) ?? [];
  return image === undefined ? [content, ""] : [image, text.trim()];
}

function renderCaption({ attributes, content }: BuiltInCall): string {
  const [image, caption] = readCaption(attributes, content);
  const width = toCount(attributes["width"], 0);
  if (width < 1 || caption === "") return image;
  const { align = "alignnone" } = attributes;
  const id = toClass(attributes["id"] ?? "");
  const captionId = toClass(attributes["caption_id"] ?? "") || (id && `caption-${id.replaceAll("_", "-")}`);
  const classes = `wp-caption ${align} ${attributes["class"] ?? ""}`.trim();
  const described = captionId && `aria-describedby="${captionId}" `;
  return (
    `<figure ${id && `id="${id}" `}${described}style="width: ${width}px" class="${escapeAttribute(classes)}">` +
    `${image}<figcaption ${captionId && `id="${captionId}" `}class="wp-caption-text">${caption}</figcaption></figure>`
  );
}

function compareTitles(a: Post, b: Post): number {
  const [first, second] = [fold(a.title), fold(b.title)];
  return first < second ? -1 : Number(first > second);
}

const ORDERS: { [name: string]: (a: Post, b: Post) => number } = {
  ID: (a, b) => a.id - b.id,
  id: (a, b) => a.id - b.id,
  date: (a, b) => a.date - b.date,
  post_date: (a, b) => a.date - b.date,
  title: compareTitles,
  post_title: compareTitles,
};

/** The media of a gallery or a playlist, in its order. */
async function listMedia(
  { attributes, post, records, budget }: BuiltInCall,
  mimeType: string,
): Promise<Post[]> {
  const owner = ownerId(post);
  const chosen = attributes["ids"] ?? attributes["include"];
  const excluded = new Set(toIds(attributes["exclude"] ?? ""));
  const found =
    chosen === undefined
      ? await records.mediaOf(toCount(attributes["id"], owner), owner, mimeType)
      : await records.media(toIds(chosen), owner, mimeType);
  const media = budget.takeOf(found.filter(({ id }) => !excluded.has(id)));
  const { orderby = "" } = attributes;
  const compare = Object.hasOwn(ORDERS, orderby) ? ORDERS[orderby] : undefined;
  if (compare !== undefined) media.sort(compare);
  const isDescending = attributes["order"]?.toUpperCase() === "DESC";
  // A list of ids sets the order.
  return isDescending && (compare !== undefined || chosen === undefined) ? media.reverse() : media;
}

async function renderGallery(call: BuiltInCall): Promise<string> {
  const { attributes, post, instance, site, index } = call;
  const images = await listMedia(call, "image/");
  if (images.length === 0) return "";
  const { size = "thumbnail", link } = attributes;
  const selector = `gallery-${instance}`;
  const items: string[] = [];
  for (const image of images) {
    const caption = (image.isTrusted ? image.excerpt : await site.sanitise("excerpt", image.excerpt)).trim();
    const captionId = `${selector}-${image.id}`;
    const picture = renderImage(image, site, size, caption && ` aria-describedby="${captionId}"`);
    const url = link === "file" ? image.media && getMediaUrl(image.media, site) : site.link(image, index);
    const linked = link === "none" ? picture : `<a href='${escapeUrl(url ?? "")}'>${picture}</a>`;
    const { width = 0, height = 0 } = image.media ?? {};
    const figcaption =
      caption &&
      `\n\t\t\t\t<figcaption class='wp-caption-text gallery-caption' id='${captionId}'>\n\t\t\t\t${texturise(caption)}\n\t\t\t\t</figcaption>`;
    items.push(
      `<figure class='gallery-item'>\n\t\t\t<div class='gallery-icon ${height > width ? "portrait" : "landscape"}'>` +
        `\n\t\t\t\t${linked}\n\t\t\t</div>${figcaption}</figure>`,
    );
  }
  const columns = toCount(attributes["columns"], 3);
  const classes = `gallery galleryid-${ownerId(post)} gallery-columns-${columns} gallery-size-${toClass(size)}`;
  return `<div id='${selector}' class='${classes}'>${items.join("")}\n\t\t</div>\n`;
}

const AUDIO_TYPES: Map<string, string> = new Map([
  ["mp3", "audio/mpeg"],
  ["ogg", "audio/ogg"],
  ["flac", "audio/flac"],
  ["m4a", "audio/mpeg"],
  ["wav", "audio/wav"],
]);

const VIDEO_TYPES: Map<string, string> = new Map([
  ["mp4", "video/mp4"],
  ["m4v", "video/mp4"],
  ["webm", "video/webm"],
  ["ogv", "video/ogg"],
  ["flv", "video/x-flv"],
]);

/** Returns the type by the ending of its path; `undefined` for an address of another kind. */
const findType = (url: string, types: Map<string, string>): string | undefined =>
  types.get(/\.(\w{1,5})(?:[?#]|$)/.exec(url)?.[1]?.toLowerCase() ?? "");

const isTrue = (text = ""): boolean => !/^(?:|0|false)$/i.test(text);

/** Returns the files to play, each with its type; or a link to show instead of a player. */
async function findSources(
  { attributes, post, site, records }: BuiltInCall,
  types: Map<string, string>,
  kind: "audio" | "video",
): Promise<[type: string, url: string][] | string> {
  const { src = "" } = attributes;
  const type = findType(src, types);
  if (src !== "" && type === undefined) {
    return `<a class="wp-embedded-${kind}" href="${escapeUrl(src)}">${escapeAttribute(src)}</a>`;
  }
  const listed = [...types.keys()].flatMap((name) => {
    const url = attributes[name] ?? "";
    const source: [string, string] = [types.get(name) ?? "", url];
    return url === "" ? [] : [source];
  });
  const sources: [string, string][] = type === undefined ? listed : [[type, src], ...listed];
  if (sources.length > 0) return sources;
  const owner = ownerId(post);
  const [first] = await records.mediaOf(owner, owner, `${kind}/`);
  return first?.media ? [[first.mimeType, getMediaUrl(first.media, site)]] : "";
}

/** The sources of a player, and a link for browsers that cannot play them. */
function renderSources(sources: [string, string][], instance: number, content: string): string {
  const url = escapeUrl(sources[0]?.[1] ?? "");
  const written = sources.map(([type, source]) => {
    const numbered = `${source}${source.includes("?") ? "&" : "?"}_=${instance}`;
    return `<source type="${type}" src="${escapeUrl(numbered)}" />`;
  });
  return `${written.join("")}${content}<a href="${url}">${url}</a>`;
}

async function renderAudio(call: BuiltInCall): Promise<string> {
  const { attributes, post, instance } = call;
  const sources = await findSources(call, AUDIO_TYPES, "audio");
  if (typeof sources === "string") return sources;
  const { preload = "none", class: classes = "wp-audio-shortcode" } = attributes;
  const players = [
    `class="${escapeAttribute(classes)}" id="audio-${post.id}-${instance}"`,
    isTrue(attributes["loop"]) ? 'loop="1"' : "",
    isTrue(attributes["autoplay"]) ? 'autoplay="1"' : "",
    preload && `preload="${escapeAttribute(preload)}"`,
    'style="width: 100%;" controls="controls"',
  ];
  return `<audio ${players.filter(Boolean).join(" ")}>${renderSources(sources, instance, "")}</audio>`;
}

async function renderVideo(call: BuiltInCall): Promise<string> {
  const { attributes, content, post, instance } = call;
  const sources = await findSources(call, VIDEO_TYPES, "video");
  if (typeof sources === "string") return sources;
  const { preload = "metadata", class: classes = "wp-video-shortcode", poster = "" } = attributes;
  const width = toCount(attributes["width"], 640);
  const flags = ["loop", "autoplay", "muted"].map((name) => (isTrue(attributes[name]) ? `${name}="1"` : ""));
  const players = [
    `class="${escapeAttribute(classes)}" id="video-${post.id}-${instance}"`,
    `width="${width}" height="${toCount(attributes["height"], 360)}"`,
    poster && `poster="${escapeUrl(poster)}"`,
    ...flags,
    preload && `preload="${escapeAttribute(preload)}"`,
    'controls="controls"',
  ];
  const inside = renderSources(sources, instance, content.replace(/[\r\n\t]/g, "").trim());
  return `<div style="width: ${width}px;" class="wp-video"><video ${players.filter(Boolean).join(" ")}>${inside}</video></div>`;
}

/** A list with a player for each file. WordPress's playlist needs a script. */
async function renderPlaylist(call: BuiltInCall): Promise<string> {
  const { attributes, site } = call;
  const kind = attributes["type"] === "video" ? "video" : "audio";
  const media = await listMedia(call, `${kind}/`);
  if (media.length === 0) return "";
  const items = media.map((post) => {
    const url = escapeUrl(post.media === null ? "" : getMediaUrl(post.media, site));
    const title = texturise(escapeAttribute(site.plainText(post.title)));
    return `<li><a href="${url}">${title}</a><${kind} controls="controls" preload="none" src="${url}"></${kind}></li>`;
  });
  const style = attributes["style"] === "dark" ? "dark" : "light";
  return `<div class="wp-playlist wp-${kind}-playlist wp-playlist-${style}"><ol>${items.join("")}</ol></div>`;
}

/** A file is played; a page is a link, since rendering a content fetches nothing. */
function renderEmbed(call: BuiltInCall): string | Promise<string> {
  const url = (call.content || (call.attributes["src"] ?? "")).trim();
  const attributes = { ...call.attributes, src: url };
  if (findType(url, AUDIO_TYPES) !== undefined) return renderAudio({ ...call, attributes });
  if (findType(url, VIDEO_TYPES) !== undefined) return renderVideo({ ...call, attributes, content: "" });
  const href = escapeUrl(url);
  return href === "" ? "" : `<a href="${href}">${escapeAttribute(url)}</a>`;
}

export const BUILT_IN_SHORT_CODES: { [name: string]: BuiltIn } = {
  audio: renderAudio,
  caption: renderCaption,
  embed: renderEmbed,
  gallery: renderGallery,
  playlist: renderPlaylist,
  video: renderVideo,
  wp_caption: renderCaption,
};
