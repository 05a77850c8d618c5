/** Reads the size of an image from the first bytes of its file, without decoding a pixel. Pure. */

// Walks over the segments of a JPEG, which hold its metadata. Pure.

export interface JpegSegment {
  /** The second byte of the marker: 0xe1 for EXIF and XMP, 0xed for IPTC. */
  marker: number;
  /** At most 65 533 bytes. */
  data: Uint8Array;
}

/**
 * Yields the segments before the picture that begin in `head`.
 *
 * Guarantee: linear in the length of `head`, whatever it contains.
 */
export function* jpegSegments(head: Uint8Array): Generator<JpegSegment, void> {
  let at = 2;
  for (let steps = 0; steps < MAX_CHUNKS && at + 4 <= head.length; steps += 1) {
    const marker = head[at + 1] as number;
    if (head[at] !== 0xff) return;
    const bare = countBareBytes(marker);
    if (bare > 0) {
      at += bare;
      continue;
    }
    const length = ((head[at + 2] as number) << 8) | (head[at + 3] as number);
    if (beginsOrEndsPicture(marker) || length < 2) return;
    yield { marker, data: head.subarray(at + 4, at + 2 + length) };
    at += 2 + length;
  }
}

/** Returns the length of a marker without a segment; 0 for a marker that has one. */
function countBareBytes(marker: number): number {
  // Any number of fill bytes 0xff may precede a marker.
  if (marker === 0xff) return 1;
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8) ? 2 : 0;
}

const beginsOrEndsPicture = (marker: number): boolean => marker === 0xda || marker === 0xd9;

/**
 * Steps of a walk, which nothing interrupts. Honest files of 33 MB take 130,000 at most, a GIF in
 * blocks of 255 bytes; of the smallest chunks that the forms allow it could be millions.
 */
export const MAX_CHUNKS = 1_000_000;

/** The four characters that name a chunk, as the number that stands in the file. */
export const chunkType = (name: string): number => Buffer.from(name, "latin1").readUInt32BE(0);

export interface ImageSize {
  /** In pixels, as shown: the sides are swapped if the EXIF orientation turns the image. */
  width: number;
  height: number;
  /** The EXIF orientation, 1 to 8; 1 is upright. */
  orientation: number;
}

const UPRIGHT = 1;
/** The largest side that any of the formats can express. */
const MAX_SIDE = 2 ** 31 - 1;

/** The longest part of a file that is read in one piece: a segment of a JPEG. */
export const PIECE_BYTES = 65_537;

/**
 * Reads the size of an image whose bytes are elsewhere. Yields an offset, each time a later one,
 * and expects at least {@link PIECE_BYTES} bytes from there, or all that remain. Returns what
 * {@link imageSize} returns.
 *
 * Guarantee: at most a million requests and steps.
 */
export function* imageSizeWalk(mimeType: string): Generator<number, ImageSize | undefined, DataView> {
  const read = READERS.get(mimeType);
  if (read === undefined) return undefined;
  try {
    const { width, height, orientation = UPRIGHT } = yield* read();
    if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) return undefined;
    return orientation > 4 ? { width: height, height: width, orientation } : { width, height, orientation };
  } catch (error) {
    // A DataView throws on a read beyond its end.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * Returns the size of an image; `undefined` if the bytes end before it, contradict the format, say
 * 0, or have a million chunks before it.
 *
 * Guarantee: reads only `head`, in time linear in its length, whatever it contains.
 */
export function imageSize(mimeType: string, head: Uint8Array): ImageSize | undefined {
  const walk = imageSizeWalk(mimeType);
  let step = walk.next();
  while (step.done !== true) {
    const rest = head.subarray(step.value);
    step = walk.next(new DataView(rest.buffer, rest.byteOffset, rest.byteLength));
  }
  return step.value;
}

interface Stored {
  width: number;
  height: number;
  orientation?: number;
}

const NONE: Stored = { width: 0, height: 0 };

type Reader = () => Generator<number, Stored, DataView>;

const READERS: Map<string, Reader> = new Map<string, Reader>([
  ["image/png", readPng],
  ["image/gif", readGif],
  ["image/webp", readWebp],
  ["image/jpeg", readJpeg],
  ["image/avif", readAvif],
]);

const IHDR = chunkType("IHDR");

function* readPng(): ReturnType<Reader> {
  const view = yield 0;
  if (view.getUint32(12) !== IHDR) return NONE;
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

function* readGif(): ReturnType<Reader> {
  const view = yield 0;
  return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

const [VP8X, VP8L, VP8] = [chunkType("VP8X"), chunkType("VP8L"), chunkType("VP8 ")];

const uint24 = (view: DataView, at: number): number =>
  view.getUint16(at, true) | (view.getUint8(at + 2) << 16);

function* readWebp(): ReturnType<Reader> {
  const view = yield 0;
  const kind = view.getUint32(12);
  if (kind === VP8X) return { width: uint24(view, 24) + 1, height: uint24(view, 27) + 1 };
  if (kind === VP8L && view.getUint8(20) === 0x2f) {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  // The start code of a key frame.
  if (kind !== VP8 || view.getUint8(23) !== 0x9d || view.getUint16(24) !== 0x012a) return NONE;
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
}

const EXIF = chunkType("Exif");

function* readJpeg(): ReturnType<Reader> {
  let orientation = UPRIGHT;
  let start = 0;
  let view = yield start;
  let at = 2;
  for (let steps = 0; steps < MAX_CHUNKS; steps += 1) {
    if (at + PIECE_BYTES > view.byteLength) {
      start += at;
      at = 0;
      view = yield start;
    }
    if (view.getUint8(at) !== 0xff) return NONE;
    const marker = view.getUint8(at + 1);
    const bare = countBareBytes(marker);
    if (bare > 0) {
      at += bare;
      continue;
    }
    // The picture begins or ends here, without a frame header before it.
    if (beginsOrEndsPicture(marker)) return NONE;
    const length = view.getUint16(at + 2);
    if (length < 2) return NONE;
    if (isFrameHeader(marker)) {
      return { height: view.getUint16(at + 5), width: view.getUint16(at + 7), orientation };
    }
    orientation = readExifSegment(view, at, marker) ?? orientation;
    at += 2 + length;
  }
  return NONE;
}

/** Returns the orientation in an EXIF segment; `undefined` for any other segment. */
function readExifSegment(view: DataView, at: number, marker: number): number | undefined {
  const length = view.getUint16(at + 2);
  if (marker !== 0xe1 || length <= 16 || view.getUint32(at + 4) !== EXIF) return undefined;
  return readOrientation(view, at + 10, at + 2 + length);
}

const isFrameHeader = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

const ORIENTATION_TAG = 0x0112;

/**
 * Reads the orientation from the first directory of a TIFF structure between `start` and `end`. If
 * it is missing or broken, returns 1, because the picture can be shown all the same.
 */
function readOrientation(view: DataView, start: number, end: number): number {
  const isLittle = view.getUint16(start) === 0x4949;
  if ((!isLittle && view.getUint16(start) !== 0x4d4d) || view.getUint16(start + 2, isLittle) !== 42)
    return UPRIGHT;
  const directory = start + view.getUint32(start + 4, isLittle);
  if (directory + 2 > end) return UPRIGHT;
  const count = view.getUint16(directory, isLittle);
  for (let entry = directory + 2, left = count; left > 0 && entry + 12 <= end; entry += 12, left -= 1) {
    if (view.getUint16(entry, isLittle) !== ORIENTATION_TAG) continue;
    const value = view.getUint16(entry + 8, isLittle);
    return value >= 1 && value <= 8 ? value : UPRIGHT;
  }
  return UPRIGHT;
}

/**
 * The boxes that lead to the description of the pictures, with the bytes before their inner boxes.
 */
const AVIF_PATH: Map<number, number> = new Map([
  [chunkType("meta"), 4],
  [chunkType("iprp"), 0],
  [chunkType("ipco"), 0],
]);

const ISPE = chunkType("ispe");
const ISPE_BYTES = 20;

/** Returns the largest picture of the file: thumbnails and alpha layers are never larger. */
function* readAvif(): ReturnType<Reader> {
  let largest = NONE;
  let start = 0;
  let view = yield start;
  let at = 0;
  let end = Number.POSITIVE_INFINITY;
  for (let steps = 0; steps < MAX_CHUNKS; steps += 1) {
    if (at + ISPE_BYTES > view.byteLength) {
      start += at;
      end -= at;
      at = 0;
      view = yield start;
    }
    if (at + 8 > Math.min(end, view.byteLength)) return largest;
    const size = view.getUint32(at);
    const kind = view.getUint32(at + 4);
    // Only picture data, which comes later, has a size of 64 bits or up to the end of the file.
    if (size < 8) return largest;
    const before = AVIF_PATH.get(kind);
    if (before !== undefined) {
      end = Math.min(end, at + size);
      at += 8 + before;
      continue;
    }
    if (kind === ISPE) {
      const [width, height] = [view.getUint32(at + 12), view.getUint32(at + 16)];
      if (width * height > largest.width * largest.height) largest = { width, height };
    }
    at += size;
  }
  return NONE;
}
