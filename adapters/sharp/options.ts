/**
 * Every option of `sharpImages`: its type for hosts, and the one table of defaults and ranges that
 * it is read by.
 */

import { wholeNumber } from "../../src/core/options.js";

export const sharpImagesOptions = {
  maxPixels: wholeNumber("pixels", 50_000_000, { min: 1, max: 268_402_689 }),
  maxAvifPixels: wholeNumber("pixels", 8_000_000, { min: 1, max: 268_402_689 }),
  maxFrames: wholeNumber("count", 1_000, { min: 1 }),
  concurrency: wholeNumber("count", 2, { min: 1, max: 64 }),
  maxWaiting: wholeNumber("count", 32, { min: 0 }),
  timeoutSeconds: wholeNumber("seconds", 30, { min: 1, max: 3_600 }),
};

/** The options of {@link sharpImages}. */
export interface SharpImagesOptions {
  /**
   * Most pixels of an image that is decoded or made, judged by its header. A pixel takes up to four
   * bytes of memory while it is worked on. Default: 50 million.
   */
  readonly maxPixels?: number | undefined;
  /**
   * Most pixels of an AVIF image that is made. Its encoder cannot be stopped: a pass of it that
   * began in time ends, at about 4 million pixels of noise a second. Default: 8 million.
   */
  readonly maxAvifPixels?: number | undefined;
  /** Most frames of an animated image; only the first one is resized. Default: 1000. */
  readonly maxFrames?: number | undefined;
  /** Images worked on at a time. Default: 2. */
  readonly concurrency?: number | undefined;
  /** Images that may wait for their turn; more are refused. Default: 32. */
  readonly maxWaiting?: number | undefined;
  /**
   * For one image, with all that is made of it, once it has its turn. The encoder of AVIF may take
   * longer to end what it has begun: see `maxAvifPixels`. Default: 30.
   */
  readonly timeoutSeconds?: number | undefined;
}
