/**
 * From what a client asks of an image to pixels, and which versions of it a site keeps: the rules
 * alone, no image.
 */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { planStages } from "../../../adapters/sharp/stages.js";
import {
  type Area,
  type Modifier,
  type PixelOperation,
  planEdits,
} from "../../../src/content/media/image-edits.js";
import { frameCount } from "../../../src/content/media/image-frames.js";
import { imageSize } from "../../../src/content/media/image-size.js";
import { missingSizes, shownVersion } from "../../../src/content/media/image-versions.js";
import type { MediaFile } from "../../../src/content/records/records.js";
import { listFileNames } from "../../../src/content/records/unique-names.js";
import { expectAtMost } from "../../support/cpu-time.js";
import { gifOf, movingWebp, smallestChunks } from "../../support/images.js";

const LIMIT = 50_000_000;
const PHOTO = { width: 400, height: 300 };

const rotate = (angle: number): Modifier => ({ type: "rotate", args: { angle } });
const crop = (left: number, top: number, width: number, height: number): Modifier => ({
  type: "crop",
  args: { left, top, width, height },
});
const flip = (horizontal: boolean, vertical: boolean): Modifier => ({
  type: "flip",
  args: { flip: { horizontal, vertical } },
});

const planOf = (modifiers: readonly Modifier[], size = PHOTO, limit = LIMIT) =>
  planEdits(modifiers, size, limit);

describe("edits of an image", () => {
  test("are percentages of what the edits before have left", () => {
    expect(planOf([rotate(90), crop(0, 50, 50, 50), flip(true, false)])).toEqual({
      ok: true,
      size: { width: 150, height: 200 },
      operations: [
        { kind: "rotate", degrees: 90 },
        { kind: "crop", left: 0, top: 200, width: 150, height: 200 },
        { kind: "flip", horizontal: true, vertical: false },
      ],
    });
  });

  test.each([
    ["a full turn", rotate(360)],
    ["no turn", rotate(-0)],
    ["the whole image", crop(0, 0, 100, 100)],
    ["more than the image", crop(0, 0, 150, 1e300)],
    ["no flip", flip(false, false)],
  ])("leave out %s", (_, modifier) => {
    expect(planOf([modifier])).toEqual({ ok: true, size: PHOTO, operations: [] });
  });

  test.each([
    [-90, 270],
    [450, 90],
    [-3_600 + 1, 1],
    [0.5, 0.5],
  ])("turn by %s degrees as by %s", (angle, degrees) => {
    expect(planOf([rotate(angle)])).toMatchObject({ operations: [{ kind: "rotate", degrees }] });
  });

  test("begin a crop at the edge of the image", () => {
    expect(planOf([crop(-10, -25, 50, 50)])).toMatchObject({
      operations: [{ kind: "crop", left: 0, top: 0, width: 160, height: 75 }],
      size: { width: 160, height: 75 },
    });
  });

  test("end a crop at the edge of the image", () => {
    expect(planOf([crop(50, 50, 100, 75)])).toMatchObject({
      operations: [{ kind: "crop", left: 200, top: 150, width: 200, height: 150 }],
    });
  });

  test.each([
    ["nothing wide", crop(0, 0, 0, 50)],
    ["nothing high", crop(0, 0, 50, 0)],
    ["less than half a pixel", crop(0, 0, 0.1, 50)],
    ["what lies right of it", crop(100, 0, 50, 50)],
    ["what lies left of it", crop(-50, 0, 50, 50)],
    ["what lies above it", crop(0, -1e300, 50, 50)],
    ["a negative width", crop(50, 50, -25, 25)],
    ["no number", crop(Number.NaN, 0, 50, 50)],
    ["an endless place", crop(Number.POSITIVE_INFINITY, 0, 50, 50)],
  ])("refuse to crop to %s", (_, modifier) => {
    expect(planOf([modifier])).toMatchObject({ ok: false, code: "rest_image_crop_failed" });
  });

  test.each([1e308, -1e308, Number.NaN, Number.POSITIVE_INFINITY, 3_600.5])(
    "refuse the angle %s",
    (angle) => {
      expect(planOf([rotate(angle)])).toMatchObject({ ok: false, code: "rest_image_rotation_failed" });
    },
  );

  test("refuse a rotation that makes a bomb of a strip", () => {
    const strip = { width: 50_000, height: 100 };
    expect(planOf([rotate(90)], strip)).toMatchObject({ ok: true });
    expect(planOf([rotate(45)], strip)).toMatchObject({ ok: false, code: "rest_image_rotation_failed" });
  });

  test("are ten at most", () => {
    const many = (count: number) => Array.from({ length: count }, () => rotate(90));
    expect(planOf(many(10))).toMatchObject({ ok: true });
    expect(planOf(many(11))).toMatchObject({ ok: false, code: "rest_too_many_items" });
    expect(planOf(many(100_000))).toMatchObject({ ok: false, code: "rest_too_many_items" });
  });

  const isInside = (area: Area, within: { readonly width: number; readonly height: number }): boolean =>
    [area.left, area.top, area.width, area.height].every(Number.isInteger) &&
    Math.min(area.left, area.top) >= 0 &&
    Math.min(area.width, area.height) >= 1 &&
    area.left + area.width <= within.width &&
    area.top + area.height <= within.height;
  const anyNumber = fc.oneof(fc.double(), fc.integer({ min: -10, max: 120 }), fc.constantFrom(0, 100, 50));
  const anyModifier: fc.Arbitrary<Modifier> = fc.oneof(
    fc.oneof(anyNumber, fc.constantFrom(90, 180, 270)).map(rotate),
    fc.tuple(anyNumber, anyNumber, anyNumber, anyNumber).map((area) => crop(...area)),
    fc.tuple(fc.boolean(), fc.boolean()).map((directions) => flip(...directions)),
  );

  test("whatever is asked, lie inside the image and leave one", () => {
    fc.assert(
      fc.property(
        fc.array(anyModifier, { maxLength: 11 }),
        fc.integer({ min: 1, max: 70_000 }),
        fc.integer({ min: 1, max: 700 }),
        (modifiers, width, height) => {
          const plan = planOf(modifiers, { width, height });
          if (!plan.ok) return;
          let within = { width, height };
          const outside: unknown[] = [];
          for (const operation of plan.operations) {
            if (operation.kind === "crop") {
              if (!isInside(operation, within)) outside.push({ operation, within });
              within = operation;
            } else if (operation.kind === "rotate") {
              if (!(operation.degrees > 0 && operation.degrees < 360)) outside.push(operation);
              const after = planOf([rotate(operation.degrees)], within);
              if (after.ok) within = after.size;
            }
          }
          expect(outside).toEqual([]);
          expect({ width: within.width, height: within.height }).toEqual(plan.size);
          expect(plan.size.width * plan.size.height).toBeLessThanOrEqual(LIMIT);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

/** An image of numbers, row by row. */
type Grid = readonly (readonly number[])[];

const gridOf = (width: number, height: number): Grid =>
  Array.from({ length: height }, (_, row) =>
    Array.from({ length: width }, (__, column) => row * width + column),
  );
const mirrored = (grid: Grid): Grid => grid.map((row) => [...row].reverse());
const upsideDown = (grid: Grid): Grid => [...grid].reverse();
const turned = (grid: Grid): Grid =>
  (grid[0] ?? []).map((_, column) => [...grid].reverse().map((row) => row[column] ?? -1));
const times = (count: number, grid: Grid): Grid => (count === 0 ? grid : times(count - 1, turned(grid)));
const cut = (grid: Grid, { left, top, width, height }: Extract<PixelOperation, { kind: "crop" }>): Grid =>
  grid.slice(top, top + height).map((row) => row.slice(left, left + width));

/** How each EXIF orientation is shown, by the place of row 0 and column 0 in the EXIF standard. */
const UPRIGHT: { readonly [orientation: number]: (grid: Grid) => Grid } = {
  1: (grid) => grid,
  2: mirrored,
  3: (grid) => times(2, grid),
  4: upsideDown,
  5: (grid) => mirrored(turned(grid)),
  6: turned,
  7: (grid) => mirrored(times(3, grid)),
  8: (grid) => times(3, grid),
};

describe("operations put together", () => {
  const quarterTurn = fc.constantFrom(90, 180, 270).map(rotate);
  const percent = fc.integer({ min: 0, max: 100 });
  const modifiers = fc.array(
    fc.oneof(
      quarterTurn,
      fc.tuple(fc.boolean(), fc.boolean()).map((directions) => flip(...directions)),
      fc.tuple(percent, percent, percent, percent).map((area) => crop(...area)),
    ),
    { maxLength: 10 },
  );

  test("make in one pass what they make one after the other, from any orientation", () => {
    fc.assert(
      fc.property(
        modifiers,
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 8 }),
        (asked, width, height, orientation) => {
          const stored = gridOf(width, height);
          let expected = (UPRIGHT[orientation] as (grid: Grid) => Grid)(stored);
          const plan = planOf(asked, { width: expected[0]?.length ?? 0, height: expected.length });
          if (!plan.ok) return;
          for (const operation of plan.operations) {
            if (operation.kind === "crop") expected = cut(expected, operation);
            else if (operation.kind === "rotate") expected = times(operation.degrees / 90, expected);
            else {
              if (operation.horizontal) expected = mirrored(expected);
              if (operation.vertical) expected = upsideDown(expected);
            }
          }
          const stages = planStages(plan.operations, { size: { width, height }, orientation });
          expect(stages).toHaveLength(1);
          const [{ crop: area, quarterTurns, isMirrored, degrees }] = stages as [(typeof stages)[0] & object];
          const cropped = area === undefined ? stored : cut(stored, { kind: "crop", ...area });
          expect(times(quarterTurns, isMirrored ? mirrored(cropped) : cropped)).toEqual(expected);
          expect(degrees).toBe(0);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  test("take a pass of its own for an angle that is not a quarter", () => {
    const plan = planOf([rotate(90), flip(true, false), rotate(10), crop(10, 10, 50, 50), rotate(90)]);
    const stages = plan.ok ? planStages(plan.operations, { size: PHOTO, orientation: 1 }) : [];
    expect(
      stages.map(({ quarterTurns, isMirrored, degrees }) => [quarterTurns, isMirrored, degrees]),
    ).toEqual([
      [3, true, 0],
      [0, false, 10],
      [1, false, 0],
    ]);
  });
});

const fileOf = (width: number, height: number, more: Partial<MediaFile> = {}): MediaFile => ({
  name: "2026/11/a.jpg",
  bytes: 1,
  altText: "",
  width,
  height,
  sizes: {},
  ...more,
});

describe("the versions of an image", () => {
  const namesOf = (file: MediaFile) =>
    missingSizes(file).map(({ size, width, height }) => `${size} ${width}x${height}`);

  test.each([
    [64, 48, []],
    [150, 150, []],
    [151, 151, []],
    [100, 300, ["thumbnail 100x150"]],
    [400, 300, ["thumbnail 150x150", "medium 300x225"]],
    [300, 400, ["thumbnail 150x150", "medium 225x300"]],
    [
      5000,
      1,
      [
        "thumbnail 150x1",
        "medium 300x1",
        "medium_large 768x1",
        "large 1024x1",
        "1536x1536 1536x1",
        "2048x2048 2048x1",
      ],
    ],
    [
      3000,
      2000,
      [
        "thumbnail 150x150",
        "medium 300x200",
        "medium_large 768x512",
        "large 1024x683",
        "1536x1536 1536x1024",
        "2048x2048 2048x1365",
      ],
    ],
    [0, 0, []],
  ])("of %s × %s pixels are %j", (width, height, expected) => {
    expect(namesOf(fileOf(width, height))).toEqual(expected);
  });

  test("are those that it has not yet, made from what was uploaded", () => {
    const sizes = { medium: { name: "m.jpg", width: 300, height: 200, mimeType: "image/jpeg", bytes: 1 } };
    const original = { name: "2026/11/o.jpg", bytes: 9, width: 3000, height: 2000 };
    const file = fileOf(2560, 1707, { sizes, original });
    expect(namesOf(file)).not.toContain("medium 300x200");
    expect(namesOf(file)).toContain("2048x2048 2048x1365");
    expect(listFileNames(file)).toEqual(["2026/11/a.jpg", "2026/11/o.jpg", "m.jpg"]);
  });

  test.each([
    [2560, 2560, 1, "image/jpeg", undefined],
    [2561, 100, 1, "image/jpeg", { suffix: "scaled", width: 2560, height: 100 }],
    [2000, 5120, 6, "image/jpeg", { suffix: "scaled", width: 1000, height: 2560 }],
    [300, 400, 6, "image/jpeg", { suffix: "rotated", width: 300, height: 400 }],
    [5120, 100, 1, "image/webp", { suffix: "scaled", width: 2560, height: 50 }],
    [5120, 100, 1, "image/png", { suffix: "scaled", width: 2560, height: 50 }],
    [2560, 100, 1, "image/png", undefined],
    [5120, 100, 1, "image/gif", { suffix: "scaled", width: 2560, height: 50 }],
    [5120, 100, 1, "image/bmp", undefined],
    [0, 0, 1, "image/jpeg", undefined],
  ])("show %s × %s, orientation %s, %s as %j", (width, height, orientation, mimeType, expected) => {
    expect(shownVersion(fileOf(width, height, { orientation }), mimeType)).toEqual(expected);
  });

  test("fit into their rule and keep the proportions, whatever the image", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 65_535 }),
        fc.integer({ min: 1, max: 65_535 }),
        (width, height) => {
          for (const wanted of missingSizes(fileOf(width, height))) {
            expect(wanted.width).toBeGreaterThanOrEqual(1);
            expect(wanted.height).toBeGreaterThanOrEqual(1);
            expect(wanted.width).toBeLessThanOrEqual(width);
            expect(wanted.height).toBeLessThanOrEqual(height);
            if (wanted.size === "thumbnail") continue;
            const ratio = wanted.width / width;
            expect(Math.abs(wanted.height - Math.max(1, height * ratio))).toBeLessThanOrEqual(
              1 + height / width,
            );
          }
        },
      ),
    );
  });
});

describe("the frames of an image", () => {
  test("are counted in linear time, whatever the bytes", () => {
    const types = fc.constantFrom("image/gif", "image/png", "image/webp", "image/avif", "image/jpeg");
    fc.assert(
      fc.property(types, fc.uint8Array({ maxLength: 400 }), (type, bytes) => {
        expect(frameCount(type, bytes)).toBeGreaterThanOrEqual(1);
      }),
    );
    const zeros = new Uint8Array(8_000_000);
    for (const type of ["image/gif", "image/png", "image/webp", "image/avif"]) {
      expect(frameCount(type, zeros)).toBe(1);
    }
  });

  test("are counted no further than the first beyond what is asked for", async () => {
    const gif = await gifOf(40, 10);
    expect(frameCount("image/gif", gif)).toBe(40);
    expect(frameCount("image/gif", gif, 3)).toBe(4);
    const webp = await movingWebp(20);
    expect(frameCount("image/webp", webp)).toBe(2);
    expect(frameCount("image/webp", webp, 0)).toBe(1);
  });

  test.each(["png", "webp", "gif", "avif", "jpeg"] as const)(
    "and the dimensions of 33 MB of the smallest chunks of %s hold the event loop up for no more than a moment",
    async (format) => {
      const [type, bytes] = [`image/${format}`, smallestChunks(format, 33_000_000)];
      const { frames, size } = await expectAtMost(60, () => ({
        frames: frameCount(type, bytes),
        size: imageSize(type, bytes),
      }));
      const isRefused = frames === Number.POSITIVE_INFINITY || size === undefined;
      expect(isRefused).toBe(true);
    },
  );
});
