/** What becomes of an image that a client edits: from percentages of it to pixels. Pure. */

export type Modifier =
  | { readonly type: "rotate"; readonly args: { readonly angle: number } }
  | { readonly type: "crop"; readonly args: Area }
  | {
      readonly type: "flip";
      readonly args: { readonly flip: { readonly horizontal: boolean; readonly vertical: boolean } };
    };

/** A rectangle in an image, in pixels from its upper left corner. */
export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** One step of an edit, in pixels; steps are done in the order of their list. */
export type PixelOperation =
  /** Lies inside the image that the operations before have left, and has at least one pixel. */
  | ({ readonly kind: "crop" } & Area)
  /** Clockwise, above 0 and below 360. An image that is not turned by quarters grows to what holds it. */
  | { readonly kind: "rotate"; readonly degrees: number }
  /** `horizontal`: left and right change places. */
  | { readonly kind: "flip"; readonly horizontal: boolean; readonly vertical: boolean };

/** In pixels. */
export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

export type PlannedEdits =
  | { readonly ok: true; readonly operations: readonly PixelOperation[]; readonly size: PixelSize }
  | { readonly ok: false; readonly code: string; readonly message: string };

const MAX_MODIFIERS = 10;
/** Ten turns. */
const MAX_DEGREES = 3_600;

const refused = (code: string, message: string): PlannedEdits => ({ ok: false, code, message });

/**
 * The operations on an upright image of `size`, and how large it is afterwards. As in the reference a crop that reaches beyond the image ends at its edge, and
 * what changes nothing is left out. Refused: more than ten modifiers, an angle beyond 3600 degrees, a crop that begins outside or has no pixel, and a
 * rotation whose result has more than `maxPixels`.
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
  for (const { type, args } of modifiers) {
    if (type === "crop") {
      const area = croppedArea(args, size);
      if (area === undefined) {
        return refused("rest_image_crop_failed", "Unable to crop this image: nothing of it would be left.");
      }
      if (area.width === size.width && area.height === size.height) continue;
      operations.push({ kind: "crop", ...area });
      size = { width: area.width, height: area.height };
    } else if (type === "flip") {
      const { horizontal, vertical } = args.flip;
      if (horizontal || vertical) operations.push({ kind: "flip", horizontal, vertical });
    } else {
      if (!(Math.abs(args.angle) <= MAX_DEGREES)) {
        return refused("rest_image_rotation_failed", "Unable to rotate this image by this angle.");
      }
      const degrees = ((args.angle % 360) + 360) % 360;
      if (degrees === 0) continue;
      size = rotateSize(size, degrees);
      if (degrees % 90 !== 0 && size.width * size.height > maxPixels) {
        return refused("rest_image_rotation_failed", "Unable to rotate this image: it would be too large.");
      }
      operations.push({ kind: "rotate", degrees });
    }
  }
  return { ok: true, operations, size };
}

function croppedArea({ left, top, width, height }: Area, size: PixelSize): Area | undefined {
  const across = croppedSpan(left, width, size.width);
  const down = croppedSpan(top, height, size.height);
  if (across === undefined || down === undefined) return undefined;
  return { left: across.start, top: down.start, width: across.length, height: down.length };
}

function croppedSpan(
  startPercent: number,
  lengthPercent: number,
  pixels: number,
): { readonly start: number; readonly length: number } | undefined {
  const start = Math.round((pixels * startPercent) / 100);
  const length = Math.min(Math.round((pixels * lengthPercent) / 100), pixels - start);
  return start >= 0 && startPercent >= 0 && length >= 1 ? { start, length } : undefined;
}

/** How large the upright rectangle is that holds an image turned by `degrees`. */
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
