/**
 * Reads the few EXIF tags that WordPress shows. Pure.
 *
 * A tag may name any range of the segment. Only known tags are read, each once, so that hostile
 * directories cost no more than honest ones.
 */

import { isUtf8 } from "node:buffer";

/** Only tags with a value. Texts are decoded, but not sanitised. */
export interface ExifTags {
  description?: string;
  camera?: string;
  artist?: string;
  copyright?: string;
  userComment?: string;
  /** The comment and the author that Windows writes. */
  comments?: string;
  author?: string;
  /** `2026:11:23 10:20:30`, in the time of the camera. */
  digitized?: string;
  orientation?: number;
  iso?: number;
  /** In seconds. */
  exposureTime?: number;
  fNumber?: number;
  /** In millimetres. */
  focalLength?: number;
}

type Read = (entry: Entry) => string | number | undefined;

/** Where the value of a tag lies. */
interface Entry {
  view: DataView;
  isLittle: boolean;
  type: number;
  start: number;
  end: number;
}

const EXIF_DIRECTORY = 0x8769;

const TAGS: Map<number, [keyof ExifTags, Read]> = new Map([
  [0x010e, ["description", readText]],
  [0x0110, ["camera", readText]],
  [0x0112, ["orientation", readInteger]],
  [0x013b, ["artist", readText]],
  [0x8298, ["copyright", readText]],
  [0x829a, ["exposureTime", readRational]],
  [0x829d, ["fNumber", readRational]],
  [0x8827, ["iso", readInteger]],
  [0x9004, ["digitized", readText]],
  [0x920a, ["focalLength", readRational]],
  [0x9286, ["userComment", readComment]],
  [0x9c9c, ["comments", readWide]],
  [0x9c9d, ["author", readWide]],
] as const);

/** The bytes of a value of each type; the index is the number of the type. */
const WIDTHS = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8];
const [SHORT, LONG, RATIONAL] = [3, 4, 5];

/**
 * Reads a TIFF structure, such as an EXIF segment after its name. What is broken is left out.
 *
 * Guarantee: never throws, and reads every byte at most a few times.
 */
export function readExifTags(tiff: Uint8Array): ExifTags {
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  const found = new Map<keyof ExifTags, string | number>();
  try {
    const isLittle = view.getUint16(0) === 0x4949;
    if ((!isLittle && view.getUint16(0) !== 0x4d4d) || view.getUint16(2, isLittle) !== 42) return {};
    const exif = readDirectory(view, view.getUint32(4, isLittle), isLittle, found);
    if (exif !== undefined) readDirectory(view, exif, isLittle, found);
  } catch (error) {
    // A DataView throws on a read beyond its end. What was found before it counts.
    if (!(error instanceof RangeError)) throw error;
  }
  return Object.fromEntries([...found].filter(([, value]) => value !== ""));
}

/** Returns the offset of the EXIF directory, if this one names it. */
function readDirectory(
  view: DataView,
  offset: number,
  isLittle: boolean,
  found: Map<keyof ExifTags, string | number>,
): number | undefined {
  let exif: number | undefined;
  const count = view.getUint16(offset, isLittle);
  for (let index = 0; index < count; index += 1) {
    const at = offset + 2 + 12 * index;
    const tag = view.getUint16(at, isLittle);
    if (tag === EXIF_DIRECTORY) exif = view.getUint32(at + 8, isLittle);
    const [name, read] = TAGS.get(tag) ?? [];
    if (name === undefined || read === undefined || found.has(name)) continue;
    const entry = locate(view, at, isLittle);
    const value = entry && read(entry);
    // An empty value is recorded too, so that a repeated tag is not read again.
    found.set(name, value ?? "");
  }
  return exif;
}

/** Returns `undefined` for a value of unknown type, or one that lies outside the segment. */
function locate(view: DataView, at: number, isLittle: boolean): Entry | undefined {
  const type = view.getUint16(at + 2, isLittle);
  const length = (WIDTHS[type] ?? 0) * view.getUint32(at + 4, isLittle);
  const start = length <= 4 ? at + 8 : view.getUint32(at + 8, isLittle);
  const end = start + length;
  return length > 0 && end <= view.byteLength ? { view, isLittle, type, start, end } : undefined;
}

const toBytes = ({ view, start, end }: Entry): Uint8Array =>
  new Uint8Array(view.buffer, view.byteOffset + start, end - start);

function readText(entry: Entry): string {
  const bytes = toBytes(entry);
  const end = bytes.indexOf(0);
  return decodeMetadataText(end === -1 ? bytes : bytes.subarray(0, end));
}

function readWide(entry: Entry): string {
  return decodeUtf16(toBytes(entry));
}

/** A comment begins with the name of its character set, in 8 bytes. */
function readComment(entry: Entry): string {
  const bytes = toBytes(entry);
  const text = bytes.subarray(8);
  const set = decodeMetadataText(bytes.subarray(0, 8));
  if (set !== "UNICODE") return decodeMetadataText(text);
  return entry.isLittle ? decodeUtf16(text) : decodeUtf16(swapPairs(text));
}

const swapPairs = (bytes: Uint8Array): Uint8Array =>
  Buffer.from(bytes.subarray(0, bytes.length & ~1)).swap16();

function readInteger({ view, isLittle, type, start }: Entry): number | undefined {
  if (type === SHORT) return view.getUint16(start, isLittle);
  return type === LONG ? view.getUint32(start, isLittle) : undefined;
}

function readRational({ view, isLittle, type, start }: Entry): number | undefined {
  if (type !== RATIONAL) return undefined;
  const divisor = view.getUint32(start + 4, isLittle);
  return divisor === 0 ? undefined : view.getUint32(start, isLittle) / divisor;
}

/** Texts are decoded, but not sanitised. */
export interface IptcTexts {
  headline?: string;
  title?: string;
  caption?: string;
  credit?: string;
  creator?: string;
  copyright?: string;
  /** `20261123` */
  date?: string;
  /** `102030+0100` */
  time?: string;
  keywords: string[];
}

/** The numbers of the fields in the record of the application. */
const FIELDS: Map<number, Exclude<keyof IptcTexts, "keywords">> = new Map([
  [5, "title"],
  [55, "date"],
  [60, "time"],
  [80, "creator"],
  [105, "headline"],
  [110, "credit"],
  [116, "copyright"],
  [120, "caption"],
] as const);

const KEYWORDS = 25;
export const MAX_KEYWORDS = 100;
const APPLICATION_RECORD = 2;
const FIELD_MARKER = 0x1c;

/**
 * Reads the fields in `segment`, which Photoshop and others write as APP13. A field that is present
 * again, or that does not fit into the segment, is left out.
 *
 * Guarantee: never throws, and is linear in the length of `segment`.
 */
export function readIptcTexts(segment: Uint8Array): IptcTexts {
  const texts = new Map<string, string>();
  const keywords: string[] = [];
  for (const [field, bytes] of iptcFields(segment)) {
    const name = FIELDS.get(field);
    if (field === KEYWORDS && keywords.length < MAX_KEYWORDS) keywords.push(decodeMetadataText(bytes));
    if (name !== undefined && !texts.has(name)) texts.set(name, decodeMetadataText(bytes));
  }
  return { ...Object.fromEntries(texts), keywords: keywords.filter((keyword) => keyword !== "") };
}

/** Yields the number and the bytes of each field of the application. */
function* iptcFields(segment: Uint8Array): Generator<[number, Uint8Array], void> {
  let at = findFirstField(segment);
  while (at + 5 <= segment.length && segment[at] === FIELD_MARKER) {
    const length = ((segment[at + 3] as number) << 8) | (segment[at + 4] as number);
    const end = at + 5 + length;
    // A length of more than 15 bits means a field of another form, which no text has.
    if (length > 0x7fff || end > segment.length) return;
    if (segment[at + 1] === APPLICATION_RECORD)
      yield [segment[at + 2] as number, segment.subarray(at + 5, end)];
    at = end;
  }
}

function findFirstField(segment: Uint8Array): number {
  const at = segment.findIndex(
    (byte, index) => byte === FIELD_MARKER && (segment[index + 1] === 1 || segment[index + 1] === 2),
  );
  return at === -1 ? segment.length : at;
}

// Reads the alternative text in the XMP metadata of an image. Pure.

const ELEMENT = "Iptc4xmpCore:AltTextAccessibility";

const ENTITIES: Map<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
]);

/**
 * Returns the text in the default language, or else the first one; an empty text if the packet has
 * no such element.
 *
 * Guarantee: never throws, and is linear in the length of `packet`.
 */
export function readXmpAltText(packet: string): string {
  const start = packet.indexOf(`<${ELEMENT}`);
  const texts = start === -1 ? "" : packet.slice(start, packet.indexOf(`</${ELEMENT}`, start));
  const chosen = texts.slice(Math.max(texts.indexOf("<rdf:li"), texts.indexOf('"x-default"'), 0));
  const text = chosen.slice(chosen.indexOf(">") + 1, Math.max(chosen.indexOf("</rdf:li"), 0));
  return tidyText(text.replace(/&(\w{2,4});/g, (reference, name: string) => ENTITIES.get(name) ?? reference));
}

/** The longest field of IPTC has 2000 bytes; EXIF has no limit. */
const MAX_TEXT = 2_000;

/** Control characters, except tabs and line breaks. */
const CONTROLS = /[^\P{Cc}\t\n\r]/gu;

/** Decodes UTF-8, or else Latin-1, as WordPress does: metadata seldom says which it is. */
function decodeMetadataText(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return tidyText(buffer.toString(isUtf8(buffer) ? "utf8" : "latin1"));
}

/** Decodes UTF-16 in the byte order of Windows, which writes such texts into EXIF. */
const decodeUtf16 = (bytes: Uint8Array): string =>
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
