/** The smaller versions of an uploaded image that a site stores: WordPress's sizes. Pure. */

import type { MediaFile } from "../records/records.js";
import type { PixelSize } from "./image-edits.js";
import type { WantedImage } from "./image-tool.js";

interface SizeRule {
  width: number;
  /** `Infinity` sets no limit. */
  height: number;
  /** True if the image is cropped to fill the size, instead of scaled to fit into it. */
  isCut?: true;
}

const SIZES: { [name: string]: SizeRule } = {
  thumbnail: { width: 150, height: 150, isCut: true },
  medium: { width: 300, height: 300 },
  medium_large: { width: 768, height: Number.POSITIVE_INFINITY },
  large: { width: 1_024, height: 1_024 },
  "1536x1536": { width: 1_536, height: 1_536 },
  "2048x2048": { width: 2_048, height: 2_048 },
};

/** Sides beyond this are not shown: the image is replaced by a version within it. */
const SHOWN_SIDE = 2_560;

/** The types that WordPress replaces. Only the uploader knows which of them are animated. */
const REPLACEABLE: Set<string> = new Set([
  "image/jpeg",
  "image/png",
  "image/gif",
  "image/webp",
  "image/avif",
]);

/** An uploaded image as its versions are made from it. */
export interface UploadedImage extends PixelSize {
  name: string;
  bytes: number;
  /**
   * As EXIF numbers it; 1 where left out. Width and height are those of the image as it is shown.
   */
  orientation?: number;
}

export interface WantedSize extends WantedImage {
  size: string;
}

/** Returns the image as uploaded, even if a scaled or rotated version is shown instead. */
export const uploadedImage = (file: MediaFile): UploadedImage => file.original ?? file;

/**
 * The sizes that `file` should have and has not, from small to large. None for what is no image, or
 * of unknown dimensions.
 */
export function missingSizes(file: MediaFile): WantedSize[] {
  const image = uploadedImage(file);
  return Object.entries(SIZES).flatMap(([size, rule]) => {
    if (Object.hasOwn(file.sizes, size)) return [];
    const wanted = rule.isCut ? cut(image, rule) : fitted(image, rule);
    return isSmaller(wanted, image) ? [{ size, ...wanted }] : [];
  });
}

export interface ShownVersion extends WantedImage {
  /** The suffix of its file name. */
  suffix: "scaled" | "rotated";
}

/** Returns the version to show instead of an image that is too large or not upright. */
export function shownVersion(file: MediaFile, mimeType: string): ShownVersion | undefined {
  if (file.original !== undefined || !REPLACEABLE.has(mimeType)) return undefined;
  const { width, height, orientation = 1 } = file;
  if (width === 0 || height === 0) return undefined;
  if (Math.max(width, height) > SHOWN_SIDE) {
    return { suffix: "scaled", ...fitted(file, { width: SHOWN_SIDE, height: SHOWN_SIDE }) };
  }
  return orientation === 1 ? undefined : { suffix: "rotated", width, height };
}

function fitted({ width, height }: PixelSize, within: SizeRule): WantedImage {
  const ratio = Math.min(within.width / width, within.height / height);
  return {
    width: Math.min(within.width, Math.max(1, Math.round(width * ratio))),
    height: Math.min(within.height, Math.max(1, Math.round(height * ratio))),
  };
}

const cut = ({ width, height }: PixelSize, within: SizeRule): WantedImage => ({
  width: Math.min(within.width, width),
  height: Math.min(within.height, height),
});

/** By more than the pixel that rounding may cost. */
const isSmaller = (wanted: WantedImage, { width, height }: PixelSize): boolean =>
  wanted.width <= width &&
  wanted.height <= height &&
  (width - wanted.width > 1 || height - wanted.height > 1);
