/** How large an image is, read from the bytes it begins with and from nothing else; no pixel is decoded. Pure. */

export interface ImageSize {
  /** In pixels, as it is shown: an image that its EXIF data turns on its side is turned. */
  readonly width: number;
  readonly height: number;
  /** As EXIF numbers it, 1 to 8; 1: as it is stored. */
  readonly orientation: number;
}

const UPRIGHT = 1;
/** The most that any of the forms can mean. */
const MAX_SIDE = 2 ** 31 - 1;

/**
 * `undefined` where the bytes do not say it: they break off before, contradict the form, or say 0.
 *
 * Guarantee: reads nothing beyond `head`, in time linear in its length, whatever is in it.
 */
export function imageSize(mimeType: string, head: Uint8Array): ImageSize | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  try {
    const { width, height, orientation = UPRIGHT } = READERS.get(mimeType)?.(view) ?? NONE;
    if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) return undefined;
    return orientation > 4 ? { width: height, height: width, orientation } : { width, height, orientation };
  } catch (error) {
    // A DataView throws where a read would pass its end.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

interface Stored {
  readonly width: number;
  readonly height: number;
  readonly orientation?: number;
}

const NONE: Stored = { width: 0, height: 0 };

const fourCharacters = (view: DataView, at: number): string =>
  String.fromCharCode(view.getUint8(at), view.getUint8(at + 1), view.getUint8(at + 2), view.getUint8(at + 3));

const READERS: ReadonlyMap<string, (view: DataView) => Stored> = new Map([
  ["image/png", readPng],
  ["image/gif", (view) => ({ width: view.getUint16(6, true), height: view.getUint16(8, true) })],
  ["image/webp", readWebp],
  ["image/jpeg", readJpeg],
  ["image/avif", readAvif],
]);

function readPng(view: DataView): Stored {
  if (fourCharacters(view, 12) !== "IHDR") return NONE;
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

const uint24 = (view: DataView, at: number): number =>
  view.getUint16(at, true) | (view.getUint8(at + 2) << 16);

function readWebp(view: DataView): Stored {
  const kind = fourCharacters(view, 12);
  if (kind === "VP8X") return { width: uint24(view, 24) + 1, height: uint24(view, 27) + 1 };
  if (kind === "VP8L" && view.getUint8(20) === 0x2f) {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  // The start code of a key frame.
  if (kind !== "VP8 " || view.getUint8(23) !== 0x9d || view.getUint16(24) !== 0x012a) return NONE;
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
}

/** Walks from segment to segment; each is at least four bytes further. */
function readJpeg(view: DataView): Stored {
  let orientation = UPRIGHT;
  let at = 2;
  for (;;) {
    if (view.getUint8(at) !== 0xff) return NONE;
    const marker = view.getUint8(at + 1);
    // Any number of bytes 0xff may fill the place before a marker.
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const isStandalone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (isStandalone) {
      at += 2;
      continue;
    }
    // The picture itself begins, or ends, without a frame header before it.
    if (marker === 0xda || marker === 0xd9) return NONE;
    const length = view.getUint16(at + 2);
    if (length < 2) return NONE;
    if (isFrameHeader(marker)) {
      return { height: view.getUint16(at + 5), width: view.getUint16(at + 7), orientation };
    }
    if (marker === 0xe1 && length > 16 && fourCharacters(view, at + 4) === "Exif") {
      orientation = exifOrientation(view, at + 10, at + 2 + length);
    }
    at += 2 + length;
  }
}

const isFrameHeader = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

const ORIENTATION_TAG = 0x0112;

/** From the first directory of a TIFF structure between `start` and `end`; 1 where it is missing or broken, since the picture can be shown nevertheless. */
function exifOrientation(view: DataView, start: number, end: number): number {
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

/** The boxes that lead to what describes the pictures, and how many bytes each has before its first inner box. */
const AVIF_PATH: ReadonlyMap<string, number> = new Map([
  ["meta", 4],
  ["iprp", 0],
  ["ipco", 0],
]);

/** The largest picture in the file: thumbnails and layers of transparency are no larger than the picture itself. */
function readAvif(view: DataView): Stored {
  let largest = NONE;
  let at = 0;
  let end = view.byteLength;
  while (at + 8 <= end) {
    const size = view.getUint32(at);
    const kind = fourCharacters(view, at + 4);
    // Sizes of 64 bits and to the end of the file occur with picture data only, which comes behind.
    if (size < 8) break;
    const before = AVIF_PATH.get(kind);
    if (before !== undefined) {
      end = Math.min(end, at + size);
      at += 8 + before;
      continue;
    }
    if (kind === "ispe") {
      const [width, height] = [view.getUint32(at + 12), view.getUint32(at + 16)];
      if (width * height > largest.width * largest.height) largest = { width, height };
    }
    at += size;
  }
  return largest;
}
