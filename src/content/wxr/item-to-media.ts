/** What an attachment in a file tells of its own file. Pure. */

import { parseUrl } from "../../core/parse-url.js";
import { isFileName } from "../files.js";
import { toBaseName } from "../media/file-name.js";
import { findMimeType } from "../media/media-type.js";
import type { MediaFile } from "../records/records.js";
import { stripAll } from "../text/plain.js";
import { type PhpArray, type PhpValue, unserializePhp } from "./php-serialize.js";
import type { WxrItem } from "./types.js";

const MAX_SIZES = 64;
const NOTHING: PhpArray = new Map();

const arrayOf = (value: PhpValue | undefined): PhpArray => (value instanceof Map ? value : NOTHING);
const textOf = (value: PhpValue | undefined): string => (typeof value === "string" ? value : "");

function countOf(value: PhpValue | undefined): number {
  const count = Number(typeof value === "string" ? value : (value ?? 0));
  return Number.isSafeInteger(count) && count > 0 ? count : 0;
}

const isWebAddress = (url: string): boolean => /^https?:\/\//i.test(url) && parseUrl(url) !== undefined;

/** The last part of the path of an address; empty where there is none. */
const lastOfAddress = (url: string): string =>
  isWebAddress(url) ? (parseUrl(url)?.pathname.split("/").at(-1) ?? "") : "";

function nameOf(path: string, url: string): string {
  if (isFileName(path)) return path;
  const last = (path.split("/").at(-1) ?? "") || lastOfAddress(url);
  const extension = /\.[a-z0-9]{1,5}$/i.exec(last)?.[0] ?? "";
  return last === "" ? "" : `${toBaseName(last)}${extension.toLowerCase()}`;
}

/** The file as it is known without its bytes, and its type by its name. */
export function toMedia(
  item: WxrItem,
  meta: ReadonlyMap<string, string>,
): { readonly media: MediaFile; readonly mimeType: string } {
  const known = arrayOf(unserializePhp(meta.get("_wp_attachment_metadata") ?? ""));
  const name = nameOf(meta.get("_wp_attached_file") ?? textOf(known.get("file")), item.attachmentUrl);
  const folder = name.slice(0, name.lastIndexOf("/") + 1);
  const sizes = [...arrayOf(known.get("sizes"))].slice(0, MAX_SIZES).flatMap(([size, value]) => {
    const version = arrayOf(value);
    const file = folder + textOf(version.get("file"));
    if (!/^[\w-]{1,64}$/.test(size) || !isFileName(file)) return [];
    const [width, height] = [countOf(version.get("width")), countOf(version.get("height"))];
    const bytes = countOf(version.get("filesize"));
    return [[size, { name: file, width, height, mimeType: findMimeType(file) ?? "", bytes }] as const];
  });
  return {
    mimeType: findMimeType(name) ?? "",
    media: {
      name,
      bytes: countOf(known.get("filesize")),
      altText: stripAll(meta.get("_wp_attachment_image_alt") ?? ""),
      width: countOf(known.get("width")),
      height: countOf(known.get("height")),
      sizes: Object.fromEntries(sizes),
      elsewhere: isWebAddress(item.attachmentUrl) ? item.attachmentUrl : "",
    },
  };
}
