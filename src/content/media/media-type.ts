/**
 * Detects the type of an upload from its file name and its first bytes, and refuses types that are
 * not accepted. Pure; never trusts a declared type.
 */

/** A file format, as the first bytes of a file show it. */
type Format =
  | "png"
  | "jpeg"
  | "gif"
  | "webp"
  | "avif"
  | "pdf"
  | "isobmff"
  | "matroska"
  | "ogg"
  | "wave"
  | "flac"
  | "mpeg-audio"
  | "aac"
  | "ooxml"
  | "opendocument"
  | "text";

export interface MediaType {
  mimeType: string;
  /** The extension of the stored name: lower case, without a dot. */
  extension: string;
  /** True if every byte of the file must be text. */
  isText: boolean;
}

const OOXML = "application/vnd.openxmlformats-officedocument";
const OPENDOCUMENT = "application/vnd.oasis.opendocument";

/**
 * The accepted types by extension. Files that a browser or a server may run are missing (SVG, HTML,
 * XML, scripts, PostScript, archives), as are formats that their first bytes do not identify.
 */
const TYPES: Map<string, [mimeType: string, format: Format]> = new Map([
  ["png", ["image/png", "png"]],
  ["jpg", ["image/jpeg", "jpeg"]],
  ["jpeg", ["image/jpeg", "jpeg"]],
  ["jpe", ["image/jpeg", "jpeg"]],
  ["gif", ["image/gif", "gif"]],
  ["webp", ["image/webp", "webp"]],
  ["avif", ["image/avif", "avif"]],
  ["mp4", ["video/mp4", "isobmff"]],
  ["m4v", ["video/mp4", "isobmff"]],
  ["mov", ["video/quicktime", "isobmff"]],
  ["webm", ["video/webm", "matroska"]],
  ["ogv", ["video/ogg", "ogg"]],
  ["mp3", ["audio/mpeg", "mpeg-audio"]],
  ["m4a", ["audio/mp4", "isobmff"]],
  ["aac", ["audio/aac", "aac"]],
  ["ogg", ["audio/ogg", "ogg"]],
  ["oga", ["audio/ogg", "ogg"]],
  ["wav", ["audio/wav", "wave"]],
  ["flac", ["audio/flac", "flac"]],
  ["pdf", ["application/pdf", "pdf"]],
  ["docx", [`${OOXML}.wordprocessingml.document`, "ooxml"]],
  ["xlsx", [`${OOXML}.spreadsheetml.sheet`, "ooxml"]],
  ["pptx", [`${OOXML}.presentationml.presentation`, "ooxml"]],
  ["odt", [`${OPENDOCUMENT}.text`, "opendocument"]],
  ["ods", [`${OPENDOCUMENT}.spreadsheet`, "opendocument"]],
  ["odp", [`${OPENDOCUMENT}.presentation`, "opendocument"]],
  ["txt", ["text/plain", "text"]],
  ["asc", ["text/plain", "text"]],
  ["srt", ["text/plain", "text"]],
  ["csv", ["text/csv", "text"]],
  ["tsv", ["text/tab-separated-values", "text"]],
  ["ics", ["text/calendar", "text"]],
  ["vtt", ["text/vtt", "text"]],
]);

/** The extension of an image whose name has that of another kind of image. */
const IMAGE_EXTENSIONS: { [format in Format]?: string } = {
  png: "png",
  jpeg: "jpg",
  gif: "gif",
  webp: "webp",
  avif: "avif",
};

/** Returns the text after the last dot in lower case; empty without a dot. */
const getExtension = (name: string): string =>
  name.includes(".") ? name.slice(name.lastIndexOf(".") + 1).toLowerCase() : "";

/** Returns the type that a stored file is served with; `undefined` for a name no upload gets. */
export const findMimeType = (name: string): string | undefined => TYPES.get(getExtension(name))?.[0];

export const isAcceptedExtension = (extension: string): boolean => TYPES.has(extension.toLowerCase());

/**
 * Returns the type of a file with this name that begins with `head` (4 KiB or all of it). Returns
 * `undefined` if the file is refused: its extension is not accepted, or its bytes contradict it. An
 * image with the extension of another kind of image gets the right one, as in WordPress.
 */
export function detectMediaType(name: string, head: Uint8Array): MediaType | undefined {
  const extension = getExtension(name);
  const [mimeType, expected] = TYPES.get(extension) ?? [];
  if (mimeType === undefined || expected === undefined) return undefined;
  const format = detectFormat(head);
  if (format === expected) return { mimeType, extension, isText: format === "text" };
  const actual = format && IMAGE_EXTENSIONS[format];
  if (actual === undefined || IMAGE_EXTENSIONS[expected] === undefined) return undefined;
  return { mimeType: TYPES.get(actual)?.[0] ?? mimeType, extension: actual, isText: false };
}

const TEXT_HEAD_BYTES = 1_024;

/** Matches text that is a program, or that a browser or a server could take for one. */
const ACTIVE_TEXT = /^\s*(?:<[!?%a-z]|%!|#!|%pdf)/i;

/** Returns the bytes from `start` to `end` with one character per byte. */
type ReadText = (start: number, end: number) => string;

interface Signature {
  offset: number;
  bytes: string;
  /** The format, or a function that finds it if several formats share the signature. */
  format: Format | ((head: Uint8Array, at: ReadText) => Format | undefined);
}

/** The first that matches decides. */
const SIGNATURES: Signature[] = [
  { offset: 0, bytes: "\x89PNG\r\n\x1a\n", format: "png" },
  { offset: 0, bytes: "\xff\xd8\xff", format: "jpeg" },
  { offset: 0, bytes: "GIF87a", format: "gif" },
  { offset: 0, bytes: "GIF89a", format: "gif" },
  { offset: 0, bytes: "RIFF", format: detectRiff },
  { offset: 0, bytes: "%PDF-", format: "pdf" },
  { offset: 4, bytes: "ftyp", format: detectBrand },
  { offset: 0, bytes: "\x1aE\xdf\xa3", format: "matroska" },
  { offset: 0, bytes: "OggS", format: "ogg" },
  { offset: 0, bytes: "fLaC", format: "flac" },
  { offset: 0, bytes: "PK\x03\x04", format: detectArchive },
  { offset: 0, bytes: "ID3", format: "mpeg-audio" },
];

function detectFormat(head: Uint8Array): Format | undefined {
  const at: ReadText = (start, end) => Buffer.from(head.subarray(start, end)).toString("latin1");
  const start = at(0, 16);
  const signature = SIGNATURES.find(({ offset, bytes }) => start.startsWith(bytes, offset));
  if (signature !== undefined) {
    const { format } = signature;
    return typeof format === "string" ? format : format(head, at);
  }
  if (isMpegAudioFrame(head)) return "mpeg-audio";
  if (head[0] === 0xff && ((head[1] ?? 0) & 0xf6) === 0xf0) return "aac";
  if (head.length === 0 || hasBinary(head)) return undefined;
  const text = at(0, TEXT_HEAD_BYTES).replace(/^\xef\xbb\xbf/, "");
  return ACTIVE_TEXT.test(text) ? undefined : "text";
}

function detectRiff(_: Uint8Array, at: ReadText): Format | undefined {
  const kind = at(8, 12);
  if (kind === "WEBP") return "webp";
  return kind === "WAVE" ? "wave" : undefined;
}

/**
 * Tells AVIF images from audio and video by the brands of an ISO base media file. Pictures of other
 * codecs than AV1 are not accepted.
 */
function detectBrand(head: Uint8Array, at: ReadText): Format | undefined {
  const major = at(8, 12);
  if (major === "avif" || major === "avis") return "avif";
  if (/^(?:hei|hev|mif1|msf1|mia|jp2|jpx|jxl|crx)/.test(major)) {
    const end = Math.min(new DataView(head.buffer, head.byteOffset).getUint32(0), 256);
    for (let brand = 16; brand + 4 <= end; brand += 4) if (at(brand, brand + 4) === "avif") return "avif";
    return undefined;
  }
  return "isobmff";
}

/** Detects office documents by the first entry of their archive. */
function detectArchive(_: Uint8Array, at: ReadText): Format | undefined {
  const first = at(30, 100);
  if (first.startsWith("mimetypeapplication/vnd.oasis.opendocument.")) return "opendocument";
  return /^(?:\[Content_Types\]\.xml|_rels\/|docProps\/|word\/|xl\/|ppt\/|customXml\/)/.test(first)
    ? "ooxml"
    : undefined;
}

/** True for the frame sync of MPEG audio, layers I to III, without reserved values. */
function isMpegAudioFrame([first = 0, second = 0, third = 0]: Uint8Array): boolean {
  const isSync = first === 0xff && (second & 0xe0) === 0xe0;
  return (
    isSync &&
    (second & 0x18) !== 0x08 &&
    (second & 0x06) !== 0 &&
    third >> 4 !== 15 &&
    (third & 0x0c) !== 0x0c
  );
}

/**
 * True if a byte occurs in no text in ASCII, UTF-8 or a Windows code page: a control character
 * other than tab, line feed, form feed, carriage return and escape.
 */
export function hasBinary(bytes: Uint8Array): boolean {
  for (const byte of bytes) {
    if (byte < 32 && byte !== 9 && byte !== 10 && byte !== 12 && byte !== 13 && byte !== 27) return true;
  }
  return false;
}
