/** Names of stored media, derived from the name that a client gave. Pure; knows no store. */

import { randomUUID } from "node:crypto";
import { trimEnd } from "../../core/trim-end.js";
import type { StagedFile } from "../files.js";
import { normaliseBounded } from "../text/normalise.js";
import { isAcceptedExtension } from "./media-type.js";

/**
 * Leaves room in the 255 bytes of a file system for a number, for the dimensions of a smaller
 * version and for the extension.
 */
const MAX_BASE_BYTES = 180;

/** Names that Windows reserves for devices, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$/i;

/** A part between dots that a server might take for an extension that counts. */
const LOOKS_LIKE_EXTENSION = /^[a-z]{2,5}[0-9]?$/i;

/** Latin letters that are not a base letter and marks. */
const LETTERS: Map<string, string> = new Map(
  Object.entries({
    ß: "s",
    ẞ: "S",
    æ: "ae",
    Æ: "AE",
    œ: "oe",
    Œ: "OE",
    ø: "o",
    Ø: "O",
    ł: "l",
    Ł: "L",
    đ: "d",
    Đ: "D",
    ð: "d",
    Ð: "D",
    þ: "th",
    Þ: "TH",
    ı: "i",
    "€": "E",
  }),
);

/** Returns the part after the last slash or backslash. */
const lastSegment = (name: string): string =>
  name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1);

/** Invisible characters, and those that change the direction of text. */
const UNSEEN = /[\p{Cc}\p{Default_Ignorable_Code_Point}\u202a-\u202e\u2066-\u2069]/gu;

const withoutExtension = (name: string): string =>
  name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : name;

/**
 * Derives a media item's title from the file name that the client sent: removes folders, the
 * extension and invisible characters. May be empty.
 */
export const titleFromFileName = (name: string): string =>
  withoutExtension(lastSegment(name)).replace(UNSEEN, "").trim();

/**
 * The base of the stored name, to which the extension of its type is added: letters, digits, `.`,
 * `@`, `_`, `-`, dashes and bullets only and none of the signs in front, Latin letters without
 * accents, at most 180 bytes, never a device of some system, never empty. As in WordPress blanks
 * become `-`, other signs vanish, and a part that could pass for an extension (`x.php.png`) is
 * marked: `x.php_`. Linear.
 */
export function toBaseName(fileName: string): string {
  const cleaned = normaliseBounded(withoutExtension(lastSegment(fileName)), "NFC")
    .replace(/%20|[\s+]/g, "-")
    .replace(UNSEEN, "")
    .replace(/\p{L}\p{M}*|€/gu, withoutAccents)
    .replace(/[^\p{L}\p{N}\p{M}.@\u2010-\u2015\u2020-\u2023_-]/gu, "")
    .replace(/-{2,}/g, "-")
    .replace(/\.{2,}/g, ".");
  const name = shortened(marked(trimmed(cleaned)));
  return name === "" ? "unnamed-file" : name;
}

/** Appends `_` to device names and to parts that look like other extensions. Safe to repeat. */
function marked(name: string): string {
  const [first = "", ...more] = name.split(".");
  const parts = more.map((part) =>
    LOOKS_LIKE_EXTENSION.test(part) && !isAcceptedExtension(part) ? `${part}_` : part,
  );
  return [DEVICE.test(first) ? `${first}_` : first, ...parts].join(".");
}

/** A mark without its letter cannot begin a name either. */
function trimmed(text: string): string {
  return trimEnd(text, "._-").replace(/^[\p{M}._-]+/u, "");
}

function withoutAccents(letter: string): string {
  const plain = normaliseBounded(letter, "NFD").replace(/[\u0300-\u036f]/g, "");
  return /^[a-z]$/i.test(plain) ? plain : (LETTERS.get(letter) ?? letter);
}

const isShort = (name: string): boolean => Buffer.byteLength(name) <= MAX_BASE_BYTES;

/**
 * Of a marked name. Where it is cut there may be a sign, an extension without its mark, or no room
 * for one.
 */
function shortened(name: string): string {
  if (isShort(name)) return name;
  const cut = marked(trimmed(beginning(name, MAX_BASE_BYTES)));
  return isShort(cut) ? cut : marked(trimmed(beginning(name, MAX_BASE_BYTES - 1)));
}

/** At most so many bytes; never ends inside a character. */
function beginning(text: string, max: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > max) break;
    end += character.length;
  }
  return text.slice(0, end);
}

/** Numbers that are tried for a name that is taken, before one is drawn. */
const NUMBERED_NAMES = 20;

export interface NameParts {
  /** `2026/11` */
  folder: string;
  /** `heart` */
  base: string;
  /** `png` */
  extension: string;
}

/**
 * Publishes it as `2026/11/heart.png`, or `heart-1.png` where that is taken; resolves with the
 * parts it got.
 */
export async function publishUnderFreeName(
  staged: StagedFile,
  { folder, base: wanted, extension }: NameParts,
): Promise<{ name: string; base: string }> {
  for (const base of candidates(wanted)) {
    const name = `${folder}/${base}.${extension}`;
    if (await staged.publish(name)) return { name, base };
  }
  throw new Error("Every name that was tried for a file is taken.");
}

function* candidates(base: string): Generator<string> {
  yield base;
  for (let number = 1; number <= NUMBERED_NAMES; number += 1) yield `${base}-${number}`;
  yield `${base}-${randomUUID().slice(0, 8)}`;
}

/**
 * Year and month. `localTime` is the site's wall-clock time in epoch ms, as in `PostColumns.date`.
 */
export function toUploadFolder(localTime: number): string {
  const [year, month] = new Date(localTime).toISOString().split("-");
  return `${year}/${month}`;
}

/** Of a stored file, whose name has always an extension. */
export function splitFileName(name: string): NameParts {
  const [slash, dot] = [name.lastIndexOf("/"), name.lastIndexOf(".")];
  return {
    folder: name.slice(0, slash),
    base: name.slice(slash + 1, dot),
    extension: name.slice(dot + 1),
  };
}
