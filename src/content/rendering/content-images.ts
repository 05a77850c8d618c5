/**
 * Completes the images of a content as WordPress does: the size, smaller versions to choose from,
 * and loading when they are scrolled into view.
 */

import type { Steps } from "../../core/next-turn.js";
import { trimEnd } from "../../core/trim-end.js";
import type { PixelSize } from "../media/image-edits.js";
import type { Post } from "../records/records.js";
import type { Site } from "../site.js";
import { TAG_ATTRIBUTE } from "../text/blocks.js";
import { tokenGroups } from "../text/markup.js";
import { findSources, findVersionByUrl, type ImageVersion } from "./image-markup.js";

/** The class by which editors name the attachment that an image shows. */
const IMAGE_CLASS = /\bwp-image-(\d{1,15})\b/i;

/** True if the HTML has an element that this module completes. */
export const hasImages = (html: string): boolean => /<(?:img|iframe)\s/i.test(html);

/** Completes the images of safe HTML. `media`: the attachments that they show. */
export function* completeImages(html: string, media: readonly Post[], site: Site): Steps<string> {
  const byId = new Map(media.map((post) => [post.id, post]));
  const parts: string[] = [];
  for (const group of tokenGroups(html)) {
    for (const { kind, name, text, isClosing } of group) {
      if (kind !== "tag" || isClosing) parts.push(text);
      else if (name === "img") parts.push(completeImage(text, byId, site));
      else parts.push(name === "iframe" ? completeFrame(text) : text);
    }
    yield;
  }
  return parts.join("");
}

/** The value of an attribute, and where it stands in the tag. */
interface TagValue {
  value: string;
  start: number;
}

/** Returns the attributes of a tag by their names; the first one of each, as browsers do. */
function readTag(tag: string): ReadonlyMap<string, TagValue> {
  const attributes = new Map<string, TagValue>();
  TAG_ATTRIBUTE.lastIndex = /^<\w+/.exec(tag)?.[0].length ?? 0;
  for (let match = TAG_ATTRIBUTE.exec(tag); match !== null; match = TAG_ATTRIBUTE.exec(tag)) {
    const [, written = "", quoted = "", ...values] = match;
    const name = quoted.toLowerCase();
    const value = values.find((one) => one !== undefined) ?? "";
    const start = TAG_ATTRIBUTE.lastIndex - written.length + written.lastIndexOf(value);
    if (!attributes.has(name)) attributes.set(name, { value, start });
  }
  return attributes;
}

function toSize(width: string, height: string): PixelSize | undefined {
  const isSize = /^\d{1,6}$/.test(width) && /^\d{1,6}$/.test(height);
  const size = { width: Number(width), height: Number(height) };
  return isSize && size.width > 0 && size.height > 0 ? size : undefined;
}

/** Returns the size of a version; if the style sets the width, in its proportions. */
function scaleTo(version: PixelSize, style: string): PixelSize | undefined {
  const width = Number(/^width:\s*(\d{1,5})px;?$/.exec(style)?.[1] ?? version.width);
  return toSize(String(width), String(Math.round((version.height * width) / version.width)));
}

const LATER = 'loading="lazy"';
/** With it, browsers choose a source by the width that the image has on the page. */
const AUTO = "auto, ";

/** An image without a size stays as it is: the page would move when it is loaded. */
function completeImage(tag: string, media: Map<number, Post>, site: Site): string {
  const attributes = readTag(tag);
  const read = (name: string): string => attributes.get(name)?.value ?? "";
  const post = media.get(Number(IMAGE_CLASS.exec(read("class"))?.[1]));
  const version = post?.media ? findVersionByUrl(post.media, read("src")) : undefined;
  const isUnsized = !attributes.has("width") && !attributes.has("height");
  const size = isUnsized && version ? scaleTo(version, read("style")) : toSize(read("width"), read("height"));
  if (size === undefined || !attributes.has("src")) return tag;
  const isLater = !attributes.has("loading") && read("fetchpriority") !== "high";
  const first = [
    isLater ? LATER : "",
    attributes.has("decoding") ? "" : 'decoding="async"',
    isUnsized ? `width="${size.width}" height="${size.height}"` : "",
  ];
  const auto = isLater && !read("sizes").startsWith("auto") ? AUTO : "";
  const start = attributes.get("sizes")?.start;
  const sized = start === undefined ? tag : `${tag.slice(0, start)}${auto}${tag.slice(start)}`;
  const opened = addFirst(sized, first);
  const isOffered = version !== undefined && !attributes.has("srcset");
  const sources = post && isOffered ? findPostSources(post, site, version, size) : undefined;
  if (sources === undefined) return opened;
  const sizes = start === undefined ? ` sizes="${auto}${sources.sizes}"` : "";
  return `${trimEnd(opened.slice(0, -1), " \t\n\f\r/")} srcset="${sources.srcset}"${sizes} />`;
}

/** The smaller versions of an animation stand still, so it has none to choose from. */
const findPostSources = (
  { media, mimeType }: Post,
  site: Site,
  version: ImageVersion,
  size: PixelSize,
): ReturnType<typeof findSources> =>
  media === null || mimeType === "image/gif" ? undefined : findSources(media, site, version, size);

/** Puts attributes directly behind the name of the element. */
const addFirst = (tag: string, attributes: string[]): string =>
  tag.replace(/^<\w+/, (opening) => [opening, ...attributes.filter(Boolean)].join(" "));

function completeFrame(tag: string): string {
  const attributes = readTag(tag);
  const [width = "", height = ""] = ["width", "height"].map((name) => attributes.get(name)?.value);
  const isSized = toSize(width, height) !== undefined;
  const isLater = isSized && attributes.has("src") && !attributes.has("loading");
  return isLater ? addFirst(tag, [LATER]) : tag;
}
