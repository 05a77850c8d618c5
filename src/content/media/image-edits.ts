/** Plans the edits of an image: turns a client's percentages into operations on pixels. Pure. */

export type Modifier =
  | { type: "rotate"; args: { angle: number } }
  | { type: "crop"; args: Area }
  | {
      type: "flip";
      args: { flip: { horizontal: boolean; vertical: boolean } };
    };

/** A rectangle in an image, in pixels from its upper left corner. */
export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** One step of an edit, in pixels. Steps are applied in the order of their list. */
export type PixelOperation =
  /** Lies inside the image that the earlier operations leave, and has at least one pixel. */
  | ({ readonly kind: "crop" } & Area)
  /** Clockwise, above 0 and below 360. Other than quarter turns enlarge the image to fit. */
  | { readonly kind: "rotate"; readonly degrees: number }
  /** `horizontal` swaps left and right. */
  | { readonly kind: "flip"; readonly horizontal: boolean; readonly vertical: boolean };

/** In pixels. */
export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

export type PlannedEdits =
  | { ok: true; operations: PixelOperation[]; size: PixelSize }
  | { ok: false; code: string; message: string };

const MAX_MODIFIERS = 10;
/** Ten full turns. */
const MAX_DEGREES = 3_600;

const refused = (code: string, message: string): PlannedEdits => ({ ok: false, code, message });

/**
 * Returns the operations on an upright image of this size, and its size afterwards. As in
 * WordPress, a crop is the part of its area that lies in the image, and modifiers without effect
 * are dropped. Refuses more than ten modifiers, an angle beyond 3600 degrees, a crop that has no
 * pixel in the image, and a rotation whose result has more than `maxPixels`.
 */
export function planEdits(
  modifiers: readonly Modifier[],
  { width, height }: PixelSize,
  maxPixels: number,
): PlannedEdits {
  if (modifiers.length > MAX_MODIFIERS) {
    return refused("rest_too_many_items", `At most ${MAX_MODIFIERS} modifiers are applied at once.`);
  }
  const operations: PixelOperation[] = [];
  let size: PixelSize = { width, height };
  for (const modifier of modifiers) {
    const step = planStep(modifier, size, maxPixels);
    if (!step.ok) return step;
    operations.push(...step.operations);
    size = step.size;
  }
  return { ok: true, operations, size };
}

function planStep(modifier: Modifier, size: PixelSize, maxPixels: number): PlannedEdits {
  if (modifier.type === "crop") return planCrop(modifier.args, size);
  if (modifier.type === "rotate") return planRotation(modifier.args.angle, size, maxPixels);
  const { horizontal, vertical } = modifier.args.flip;
  const operations: PixelOperation[] = horizontal || vertical ? [{ kind: "flip", horizontal, vertical }] : [];
  return { ok: true, operations, size };
}

function planCrop(percentages: Area, size: PixelSize): PlannedEdits {
  const area = toPixelArea(percentages, size);
  if (area === undefined) {
    return refused("rest_image_crop_failed", "Unable to crop this image: nothing of it would be left.");
  }
  const { width, height } = area;
  if (width === size.width && height === size.height) return { ok: true, operations: [], size };
  return { ok: true, operations: [{ kind: "crop", ...area }], size: { width, height } };
}

function planRotation(angle: number, size: PixelSize, maxPixels: number): PlannedEdits {
  if (!(Math.abs(angle) <= MAX_DEGREES)) {
    return refused("rest_image_rotation_failed", "Unable to rotate this image by this angle.");
  }
  const degrees = ((angle % 360) + 360) % 360;
  if (degrees === 0) return { ok: true, operations: [], size };
  const rotated = rotateSize(size, degrees);
  if (degrees % 90 !== 0 && rotated.width * rotated.height > maxPixels) {
    return refused("rest_image_rotation_failed", "Unable to rotate this image: it would be too large.");
  }
  return { ok: true, operations: [{ kind: "rotate", degrees }], size: rotated };
}

function toPixelArea({ left, top, width, height }: Area, size: PixelSize): Area | undefined {
  const across = toPixelSpan(left, width, size.width);
  const down = toPixelSpan(top, height, size.height);
  if (across === undefined || down === undefined) return undefined;
  return { left: across.start, top: down.start, width: across.length, height: down.length };
}

function toPixelSpan(
  startPercent: number,
  lengthPercent: number,
  pixels: number,
): { start: number; length: number } | undefined {
  const wanted = Math.round((pixels * startPercent) / 100);
  const start = Math.max(wanted, 0);
  const length = Math.min(wanted + Math.round((pixels * lengthPercent) / 100), pixels) - start;
  return length >= 1 ? { start, length } : undefined;
}

/** Returns the size of the upright rectangle that holds an image rotated by `degrees`. */
export function rotateSize({ width, height }: PixelSize, degrees: number): PixelSize {
  if (degrees % 180 === 0) return { width, height };
  if (degrees % 90 === 0) return { width: height, height: width };
  const angle = (degrees * Math.PI) / 180;
  const [cosine, sine] = [Math.abs(Math.cos(angle)), Math.abs(Math.sin(angle))];
  return {
    width: Math.max(1, Math.round(width * cosine + height * sine)),
    height: Math.max(1, Math.round(width * sine + height * cosine)),
  };
}
