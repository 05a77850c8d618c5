/**
 * Plans operations on an image in as few stages as possible: crops, flips and quarter turns in a
 * row share one. Pure.
 */

import type { Area, PixelOperation, PixelSize } from "../../src/content/media/image-edits.js";
import { rotateSize } from "../../src/content/media/image-edits.js";

/** One pass over the pixels. Its steps are applied in this order. */
export interface Stage {
  /** In pixels of the input; `undefined` keeps all of it. */
  crop: Area | undefined;
  /** Swaps left and right. */
  isMirrored: boolean;
  /** Clockwise turns by 90 degrees: 0 to 3. */
  quarterTurns: number;
  /** A clockwise rotation by any angle. If it is not 0, the stage neither turns nor mirrors. */
  degrees: number;
  /** Size of the output. After a rotation by `degrees` it may be off by a pixel. */
  size: PixelSize;
}

/**
 * How to show an image upright, by its EXIF orientation: mirror the stored pixels or not, then turn
 * them.
 */
const ORIENTATIONS: [isMirrored: boolean, quarterTurns: number][] = [
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
 * Plans the stages that apply `operations` to a stored image; at least one. `size` is the stored
 * one, before the EXIF `orientation` turns the image upright.
 */
export function planStages(
  operations: PixelOperation[],
  { size, orientation }: { size: PixelSize; orientation: number },
): Stage[] {
  const plan = createStagePlan(size, orientation);
  for (const operation of operations) {
    if (operation.kind === "crop") plan.crop(operation);
    else if (operation.kind === "flip") plan.flip(operation.horizontal, operation.vertical);
    else plan.rotate(operation.degrees);
  }
  return plan.finish();
}

/** Collects crops, flips and quarter turns into one open stage; any other angle ends the stage. */
function createStagePlan(size: PixelSize, orientation: number) {
  const stages: Stage[] = [];
  let [isMirrored, quarterTurns] = ORIENTATIONS[orientation] ?? [false, 0];
  let area: Area = { left: 0, top: 0, ...size };
  let whole = size;

  const isCropped = (): boolean => area.width !== whole.width || area.height !== whole.height;
  const turn = (quarters: number): void => {
    quarterTurns = (quarterTurns + quarters) % 4;
  };
  /** Turning and then mirroring equals mirroring and then turning the other way. */
  const mirror = (): void => {
    isMirrored = !isMirrored;
    quarterTurns = (4 - quarterTurns) % 4;
  };
  const endStage = (degrees: number): void => {
    if (degrees !== 0 && (quarterTurns > 0 || isMirrored)) endStage(0);
    const crop = isCropped() ? area : undefined;
    whole = rotateSize(rotateSize(area, quarterTurns * 90), degrees);
    stages.push({ crop, isMirrored, quarterTurns, degrees, size: whole });
    area = { left: 0, top: 0, ...whole };
    quarterTurns = 0;
    isMirrored = false;
  };

  return {
    crop(inside: Area): void {
      let { width, height } = rotateSize(area, quarterTurns * 90);
      let at = inside;
      for (let turns = quarterTurns; turns > 0; turns -= 1) {
        [width, height] = [height, width];
        at = turned(at, { width, height });
      }
      const left = isMirrored ? width - at.left - at.width : at.left;
      area = { ...at, left: area.left + left, top: area.top + at.top };
    },
    flip(horizontal: boolean, vertical: boolean): void {
      if (horizontal !== vertical) mirror();
      // Upside down is left to right and half a turn.
      if (vertical) turn(2);
    },
    rotate(degrees: number): void {
      if (degrees % 90 === 0) turn(degrees / 90);
      else endStage(degrees);
    },
    finish(): Stage[] {
      const isOpen = isCropped() || quarterTurns > 0 || isMirrored;
      if (isOpen || stages.length === 0) endStage(0);
      return stages;
    },
  };
}
