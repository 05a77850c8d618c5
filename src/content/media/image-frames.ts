/** Whether an image moves, and in how many frames, read from how its file is built; no pixel is decoded. Pure. */

const FOUR_BYTES = 4;

/**
 * 1 for an image that stands still, or that breaks off. Frames of AVIF are not counted: 2 stands for any number of them.
 *
 * Guarantee: linear in the length of `bytes`; every step of it passes over some.
 */
export function frameCount(mimeType: string, bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    switch (mimeType) {
      case "image/gif":
        return gifFrames(view);
      case "image/webp":
        return Math.max(1, chunks(view, 12, true, "ANMF"));
      case "image/png":
        return pngFrames(view);
      case "image/avif":
        return text(view, 8) === "avis" ? 2 : 1;
      default:
        return 1;
    }
  } catch (error) {
    // A DataView throws where a read would pass its end.
    if (error instanceof RangeError) return 1;
    throw error;
  }
}

const text = (view: DataView, at: number): string =>
  Buffer.from(view.buffer, view.byteOffset + at, FOUR_BYTES).toString("latin1");

/** Chunks of RIFF called `name`. */
function chunks(view: DataView, from: number, isLittle: boolean, name: string): number {
  let count = 0;
  for (let at = from; at + 8 <= view.byteLength; ) {
    if (text(view, at) === name) count += 1;
    const length = view.getUint32(at + FOUR_BYTES, isLittle);
    at += 8 + length + (length % 2);
  }
  return count;
}

/** The chunk that announces an animation stands before the picture. */
function pngFrames(view: DataView): number {
  for (let at = 8; at + 12 <= view.byteLength; ) {
    const kind = text(view, at + FOUR_BYTES);
    if (kind === "acTL") return Math.max(1, view.getUint32(at + 8));
    if (kind === "IDAT") return 1;
    at += 12 + view.getUint32(at);
  }
  return 1;
}

const EXTENSION = 0x21;
const IMAGE = 0x2c;

const paletteBytes = (packed: number): number => ((packed & 0x80) === 0 ? 0 : 3 << ((packed & 7) + 1));

function gifFrames(view: DataView): number {
  let count = 0;
  let at = 13 + paletteBytes(view.getUint8(10));
  /** Over the blocks of data that begin at `at`; each says how long it is, and an empty one ends them. */
  const skipData = (): void => {
    for (let length = view.getUint8(at); length > 0; length = view.getUint8(at)) at += 1 + length;
    at += 1;
  };
  try {
    for (;;) {
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
