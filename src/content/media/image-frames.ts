/**
 * Detects animated images and counts their frames from the structure of the file, without decoding
 * a pixel. Pure.
 */

import { chunkType, MAX_CHUNKS } from "./image-size.js";

const [AVIS, ANMF, ACTL, IDAT] = [chunkType("avis"), chunkType("ANMF"), chunkType("acTL"), chunkType("IDAT")];

/**
 * 1 for an image that stands still, or that breaks off. Frames of AVIF are not counted: 2 stands
 * for any number of them. Counts no further than the first frame beyond `max`; infinite for a file
 * of more than a million chunks, which no honest one has.
 *
 * Guarantee: linear in the length of `bytes`, and at most a million steps.
 */
export function frameCount(mimeType: string, bytes: Uint8Array, max = Number.POSITIVE_INFINITY): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    switch (mimeType) {
      case "image/gif":
        return gifFrames(view, max);
      case "image/webp":
        return webpFrames(view, max);
      case "image/png":
        return pngFrames(view);
      case "image/avif":
        return view.getUint32(8) === AVIS ? 2 : 1;
      default:
        return 1;
    }
  } catch (error) {
    // A DataView throws where a read would pass its end.
    if (error instanceof RangeError) return 1;
    throw error;
  }
}

function webpFrames(view: DataView, max: number): number {
  let count = 0;
  let steps = 0;
  for (let at = 12; at + 8 <= view.byteLength && count <= max; steps += 1) {
    if (steps === MAX_CHUNKS) return Number.POSITIVE_INFINITY;
    if (view.getUint32(at) === ANMF) count += 1;
    const length = view.getUint32(at + 4, true);
    at += 8 + length + (length % 2);
  }
  return Math.max(1, count);
}

/** The chunk that announces an animation stands before the picture. */
function pngFrames(view: DataView): number {
  let steps = 0;
  for (let at = 8; at + 12 <= view.byteLength; steps += 1) {
    if (steps === MAX_CHUNKS) return Number.POSITIVE_INFINITY;
    const kind = view.getUint32(at + 4);
    if (kind === ACTL) return Math.max(1, view.getUint32(at + 8));
    if (kind === IDAT) return 1;
    at += 12 + view.getUint32(at);
  }
  return 1;
}

const EXTENSION = 0x21;
const IMAGE = 0x2c;

const paletteBytes = (packed: number): number => ((packed & 0x80) === 0 ? 0 : 3 << ((packed & 7) + 1));

function gifFrames(view: DataView, max: number): number {
  let count = 0;
  let steps = 0;
  let at = 13 + paletteBytes(view.getUint8(10));
  /**
   * Over the blocks of data that begin at `at`; each says how long it is, and an empty one ends
   * them.
   */
  const skipData = (): void => {
    for (let length = 1; length > 0 && steps < MAX_CHUNKS; steps += 1) {
      length = view.getUint8(at);
      at += 1 + length;
    }
  };
  try {
    while (count <= max) {
      if (steps === MAX_CHUNKS) return Number.POSITIVE_INFINITY;
      const kind = view.getUint8(at);
      if (kind === EXTENSION) at += 2;
      else if (kind === IMAGE) {
        count += 1;
        at += 11 + paletteBytes(view.getUint8(at + 9));
      } else break;
      skipData();
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return Math.max(1, count);
}
