/**
 * Images for tests: real ones made with sharp, and ones built by hand whose header promises more
 * than a test could hold.
 */

import { deflateSync } from "node:zlib";
import sharp from "sharp";

export interface Rgb {
  readonly r: number;
  readonly g: number;
  readonly b: number;
}

const RED = { r: 220, g: 30, b: 30 };

/** One colour. */
export const plain = (width: number, height: number, background: Rgb = RED) =>
  sharp({ create: { width, height, channels: 3, background } });

/** A colour in each corner: red, green, blue and white, clockwise from the upper left. */
const QUARTERS: readonly Rgb[] = [
  { r: 255, g: 0, b: 0 },
  { r: 0, g: 255, b: 0 },
  { r: 0, g: 0, b: 255 },
  { r: 255, g: 255, b: 255 },
];

export async function quartered(width: number, height: number): Promise<Buffer> {
  const pixels = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const isRight = x >= width / 2;
      const corner = y < height / 2 ? (isRight ? 1 : 0) : isRight ? 2 : 3;
      const { r, g, b } = QUARTERS[corner] as Rgb;
      pixels.set([r, g, b], (y * width + x) * 3);
    }
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();
}

/**
 * Index in {@link QUARTERS} of the colours in the corners of an image, clockwise from the upper
 * left, as it is stored.
 */
export async function corners(bytes: Uint8Array): Promise<readonly number[]> {
  const { data, info } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  const at = (x: number, y: number): number => {
    const [r = 0, g = 0, b = 0] = data.subarray((y * width + x) * channels);
    const distances = QUARTERS.map((other) => Math.hypot(r - other.r, g - other.g, b - other.b));
    return distances.indexOf(Math.min(...distances));
  };
  const [right, bottom] = [width - 1, height - 1];
  return [at(0, 0), at(right, 0), at(right, bottom), at(0, bottom)];
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (CRC[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

export function pngChunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  return Buffer.concat([uint32(data.length), body, uint32(crc32(body))]);
}

/**
 * A grey PNG of one bit a pixel, all black, with `extra` chunks before the picture: 14,000 × 14,000
 * pixels take 25 kB.
 */
export function pngOf(width: number, height: number, ...extra: readonly Buffer[]): Buffer {
  const header = Buffer.concat([uint32(width), uint32(height), Buffer.from([1, 0, 0, 0, 0])]);
  const rows = Buffer.alloc((Math.ceil(width / 8) + 1) * height);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    pngChunk("IHDR", header),
    ...extra,
    pngChunk("IDAT", deflateSync(rows)),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A JPEG of the size `width` × `height` in its header, whatever picture follows. */
export async function jpegClaiming(width: number, height: number): Promise<Buffer> {
  const bytes = await plain(64, 48).jpeg().toBuffer();
  const at = bytes.indexOf(Buffer.from([0xff, 0xc0]));
  bytes.writeUInt16BE(height, at + 5);
  bytes.writeUInt16BE(width, at + 7);
  return bytes;
}

/** A JPEG with `length` bytes or more of metadata before what tells its size. */
export function withMetadata(jpeg: Buffer, length: number): Buffer {
  const segment = Buffer.alloc(65_537);
  segment.set([0xff, 0xed, 0xff, 0xff]);
  const segments = Array.from({ length: Math.ceil(length / segment.length) }, () => segment);
  return Buffer.concat([jpeg.subarray(0, 2), ...segments, jpeg.subarray(2)]);
}

/** A GIF of `frames` equal pictures of `width` × `height` pixels. */
export async function gifOf(frames: number, width: number, height = width): Promise<Buffer> {
  const one = await plain(width, height).gif().toBuffer();
  const palette = (one[10] as number) & 0x80 ? 3 << (((one[10] as number) & 7) + 1) : 0;
  const start = 13 + palette;
  const head = one.subarray(0, start);
  const picture = one.subarray(start, one.length - 1);
  return Buffer.concat([head, ...Array.from({ length: frames }, () => picture), Buffer.from([0x3b])]);
}

/** A WebP of two pictures of `side` × `side` pixels. */
export async function movingWebp(side: number): Promise<Buffer> {
  const pictures = [plain(side, side), plain(side, side, { r: 0, g: 0, b: 255 })];
  const encoded = await Promise.all(pictures.map((picture) => picture.png().toBuffer()));
  return sharp(encoded, { join: { animated: true } })
    .webp()
    .toBuffer();
}

/**
 * A file of `length` bytes that says it is 300 × 300 pixels large, where its form does at the
 * beginning, and consists of the smallest chunks that its form allows.
 */
export function smallestChunks(format: "png" | "webp" | "gif" | "avif" | "jpeg", length: number): Buffer {
  const filled = (head: readonly (string | Buffer)[], chunk: string): Buffer => {
    const begin = Buffer.concat(
      head.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)),
    );
    return Buffer.concat([begin, Buffer.alloc(length - begin.length, chunk, "latin1")]);
  };
  const box = (kind: string, inside: number): Buffer =>
    Buffer.concat([uint32(inside), Buffer.from(kind, "latin1")]);
  switch (format) {
    case "png": {
      const header = Buffer.concat([uint32(300), uint32(300), Buffer.from([1, 0, 0, 0, 0])]);
      return filled(["\x89PNG\r\n\x1a\n", pngChunk("IHDR", header)], "\0\0\0\0tEXt\0\0\0\0");
    }
    case "webp":
      return filled(["RIFF\xf8\x89\xf7\x01WEBPVP8X\x0a\0\0\0\0\0\0\0\x2b\x01\0\x2b\x01\0"], "ABCD\0\0\0\0");
    case "gif":
      // One picture of blocks of a byte each.
      return filled(["GIF89a\x2c\x01\x2c\x01\0\0\0\x2c\0\0\0\0\x2c\x01\x2c\x01\0\x08"], "\x01\x01");
    case "avif": {
      const size = Buffer.concat([box("ispe", 20), uint32(0), uint32(300), uint32(300)]);
      const path = [box("meta", length - 16), uint32(0), box("iprp", length - 28), box("ipco", length - 36)];
      return filled([box("ftyp", 16), "avif\0\0\0\0", ...path, size], "\0\0\0\x08free");
    }
    case "jpeg":
      return filled(["\xff\xd8"], "\xff");
  }
}
