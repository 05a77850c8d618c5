/** The port to what decodes and encodes images. Knows no record, no file name and no request. */

import type { PixelOperation } from "./image-edits.js";

/** An image that is stored, and how to read it. */
export interface ImageSource {
  readonly mimeType: string;
  /** Called once at most, and only when there is room for the image in memory. */
  readonly read: () => Promise<Uint8Array>;
}

/**
 * A version that fills `width` and `height` exactly: scaled, and cut around its centre where the
 * proportions differ. In pixels.
 */
export interface WantedImage {
  readonly width: number;
  readonly height: number;
}

/** Encoded in the type of its source, upright, without metadata. */
export interface MadeImage {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/**
 * Why no image was made: others wait already; it moves; it has more pixels or frames than are
 * decoded; its bytes are no image; it took too long. Each is told before the first pixel is
 * decoded, but for the last two.
 */
export type ImageRefusal = "busy" | "animated" | "too_large" | "unreadable" | "too_slow";

/**
 * Works on images of the types JPEG, PNG, GIF, WebP and AVIF, off the thread of the event loop, a
 * few at a time. Postbell ships one: `sharpImages`.
 *
 * Its input is untrusted: the tool checks pixels and frames by the header before it decodes, and
 * bounds memory and time.
 */
export interface ImageTool {
  /** Most pixels of an image that is decoded or made. */
  readonly maxPixels: number;
  /**
   * Versions in the order of `wanted`; of an image that moves its first frame. EXIF orientation is
   * applied.
   */
  readonly resize: (source: ImageSource, wanted: WantedImage[]) => Promise<MadeImage[] | ImageRefusal>;
  /**
   * Applies EXIF orientation, then `operations` one after the other. An image that moves is
   * refused.
   */
  readonly edit: (source: ImageSource, operations: PixelOperation[]) => Promise<MadeImage | ImageRefusal>;
}
