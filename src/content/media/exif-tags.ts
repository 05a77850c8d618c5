/**
 * Reads the few EXIF tags that WordPress shows. Pure.
 *
 * A tag may name any range of the segment. Only known tags are read, each once, so that hostile
 * directories cost no more than honest ones.
 */

import { decodeMetadataText, decodeUtf16 } from "./metadata-text.js";

/** Only tags with a value. Texts are decoded, but not sanitised. */
export interface ExifTags {
  readonly description?: string;
  readonly camera?: string;
  readonly artist?: string;
  readonly copyright?: string;
  readonly userComment?: string;
  /** The comment and the author that Windows writes. */
  readonly comments?: string;
  readonly author?: string;
  /** `2026:11:23 10:20:30`, in the time of the camera. */
  readonly digitized?: string;
  readonly orientation?: number;
  readonly iso?: number;
  /** In seconds. */
  readonly exposureTime?: number;
  readonly fNumber?: number;
  /** In millimetres. */
  readonly focalLength?: number;
}

type Read = (entry: Entry) => string | number | undefined;

/** Where the value of a tag lies. */
interface Entry {
  readonly view: DataView;
  readonly isLittle: boolean;
  readonly type: number;
  readonly start: number;
  readonly end: number;
}

const EXIF_DIRECTORY = 0x8769;

const TAGS: ReadonlyMap<number, readonly [keyof ExifTags, Read]> = new Map([
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
