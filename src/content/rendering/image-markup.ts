/**
 * The `<img>` of an image of the site, and the `srcset` by which browsers choose one of its sizes.
 * By WordPress's rules. Pure.
 */

import type { PixelSize } from "../media/image-edits.js";
import { getFileBaseName, getMediaUrl } from "../media/media-rules.js";
import type { MediaFile, Post } from "../records/records.js";
import type { Site } from "../site.js";
import { escapeSetting } from "../text/markup.js";
import { cleanUrl } from "../text/urls.js";

/** The value of an attribute in quotes. References in it stay as they are. */
export const escapeAttribute = escapeSetting;

/** A URL as the value of an attribute; empty if its scheme could run something. */
export const escapeUrl = (url: string): string =>
  escapeSetting(cleanUrl(url.replaceAll("&#038;", "&").replaceAll("&amp;", "&"))).replaceAll(
    "&amp;",
    "&#038;",
  );

/** Wider versions are not offered, unless the image itself is one. */
const MAX_WIDTH = 2_048;

export interface ImageVersion extends PixelSize {
  name: string;
}

/** The order in which WordPress makes them, and so lists them. */
const FIRST_SIZES = ["medium", "large", "thumbnail", "medium_large"];

/** The smaller versions and the whole image. */
function listVersions({ name, width, height, sizes }: MediaFile): ImageVersion[] {
  const names = new Set([...FIRST_SIZES, ...Object.keys(sizes)]);
  const smaller = [...names].flatMap((size) => (Object.hasOwn(sizes, size) ? (sizes[size] ?? []) : []));
  return [...smaller, { name, width, height }];
}

/** Returns the version with that name, such as `thumbnail`; the whole image without one. */
const findVersion = (media: MediaFile, size: string): ImageVersion =>
  (Object.hasOwn(media.sizes, size) ? media.sizes[size] : undefined) ?? media;

/** Returns the version whose file the URL names. */
export const findVersionByUrl = (media: MediaFile, url: string): ImageVersion | undefined => {
  const name = getFileBaseName(url.split("?", 1)[0] ?? "");
  return listVersions(media).find((version) => getFileBaseName(version.name) === name);
};

/** True if one is the other, scaled: sides may differ by a pixel. */
function isScaled(a: PixelSize, b: PixelSize): boolean {
  const [small, large] = a.width > b.width ? [b, a] : [a, b];
  const height = Math.max(1, Math.round((large.height * small.width) / large.width));
  return large.width > 0 && Math.abs(height - small.height) <= 1;
}

/**
 * Returns the values of `srcset` and `sizes` for an image that shows `shown` at this size, escaped;
 * `undefined` if there are fewer than two versions in its proportions.
 */
export function findSources(
  media: MediaFile,
  site: Site,
  shown: ImageVersion,
  size: PixelSize = shown,
): { srcset: string; sizes: string } | undefined {
  if (size.width < 1 || Object.keys(media.sizes).length === 0) return undefined;
  const byWidth = new Map<number, ImageVersion>();
  for (const version of [shown, ...listVersions(media)]) {
    const isOffered = version === shown || version.width <= MAX_WIDTH;
    if (isOffered && isScaled(version, size) && !byWidth.has(version.width)) {
      byWidth.set(version.width, version);
    }
  }
  if (byWidth.size < 2) return undefined;
  const srcset = [...byWidth].map(
    ([width, { name }]) => `${escapeUrl(getMediaUrl(media, site, name))} ${width}w`,
  );
  return { srcset: srcset.join(", "), sizes: `(max-width: ${size.width}px) 100vw, ${size.width}px` };
}

/**
 * Returns the `<img>` of an attachment in a size, such as `thumbnail`. `extra`: further attributes,
 * with a blank before each.
 */
export function renderImage({ media }: Post, site: Site, size: string, extra = ""): string {
  if (media === null) return "";
  const version = findVersion(media, size);
  const { width, height, name } = version;
  const sizeClass = escapeAttribute(size);
  const sources = findSources(media, site, version);
  const pixels = width > 0 ? `width="${width}" height="${height}" ` : "";
  return (
    `<img ${pixels}src="${escapeUrl(getMediaUrl(media, site, name))}" ` +
    `class="attachment-${sizeClass} size-${sizeClass}" alt="${escapeAttribute(media.altText)}"${extra}` +
    `${sources ? ` srcset="${sources.srcset}" sizes="${sources.sizes}"` : ""} />`
  );
}
