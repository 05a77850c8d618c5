/**
 * Puts operations on an image together into as few passes as it takes: all crops, flips and quarter
 * turns in a row are one. Pure.
 */

import type { Area, PixelOperation, PixelSize } from "../src/content/media/image-edits.js";
import { rotateSize } from "../src/content/media/image-edits.js";

/** Applied in this order. */
export interface Stage {
  /** In pixels of what comes in; all of it where left out. */
  readonly crop: Area | undefined;
  /** Left and right change places. */
  readonly isMirrored: boolean;
  /** Clockwise, by 90 degrees each: 0 to 3. */
  readonly quarterTurns: number;
  /** A rotation by any angle, clockwise; 0 for none, and else neither turned nor mirrored. */
  readonly degrees: number;
  /** Of what comes out; by a pixel at most another where it is turned by any angle. */
  readonly size: PixelSize;
}

/**
 * By the numbers of EXIF: whether what is stored is mirrored, and how often it is turned then, to
 * be upright.
 */
const ORIENTATIONS: readonly (readonly [isMirrored: boolean, quarterTurns: number])[] = [
  [false, 0],
  [false, 0],
  [true, 0],
  [false, 2],
  [true, 2],
  [true, 3],
  [false, 1],
  [true, 1],
  [false, 3],
];

const turned = ({ left, top, width, height }: Area, within: PixelSize): Area => ({
  // Where a point was before a quarter turn clockwise of an image that is `within` before it.
  left: top,
  top: within.height - left - width,
  width: height,
  height: width,
});

/**
 * The passes that make `operations` of a stored image of `size` with an EXIF `orientation`; at
 * least one. `size` is the one before it is turned upright.
 */
export function planStages(
  operations: readonly PixelOperation[],
  { size, orientation }: { readonly size: PixelSize; readonly orientation: number },
): readonly Stage[] {
  const stages: Stage[] = [];
  let [isMirrored, quarterTurns] = ORIENTATIONS[orientation] ?? [false, 0];
  let area: Area = { left: 0, top: 0, ...size };
  let whole = size;

  const cropTo = (inside: Area): void => {
    let { width, height } = rotateSize(area, quarterTurns * 90);
    let at = inside;
    for (let turns = quarterTurns; turns > 0; turns -= 1) {
      [width, height] = [height, width];
      at = turned(at, { width, height });
    }
    const left = isMirrored ? width - at.left - at.width : at.left;
    area = { ...at, left: area.left + left, top: area.top + at.top };
  };
  const turn = (quarters: number): void => {
    quarterTurns = (quarterTurns + quarters) % 4;
  };
  /** To be turned and then mirrored is to be mirrored and then turned the other way. */
  const mirror = (): void => {
    isMirrored = !isMirrored;
    quarterTurns = (4 - quarterTurns) % 4;
  };
  const end = (degrees: number): void => {
    if (degrees !== 0 && (quarterTurns > 0 || isMirrored)) end(0);
    const isCropped = area.width !== whole.width || area.height !== whole.height;
    whole = rotateSize(rotateSize(area, quarterTurns * 90), degrees);
    stages.push({ crop: isCropped ? area : undefined, isMirrored, quarterTurns, degrees, size: whole });
    area = { left: 0, top: 0, ...whole };
    quarterTurns = 0;
    isMirrored = false;
  };

  for (const operation of operations) {
    if (operation.kind === "crop") cropTo(operation);
    else if (operation.kind === "flip") {
      if (operation.horizontal !== operation.vertical) mirror();
      // Upside down is left to right and half a turn.
      if (operation.vertical) turn(2);
    } else if (operation.degrees % 90 === 0) turn(operation.degrees / 90);
    else end(operation.degrees);
  }
  const isOpen = area.width !== whole.width || area.height !== whole.height || quarterTurns > 0 || isMirrored;
  if (isOpen || stages.length === 0) end(0);
  return stages;
}
