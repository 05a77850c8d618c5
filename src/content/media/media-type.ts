/** Which files are accepted as media, and what they are: judged by their name and their first bytes together. Pure; never trusts a declared type. */

/** What the first bytes of a file show. */
type Form =
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
  readonly mimeType: string;
  /** Lower case, without a dot; what the stored name ends with. */
  readonly extension: string;
  /** Whether every byte of it has to be text. */
  readonly isText: boolean;
}

const OOXML = "application/vnd.openxmlformats-officedocument";
const OPENDOCUMENT = "application/vnd.oasis.opendocument";

/**
 * By extension. What a browser or a server may run is not among them (SVG, HTML, XML, scripts, PostScript, archives), nor a form that cannot be told
 * from others by its first bytes.
 */
const TYPES: ReadonlyMap<string, readonly [mimeType: string, form: Form]> = new Map([
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

/** What an image is called whose name says another kind of image. */
const IMAGE_EXTENSIONS: { readonly [form in Form]?: string } = {
  png: "png",
  jpeg: "jpg",
  gif: "gif",
  webp: "webp",
  avif: "avif",
};

/** What follows the last dot, in lower case; empty where there is no dot. */
const extensionOf = (name: string): string =>
  name.includes(".") ? name.slice(name.lastIndexOf(".") + 1).toLowerCase() : "";

/** The fixed type that a stored file is served with; `undefined` for a name that no upload gets. */
export const findMimeType = (name: string): string | undefined => TYPES.get(extensionOf(name))?.[0];

export const isAcceptedExtension = (extension: string): boolean => TYPES.has(extension.toLowerCase());

/**
 * The type of a file with this name that begins with `head` (4 KiB or all of it). `undefined`: it is refused, because its extension is not accepted or its
 * bytes show something else. An image under the extension of another kind of image gets its own, as in the reference.
 */
export function detectMediaType(name: string, head: Uint8Array): MediaType | undefined {
  const extension = extensionOf(name);
  const [mimeType, expected] = TYPES.get(extension) ?? [];
  if (mimeType === undefined || expected === undefined) return undefined;
  const form = formOf(head);
  if (form === expected) return { mimeType, extension, isText: form === "text" };
  const own = form && IMAGE_EXTENSIONS[form];
  if (own === undefined || IMAGE_EXTENSIONS[expected] === undefined) return undefined;
  return { mimeType: TYPES.get(own)?.[0] ?? mimeType, extension: own, isText: false };
}

const TEXT_HEAD_BYTES = 1_024;

/** Beginnings that make a program of a text, or that a browser or a server could take for more than text. */
const ACTIVE_TEXT = /^\s*(?:<[!?%a-z]|%!|#!|%pdf)/i;

function formOf(head: Uint8Array): Form | undefined {
  const at = (start: number, end: number): string =>
    Buffer.from(head.subarray(start, end)).toString("latin1");
  const start = at(0, 16);
  if (start.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (start.startsWith("\xff\xd8\xff")) return "jpeg";
  if (start.startsWith("GIF87a") || start.startsWith("GIF89a")) return "gif";
  if (start.startsWith("RIFF")) return { WEBP: "webp", WAVE: "wave" }[at(8, 12)] as Form | undefined;
  if (start.startsWith("%PDF-")) return "pdf";
  if (at(4, 8) === "ftyp") return formOfBrands(head, at);
  if (start.startsWith("\x1aE\xdf\xa3")) return "matroska";
  if (start.startsWith("OggS")) return "ogg";
  if (start.startsWith("fLaC")) return "flac";
  if (start.startsWith("PK\x03\x04")) return formOfArchive(at);
  if (start.startsWith("ID3") || isMpegAudioFrame(head)) return "mpeg-audio";
  if (head[0] === 0xff && ((head[1] ?? 0) & 0xf6) === 0xf0) return "aac";
  if (head.length === 0 || hasBinary(head)) return undefined;
  const text = at(0, TEXT_HEAD_BYTES).replace(/^\xef\xbb\xbf/, "");
  return ACTIVE_TEXT.test(text) ? undefined : "text";
}

/** ISO base media: one box of brands says whether it holds pictures or sound and film. Pictures of other codecs than AV1 are not accepted. */
function formOfBrands(head: Uint8Array, at: (start: number, end: number) => string): Form | undefined {
  const major = at(8, 12);
  if (major === "avif" || major === "avis") return "avif";
  if (/^(?:hei|hev|mif1|msf1|mia|jp2|jpx|jxl|crx)/.test(major)) {
    const end = Math.min(new DataView(head.buffer, head.byteOffset).getUint32(0), 256);
    for (let brand = 16; brand + 4 <= end; brand += 4) if (at(brand, brand + 4) === "avif") return "avif";
    return undefined;
  }
  return "isobmff";
}

/** What office programs write first into their archives. */
function formOfArchive(at: (start: number, end: number) => string): Form | undefined {
  const first = at(30, 100);
  if (first.startsWith("mimetypeapplication/vnd.oasis.opendocument.")) return "opendocument";
  return /^(?:\[Content_Types\]\.xml|_rels\/|docProps\/|word\/|xl\/|ppt\/|customXml\/)/.test(first)
    ? "ooxml"
    : undefined;
}

/** Frame sync of MPEG audio, layers I to III, with no value that is reserved. */
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

/** Whether there is a byte that no text in ASCII, UTF-8 or a Windows code page has: a control character other than tabs, line and page ends and escape. */
export function hasBinary(bytes: Uint8Array): boolean {
  for (const byte of bytes) {
    if (byte < 32 && byte !== 9 && byte !== 10 && byte !== 12 && byte !== 13 && byte !== 27) return true;
  }
  return false;
}
