/** Decodes the texts in the metadata of an image. Pure. */

import { isUtf8 } from "node:buffer";

/** The longest field of IPTC has 2000 bytes; EXIF has no limit. */
const MAX_TEXT = 2_000;

/** Control characters, except tabs and line breaks. */
const CONTROLS = /[^\P{Cc}\t\n\r]/gu;

/** Decodes UTF-8, or else Latin-1, as WordPress does: metadata seldom says which it is. */
export function decodeMetadataText(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return tidyText(buffer.toString(isUtf8(buffer) ? "utf8" : "latin1"));
}

/** Decodes UTF-16 in the byte order of Windows, which writes such texts into EXIF. */
export const decodeUtf16 = (bytes: Uint8Array): string =>
  tidyText(new TextDecoder("utf-16le").decode(bytes.subarray(0, bytes.length & ~1)));

/** Removes control characters and outer blanks, and shortens the text to 2000 characters. */
export const tidyText = (text: string): string =>
  text
    .replace(CONTROLS, "")
    .trim()
    .slice(0, MAX_TEXT)
    // Half of a pair, if the end went through one.
    .replace(/[\ud800-\udbff]$/, "")
    .trimEnd();
