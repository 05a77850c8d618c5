/**
 * Works on images with sharp, which the host installs: decoding and encoding run in its threads.
 */

import type { OutputInfo, Sharp, SharpOptions } from "sharp";
import type { PixelSize } from "../../src/content/media/image-edits.js";
import { frameCount } from "../../src/content/media/image-frames.js";
import { type ImageSize, imageSize } from "../../src/content/media/image-size.js";
import type { ImageRefusal, ImageSource, ImageTool, MadeImage } from "../../src/content/media/image-tool.js";
import { systemClock } from "../../src/core/clock.js";
import { createConcurrencyLimit } from "../../src/core/concurrency-limit.js";
import { importFromPackage } from "../../src/core/import-package.js";
import { readOptions, wholeNumber } from "../../src/core/options.js";
import { planStages, type Stage } from "./stages.js";

type MakeSharp = (input: Uint8Array, options: SharpOptions) => Sharp;

/** As WordPress encodes them, but for AVIF, whose numbers mean something else. */
const QUALITY = { jpeg: 82, webp: 86, avif: 55 } as const;
/**
 * More takes many times as long for a few per cent of the bytes: of eight million pixels of noise
 * 15 s rather than 2 s.
 */
const AVIF_EFFORT = 0;

const TRANSPARENT = { r: 0, g: 0, b: 0, alpha: 0 };
const WHITE = { r: 255, g: 255, b: 255, alpha: 1 };

/**
 * A tool for the option `images` of `createContent`. Needs the package `sharp` beside this one; it
 * is loaded with the first image.
 *
 * Errors: `invalid_option` for an unknown or unusable option, and, with the first image, where
 * `sharp` is missing.
 */
export function sharpImages(options: SharpImagesOptions = {}): ImageTool {
  const settings = readOptions("sharpImages", sharpImagesOptions, options);
  const { maxPixels, maxAvifPixels, maxFrames, concurrency, maxWaiting, timeoutMs } = settings;
  const turns = createConcurrencyLimit({ running: concurrency, waiting: maxWaiting });
  let loading: Promise<MakeSharp> | undefined;

  const input: SharpOptions = {
    limitInputPixels: maxPixels,
    failOn: "error",
    pages: 1,
    sequentialRead: true,
  };

  const isTooLarge = (mimeType: string, { width, height }: PixelSize): boolean =>
    width * height > (mimeType === "image/avif" ? Math.min(maxPixels, maxAvifPixels) : maxPixels);

  /** Reads and checks the image when it is its turn; `work` decodes it. */
  async function inTurn<T>(
    { mimeType, read }: ImageSource,
    work: (image: CheckedImage) => Promise<T | ImageRefusal>,
    mayMove: boolean,
  ): Promise<T | ImageRefusal> {
    loading ??= loadSharp();
    const makeSharp = await loading;
    const done = await turns.run(async (): Promise<T | ImageRefusal> => {
      const bytes = await read();
      const size = imageSize(mimeType, bytes);
      if (size === undefined) return "unreadable";
      if (pixelsOf(size) > maxPixels) return "too_large";
      const max = mayMove ? maxFrames : 1;
      const frames = frameCount(mimeType, bytes, max);
      if (frames > max) return mayMove || frames === Number.POSITIVE_INFINITY ? "too_large" : "animated";
      const deadline = systemClock.monotonic() + timeoutMs;
      try {
        return await work({ bytes, size, mimeType, makeSharp, deadline });
      } catch (error) {
        // sharp throws a plain `Error` for hostile bytes. These two are programming errors and must
        // be reported.
        if (error instanceof TypeError || error instanceof ReferenceError) throw error;
        // For AVIF the message says so in a later line.
        return error instanceof Error && /^timeout/im.test(error.message) ? "too_slow" : "unreadable";
      }
    });
    return done ?? "busy";
  }

  return Object.freeze<ImageTool>({
    maxPixels,
    resize: (source, wanted) =>
      inTurn(
        source,
        async ({ bytes, mimeType, makeSharp, deadline }) => {
          if (wanted.some((version) => isTooLarge(mimeType, version))) return "too_large";
          const made: MadeImage[] = [];
          for (const { width, height } of wanted) {
            const image = makeSharp(bytes, input);
            // The header was read for JPEG alone: what another form says of its orientation is not
            // followed.
            const upright = mimeType === "image/jpeg" ? image.autoOrient() : image;
            made.push(await encoded(upright.resize(width, height, { fit: "cover" }), mimeType, deadline));
          }
          return made;
        },
        true,
      ),
    edit: (source, operations) =>
      inTurn(
        source,
        async ({ bytes, size, mimeType, makeSharp, deadline }) => {
          const stages = planStages(operations, { size: storedSize(size), orientation: size.orientation });
          // Whoever planned the operations may have known another size than the one that the file
          // tells.
          if (stages.some((stage) => pixelsOf(stage.size) > maxPixels)) return "too_large";
          const last = stages.at(-1)?.size;
          if (last !== undefined && isTooLarge(mimeType, last)) return "too_large";
          const background = mimeType === "image/jpeg" ? WHITE : TRANSPARENT;
          let image = makeSharp(bytes, input);
          for (const [at, stage] of stages.entries()) {
            image = staged(image, stage, background);
            if (at === stages.length - 1) break;
            const { data, info } = await inTime(image.raw(), deadline);
            const { width, height, channels } = info;
            image = makeSharp(data, { ...input, raw: { width, height, channels } });
          }
          return encoded(image, mimeType, deadline);
        },
        false,
      ),
  });
}

interface CheckedImage {
  bytes: Uint8Array;
  mimeType: string;
  size: ImageSize;
  makeSharp: MakeSharp;
  /** Monotonic ms. */
  deadline: number;
}

async function encoded(image: Sharp, mimeType: string, deadline: number): Promise<MadeImage> {
  const { data, info } = await inTime(inFormat(image, mimeType), deadline);
  return { bytes: data, width: info.width, height: info.height };
}

/** Sharp takes whole seconds, and cannot stop every encoder: no pass begins after the deadline. */
async function inTime(image: Sharp, deadline: number): Promise<{ data: Buffer; info: OutputInfo }> {
  const left = deadline - systemClock.monotonic();
  // In the words of sharp.
  if (left <= 0) throw new Error("timeout: the passes before took all the time");
  return image.timeout({ seconds: Math.ceil(left / 1_000) }).toBuffer({ resolveWithObject: true });
}

const pixelsOf = ({ width, height }: PixelSize): number => width * height;

/** Before its orientation turns it upright. */
const storedSize = ({ width, height, orientation }: ImageSize): PixelSize =>
  orientation > 4 ? { width: height, height: width } : { width, height };

function staged(image: Sharp, { crop, isMirrored, quarterTurns, degrees }: Stage, background: object): Sharp {
  const cropped = crop === undefined ? image : image.extract({ ...crop });
  const mirrored = isMirrored ? cropped.flop() : cropped;
  if (degrees !== 0) return mirrored.rotate(degrees, { background });
  return quarterTurns === 0 ? mirrored : mirrored.rotate(quarterTurns * 90);
}

function inFormat(image: Sharp, mimeType: string): Sharp {
  switch (mimeType) {
    case "image/jpeg":
      return image.jpeg({ quality: QUALITY.jpeg });
    case "image/webp":
      return image.webp({ quality: QUALITY.webp });
    case "image/avif":
      return image.avif({ quality: QUALITY.avif, effort: AVIF_EFFORT });
    case "image/gif":
      return image.gif();
    default:
      return image.png();
  }
}

const loadSharp = (): Promise<MakeSharp> =>
  importFromPackage(() => import("sharp"), "default", {
    message: "sharpImages needs the package sharp: npm install sharp.",
    field: "images",
  });

// Every option of `sharpImages`: its type for hosts, and the one table of defaults and ranges that
// it is read by.

export const sharpImagesOptions = {
  maxPixels: wholeNumber("pixels", 50_000_000, { min: 1, max: 268_402_689 }),
  maxAvifPixels: wholeNumber("pixels", 8_000_000, { min: 1, max: 268_402_689 }),
  maxFrames: wholeNumber("count", 1_000, { min: 1 }),
  concurrency: wholeNumber("count", 2, { min: 1, max: 64 }),
  maxWaiting: wholeNumber("count", 32, { min: 0 }),
  timeoutMs: wholeNumber("ms", 30_000, { min: 1, max: 3_600_000 }),
};

/** The options of {@link sharpImages}. */
export interface SharpImagesOptions {
  /**
   * Larger images are refused at upload by their header; each pixel takes up to four bytes
   * of memory. Default: 50 million.
   */
  maxPixels?: number | undefined;
  /**
   * Largest AVIF image that is created; its encoder cannot be interrupted, at about four million
   * pixels per second. Default: 8 million.
   */
  maxAvifPixels?: number | undefined;
  /** An animated image with more frames gets no smaller versions. Default: 1000. */
  maxFrames?: number | undefined;
  /** Images processed at the same time. Default: 2. */
  concurrency?: number | undefined;
  /**
   * Images waiting to be processed; beyond it, uploads are stored without smaller versions, and
   * edits get 503. Default: 32.
   */
  maxWaiting?: number | undefined;
  /**
   * Time limit of one image with all its versions; AVIF may take longer, see `maxAvifPixels`.
   * Default: 30 000, at most an hour.
   */
  timeoutMs?: number | undefined;
}
