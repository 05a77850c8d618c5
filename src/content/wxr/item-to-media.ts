/** Converts an attachment of a file to the record of its media file. Pure. */

import { parseUrl } from "../../core/parse-url.js";
import { isFileName } from "../files.js";
import { toBaseName } from "../media/file-name.js";
import { parseImageMeta } from "../media/image-metadata.js";
import { findMimeType } from "../media/media-type.js";
import type { ImageMetadata, MediaFile } from "../records/records.js";
import { stripAll } from "../text/markup.js";
import { toWebUrl } from "../text/urls.js";
import { type PhpArray, type PhpValue, unserializePhp } from "./php-serialize.js";
import type { WxrItem } from "./types.js";

const MAX_SIZES = 64;
const EMPTY: PhpArray = new Map();

const toArray = (value: PhpValue | undefined): PhpArray => (value instanceof Map ? value : EMPTY);
const toText = (value: PhpValue | undefined): string => (typeof value === "string" ? value : "");

function toCount(value: PhpValue | undefined): number {
  const count = Number(typeof value === "string" ? value : (value ?? 0));
  return Number.isSafeInteger(count) && count > 0 ? count : 0;
}

/** Returns the last segment of the path of a URL, or an empty text. */
const getLastSegment = (url: string): string => parseUrl(toWebUrl(url))?.pathname.split("/").at(-1) ?? "";

function toFileName(path: string, url: string): string {
  if (isFileName(path)) return path;
  const last = (path.split("/").at(-1) ?? "") || getLastSegment(url);
  const extension = /\.[a-z0-9]{1,5}$/i.exec(last)?.[0] ?? "";
  return last === "" ? "" : `${toBaseName(last)}${extension.toLowerCase()}`;
}

const toImageMetadata = (imageMeta: PhpArray): ImageMetadata | undefined =>
  parseImageMeta(
    (name) => {
      const value = imageMeta.get(name);
      return typeof value === "number" ? String(value) : toText(value);
    },
    [...toArray(imageMeta.get("keywords")).values()].map(toText),
  );

/** Returns what the item says about its file, and the type that the name of the file implies. */
export function toMedia(item: WxrItem, meta: Map<string, string>): { media: MediaFile; mimeType: string } {
  const found = toArray(unserializePhp(meta.get("_wp_attachment_metadata") ?? ""));
  const name = toFileName(meta.get("_wp_attached_file") ?? toText(found.get("file")), item.attachmentUrl);
  const folder = name.slice(0, name.lastIndexOf("/") + 1);
  const sizes = [...toArray(found.get("sizes"))].slice(0, MAX_SIZES).flatMap(([size, value]) => {
    const version = toArray(value);
    const file = folder + toText(version.get("file"));
    if (!/^[\w-]{1,64}$/.test(size) || !isFileName(file)) return [];
    const [width, height] = [toCount(version.get("width")), toCount(version.get("height"))];
    const bytes = toCount(version.get("filesize"));
    return [[size, { name: file, width, height, mimeType: findMimeType(file) ?? "", bytes }] as const];
  });
  const metadata = toImageMetadata(toArray(found.get("image_meta")));
  return {
    mimeType: findMimeType(name) ?? "",
    media: {
      name,
      bytes: toCount(found.get("filesize")),
      altText: stripAll(meta.get("_wp_attachment_image_alt") ?? ""),
      width: toCount(found.get("width")),
      height: toCount(found.get("height")),
      sizes: Object.fromEntries(sizes),
      elsewhere: toWebUrl(item.attachmentUrl),
      ...(metadata === undefined ? {} : { metadata }),
    },
  };
}
