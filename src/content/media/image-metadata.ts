/**
 * Reads the metadata that a camera or a photographer wrote into an image, and shows it in
 * WordPress's form, `image_meta`. Pure.
 */

import type { JsonObject } from "../../schema/types.js";
import type { ImageMetadata, MediaFile } from "../records/records.js";
import { stripAll } from "../text/markup.js";
import { sanitiseHtml } from "../text/sanitise-html.js";
import { type JpegSegment, jpegSegments } from "./image-size.js";
import {
  type ExifTags,
  type IptcTexts,
  MAX_KEYWORDS,
  readExifTags,
  readIptcTexts,
  readXmpAltText,
  tidyText,
} from "./metadata-blocks.js";

/**
 * Reads the metadata of an image from the first bytes of its file; `undefined` if it has nothing to
 * say. As in WordPress, only JPEG is read. Texts are sanitised like the HTML of an author.
 *
 * Guarantee: never throws, and takes time linear in the length of `head`.
 */
export function readImageMetadata(mimeType: string, head: Uint8Array): ImageMetadata | undefined {
  if (mimeType !== "image/jpeg") return undefined;
  const sources = { exif: readExifTags(NOTHING), iptc: readIptcTexts(NOTHING), altText: "" };
  const missing = new Set(KINDS);
  for (const segment of jpegSegments(head)) {
    for (const kind of missing) {
      if (!isOfKind(segment, kind)) continue;
      Object.assign(sources, kind.read(segment.data.subarray(kind.name.length)));
      missing.delete(kind);
    }
  }
  return nonEmpty(combine(sources));
}

interface Sources {
  exif: ExifTags;
  iptc: IptcTexts;
  altText: string;
}

const NOTHING = new Uint8Array();

/** A kind of segment with metadata. Only the first segment of a kind is read. */
interface SegmentKind {
  marker: number;
  /** The bytes it begins with. */
  name: Buffer;
  read: (contents: Uint8Array) => Partial<Sources>;
}

const KINDS: SegmentKind[] = [
  { marker: 0xe1, name: Buffer.from("Exif\0\0"), read: (tiff) => ({ exif: readExifTags(tiff) }) },
  { marker: 0xed, name: Buffer.from("Photoshop 3.0\0"), read: (data) => ({ iptc: readIptcTexts(data) }) },
  {
    marker: 0xe1,
    name: Buffer.from("http://ns.adobe.com/xap/1.0/\0"),
    read: (packet) => ({ altText: readXmpAltText(new TextDecoder().decode(packet)) }),
  },
];

const isOfKind = (segment: JpegSegment, { marker, name }: SegmentKind): boolean =>
  segment.marker === marker &&
  segment.data.length >= name.length &&
  name.every((byte, index) => segment.data[index] === byte);

/** A text this short, in bytes, is taken for a title. */
const MAX_TITLE_BYTES = 80;

const isShort = (text: string): boolean => Buffer.byteLength(text) < MAX_TITLE_BYTES;

/** Chooses between IPTC, which comes first, and EXIF by WordPress's rules. */
function combine({ exif, iptc, altText }: Sources): ImageMetadata {
  const title = chooseTitle(exif, iptc);
  return {
    title: sanitise(title),
    caption: sanitise(iptc.caption || chooseCaption(exif, title)),
    credit: sanitise(iptc.credit || iptc.creator || exif.artist || exif.author),
    copyright: sanitise(iptc.copyright || exif.copyright),
    camera: sanitise(exif.camera),
    keywords: iptc.keywords.map(sanitise),
    altText: stripAll(altText),
    createdTimestamp: parseIptcTime(iptc) || parseExifTime(exif.digitized),
    ...toNumbers(exif),
  };
}

const toNumbers = ({
  fNumber = 0,
  focalLength = 0,
  exposureTime = 0,
  iso = 0,
  orientation = 0,
}: ExifTags) => ({
  aperture: Math.round(100 * fNumber) / 100,
  focalLength: toPrecision(focalLength),
  shutterSpeed: toPrecision(exposureTime),
  iso,
  orientation,
});

function chooseTitle({ description = "", userComment = "" }: ExifTags, iptc: IptcTexts): string {
  const { headline = "", title = "", caption = "" } = iptc;
  const comment = description === "" && caption === "" ? userComment : "";
  const short = [caption, description, comment].filter(isShort);
  return [headline, title, ...short].find((text) => text !== "") ?? "";
}

function chooseCaption(
  { description = "", userComment = "", comments = "" }: ExifTags,
  title: string,
): string {
  if (description === "") return userComment || comments;
  if (userComment === "" || userComment === description) return description;
  return description === title ? userComment : `${description} ${userComment}`;
}

const sanitise = (text = ""): string => (/[<>&]/.test(text) ? sanitiseHtml(text) : text);

/** As many digits as PHP writes. */
const toPrecision = (value: number): number => Number(value.toPrecision(14));

/** Returns seconds since 1970; like WordPress, takes the camera's clock for UTC. 0 if invalid. */
function parseExifTime(text = ""): number {
  const match = /^([12]\d{3}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)/.exec(text);
  return match === null ? 0 : parseSeconds(`${match[1]}-${match[2]}-${match[3]}T${match[4]}Z`);
}

function parseIptcTime({ date = "", time = "" }: IptcTexts): number {
  const day = /^([12]\d{3})(\d\d)(\d\d)$/.exec(date);
  const hour = /^(\d\d)(\d\d)(\d\d)(?:([+-]\d\d)(\d\d))?$/.exec(time);
  if (day === null || hour === null) return 0;
  const zone = hour[4] === undefined ? "Z" : `${hour[4]}:${hour[5]}`;
  return parseSeconds(`${day[1]}-${day[2]}-${day[3]}T${hour[1]}:${hour[2]}:${hour[3]}${zone}`);
}

function parseSeconds(time: string): number {
  const milliseconds = Date.parse(time);
  return Number.isNaN(milliseconds) ? 0 : milliseconds / 1000;
}

/** Returns the members that have a value; `undefined` if none has. */
function nonEmpty(metadata: ImageMetadata): ImageMetadata | undefined {
  const members = Object.entries(metadata).filter(
    ([, value]) => value !== "" && value !== 0 && value.length !== 0,
  );
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

const EMPTY: Required<ImageMetadata> = {
  title: "",
  caption: "",
  credit: "",
  copyright: "",
  camera: "",
  keywords: [],
  altText: "",
  createdTimestamp: 0,
  aperture: 0,
  focalLength: 0,
  shutterSpeed: 0,
  iso: 0,
  orientation: 0,
};

/** Returns WordPress's `image_meta`, where numbers are texts and nothing is absent. */
export function toImageMeta({ metadata, orientation }: MediaFile): JsonObject {
  const all = { ...EMPTY, ...metadata };
  return {
    aperture: String(all.aperture),
    credit: all.credit,
    camera: all.camera,
    caption: all.caption,
    created_timestamp: String(all.createdTimestamp),
    copyright: all.copyright,
    focal_length: String(all.focalLength),
    iso: String(all.iso),
    shutter_speed: String(all.shutterSpeed),
    title: all.title,
    // The file that is shown was turned upright, unless it still has an orientation.
    orientation: String(orientation ?? Math.min(all.orientation, 1)),
    keywords: [...all.keywords],
    alt: all.altText,
  };
}

/**
 * Reads `image_meta` of another site; `text` and `keywords` return its members. Texts are sanitised
 * as those of a file are.
 */
export function parseImageMeta(
  text: (name: string) => string,
  keywords: string[],
): ImageMetadata | undefined {
  const number = (name: string): number => {
    const value = Number(text(name));
    return Number.isFinite(value) && value > 0 ? value : 0;
  };
  return nonEmpty({
    title: sanitise(tidyText(text("title"))),
    caption: sanitise(tidyText(text("caption"))),
    credit: sanitise(tidyText(text("credit"))),
    copyright: sanitise(tidyText(text("copyright"))),
    camera: sanitise(tidyText(text("camera"))),
    keywords: keywords.slice(0, MAX_KEYWORDS).map((keyword) => sanitise(tidyText(keyword))),
    altText: stripAll(tidyText(text("alt"))),
    createdTimestamp: number("created_timestamp"),
    aperture: number("aperture"),
    focalLength: number("focal_length"),
    shutterSpeed: number("shutter_speed"),
    iso: number("iso"),
    orientation: number("orientation"),
  });
}
