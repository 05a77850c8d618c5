/**
 * Smaller versions and edits of real images: what is made, what is stored of it, and that files and
 * records agree.
 */

import sharp, { type Sharp } from "sharp";
import { describe, expect, test } from "vitest";
import { sharpImages } from "../../../adapters/sharp/index.js";
import type { FileStore } from "../../../src/content/files.js";
import type { ImageTool } from "../../../src/content/media/image-tool.js";
import { PostbellError } from "../../../src/core/errors.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { bytesOf, rotate, siteWith, stored } from "../../support/image-site.js";
import { corners, gifOf, movingWebp, plain, quartered, withMetadata } from "../../support/images.js";

const photo = (width: number, height: number) => plain(width, height).jpeg().toBuffer();
/**
 * One square of noise over and over: much less work to make than noise all over, and as much to
 * read.
 */
async function noiseOf(width: number, height: number) {
  const noise = { type: "gaussian", mean: 128, sigma: 60 } as const;
  const square = { width: 500, height: 500, channels: 3, background: "red", noise } as const;
  const input = await sharp({ create: square }).png().toBuffer();
  return plain(width, height).composite([{ input, tile: true }]);
}

interface SizeAnswer {
  readonly file: string;
  readonly width: number;
  readonly height: number;
  readonly filesize?: number;
  readonly source_url: string;
}

describe("an uploaded image", () => {
  test("has its sizes in the answer, each as large as it says, and served", async () => {
    const { files, send } = siteWith();
    const { status, body } = await send("heart.jpg", await photo(1200, 900));
    expect(status).toBe(201);
    const { sizes, width, height, file } = body.media_details;
    expect({ width, height, file }).toEqual({
      width: 1200,
      height: 900,
      file: expect.stringMatching(/\/heart\.jpg$/),
    });
    expect(Object.keys(sizes)).toEqual(["thumbnail", "medium", "medium_large", "large", "full"]);
    const { full, ...smaller } = sizes as Record<string, SizeAnswer>;
    for (const size of Object.values(smaller)) {
      const bytes = await bytesOf(files, size.source_url);
      const real = await sharp(bytes).metadata();
      expect([real.width, real.height, real.format]).toEqual([size.width, size.height, "jpeg"]);
      expect(size.file).toBe(`heart-${size.width}x${size.height}.jpg`);
      expect(size.filesize).toBe(bytes.length);
    }
    const whole = await sharp(await bytesOf(files, full?.source_url ?? "")).metadata();
    expect(whole).toMatchObject({ width: 1200, height: 900, format: "jpeg" });
    expect(body.missing_image_sizes).toEqual([]);
    expect(body).toMatchObject({ filename: "heart.jpg", exif_orientation: 1 });
  });

  test("beyond 2560 pixels is shown scaled, and kept as it came", async () => {
    const { files, send } = siteWith();
    const bytes = await photo(3000, 2000);
    const { body } = await send("large.jpg", bytes);
    expect(body.media_details).toMatchObject({
      width: 2560,
      height: 1707,
      file: expect.stringMatching(/large-scaled\.jpg$/),
      original_image: "large.jpg",
    });
    expect(body).toMatchObject({
      source_url: expect.stringMatching(/large-scaled\.jpg$/),
      filename: "large.jpg",
      filesize: bytes.length,
      missing_image_sizes: [],
    });
    expect(Object.keys(body.media_details.sizes)).toHaveLength(7);
    expect(await stored(files)).toEqual([
      "large-1024x683.jpg",
      "large-150x150.jpg",
      "large-1536x1024.jpg",
      "large-2048x1365.jpg",
      "large-300x200.jpg",
      "large-768x512.jpg",
      "large-scaled.jpg",
      "large.jpg",
    ]);
    expect(await bytesOf(files, body.source_url.replace("-scaled", ""))).toEqual(bytes);
  });

  test.each(["png", "gif", "webp", "avif"] as const)(
    "beyond 2560 pixels is shown scaled in its own type: %s",
    async (format) => {
      const { files, send } = siteWith();
      const { body } = await send(`wide.${format}`, await plain(2700, 20)[format]().toBuffer());
      expect(body.media_details).toMatchObject({
        width: 2560,
        height: 19,
        file: expect.stringMatching(new RegExp(`wide-scaled\\.${format}$`)),
        original_image: `wide.${format}`,
      });
      const shown = await sharp(await bytesOf(files, body.source_url)).metadata();
      expect([shown.width, shown.height]).toEqual([2560, 19]);
    },
  );

  test("beyond 2560 pixels keeps moving: an animated GIF is shown as it came", async () => {
    const { send } = siteWith();
    const { body } = await send("moving.gif", await gifOf(2, 2700, 20));
    expect(body.media_details).toMatchObject({ width: 2700, height: 20 });
    expect(body.source_url).toMatch(/moving\.gif$/);
  });

  test.each([2, 3, 4, 5, 6, 7, 8])(
    "of the orientation %i is turned upright, as are its sizes",
    async (orientation) => {
      const { files, send } = siteWith();
      const upright = await quartered(400, 320);
      // Turns the image as a camera in this position stores it. The orientation makes it upright
      // again.
      const undo: { readonly [n: number]: () => Sharp } = {
        2: () => sharp(upright).flop(),
        3: () => sharp(upright).rotate(180),
        4: () => sharp(upright).flip(),
        // Sharp mirrors before it turns.
        5: () => sharp(upright).flop().rotate(270),
        6: () => sharp(upright).rotate(270),
        7: () => sharp(upright).flop().rotate(90),
        8: () => sharp(upright).rotate(90),
      };
      const lying = await (undo[orientation] as () => Sharp)()
        .jpeg()
        .withMetadata({ orientation })
        .toBuffer();
      expect(await corners(await sharp(lying).autoOrient().png().toBuffer())).toEqual([0, 1, 2, 3]);
      const { body } = await send("held.jpg", lying);
      expect(body.media_details).toMatchObject({
        width: 400,
        height: 320,
        file: expect.stringMatching(/held-rotated\.jpg$/),
        original_image: "held.jpg",
      });
      expect(body.exif_orientation).toBe(1);
      for (const address of [body.source_url, body.media_details.sizes.medium.source_url]) {
        expect(await corners(await bytesOf(files, address))).toEqual([0, 1, 2, 3]);
        expect((await sharp(await bytesOf(files, address)).metadata()).orientation).toBeUndefined();
      }
    },
  );

  test.each(["png", "gif", "webp", "avif"] as const)("keeps its type: %s", async (format) => {
    const { files, send } = siteWith();
    const { body } = await send(`a.${format}`, await plain(400, 300).toFormat(format).toBuffer());
    expect(body.media_details.sizes.medium).toMatchObject({
      file: `a-300x225.${format}`,
      mime_type: `image/${format}`,
    });
    const real = await sharp(await bytesOf(files, body.media_details.sizes.medium.source_url)).metadata();
    expect(real.format).toBe(format === "avif" ? "heif" : format);
  });

  test("with megabytes of metadata before its size has sizes too, and can be cropped", async () => {
    const { files, send, edit } = siteWith();
    const lying = await sharp(await quartered(400, 320))
      .rotate(270)
      .jpeg()
      .withMetadata({ orientation: 6 })
      .toBuffer();
    const { status, body } = await send("panorama.jpg", withMetadata(lying, 3_000_000));
    expect(status).toBe(201);
    expect(body.media_details).toMatchObject({ width: 400, height: 320 });
    expect(body.media_details.sizes.medium).toMatchObject({ width: 300, height: 240 });
    const crop = { type: "crop", args: { left: 50, top: 0, width: 50, height: 50 } };
    const answer = await edit(body.id, { src: body.source_url, modifiers: [crop] });
    expect(answer.body.media_details).toMatchObject({ width: 200, height: 160 });
    expect(await corners(await bytesOf(files, answer.body.source_url))).toEqual([1, 1, 1, 1]);
  });

  test("whose record does not tell its size is measured when it is edited or its sizes are made", async () => {
    const storage = memoryStorage();
    const forgetful: typeof storage = {
      ...storage,
      content(context) {
        const store = storage.content(context);
        const forgotten = (body: string) => body.replace(/"width":400,"height":300/, '"width":0,"height":0');
        return {
          ...store,
          commit: (writes, basis) =>
            store.commit(
              writes.map(({ record, ...write }) => ({
                ...write,
                record: record && { ...record, body: forgotten(record.body) },
              })),
              basis,
            ),
        };
      },
    };
    const bytes = await photo(400, 300);
    const { files, send: sendFirst } = siteWith({ storage: forgetful, images: undefined });
    const { body } = await sendFirst("a.jpg", bytes);
    const { call, edit, postProcess } = siteWith({ storage, files });
    const { body: bare } = await call(`GET /media/${body.id}`);
    expect(bare.media_details).toMatchObject({ width: 0, height: 0 });
    const crop = { type: "crop", args: { left: 0, top: 0, width: 50, height: 50 } };
    const answer = await edit(body.id, { src: body.source_url, modifiers: [crop] });
    expect(answer.body.media_details).toMatchObject({ width: 200, height: 150 });
    expect((await postProcess(body.id)).body.media_details).toMatchObject({ width: 400, height: 300 });
  });

  test("that moves is kept whole, and its sizes stand still", async () => {
    const { files, send } = siteWith();
    const moving = await movingWebp(400);
    const { body } = await send("moving.webp", moving);
    expect(await bytesOf(files, body.source_url)).toEqual(moving);
    const small = await sharp(await bytesOf(files, body.media_details.sizes.medium.source_url)).metadata();
    expect([small.pages ?? 1, small.width, small.height]).toEqual([1, 300, 300]);
  });

  test("that cannot be decoded is stored without sizes, and can be tried again", async () => {
    const { files, send, call } = siteWith();
    const broken = (await photo(400, 300)).subarray(0, 500);
    const { status, body } = await send("broken.jpg", broken);
    expect({ status, sizes: body.media_details.sizes }).toEqual({ status: 201, sizes: {} });
    expect(body.missing_image_sizes).toEqual(["thumbnail", "medium"]);
    const again = await call(`POST /media/${body.id}/post-process`, {
      as: "administrator",
      body: { action: "create-image-subsizes" },
    });
    expect(again.status).toBe(200);
    expect(await stored(files)).toEqual(["broken.jpg"]);
  });

  test("whose versions have names that are taken gets others", async () => {
    const { files, send } = siteWith();
    const taken = await photo(20, 20);
    const first = await send("a-300x225.jpg", taken);
    const { body } = await send("a.jpg", await photo(400, 300));
    expect(body.media_details.sizes.medium.file).toBe("a-300x225-1.jpg");
    expect(await bytesOf(files, first.body.source_url)).toEqual(taken);
  });

  test("is stored as it comes where there is no tool", async () => {
    const { send, edit, call } = siteWith({ images: undefined });
    const { body } = await send("a.jpg", await photo(400, 300));
    expect(body.media_details.sizes).toEqual({});
    const refused = { status: 501, body: { code: "rest_image_editing_unavailable" } };
    expect(await edit(body.id, { src: body.source_url, modifiers: [rotate(90)] })).toMatchObject(refused);
    const action = { action: "create-image-subsizes" };
    expect(await call(`POST /media/${body.id}/post-process`, { as: "editor", body: action })).toMatchObject(
      refused,
    );
  });
});

describe("files and records of images", () => {
  test("go together: a deleted item leaves no file of its own", async () => {
    const { files, send, call } = siteWith();
    const other = await send("other.jpg", await photo(200, 200));
    const { body } = await send("large.jpg", await photo(3000, 2000));
    expect((await stored(files)).length).toBe(10);
    expect((await call(`DELETE /media/${body.id}`, { as: "editor", query: { force: true } })).status).toBe(
      200,
    );
    expect(await stored(files)).toEqual(["other-150x150.jpg", "other.jpg"]);
    expect(other.status).toBe(201);
  });

  test("stay together where the storage refuses the record: of an upload, an edit and sizes made later", async () => {
    let isAway = false;
    const storage = memoryStorage();
    const files = memoryFiles();
    const broken: typeof storage = {
      ...storage,
      content(context) {
        const store = storage.content(context);
        return {
          ...store,
          commit: (...given) =>
            isAway ? Promise.reject(new Error("The storage is away.")) : store.commit(...given),
        };
      },
    };
    const bare = siteWith({ storage: broken, files, images: undefined });
    const { body } = await bare.send("a.jpg", await photo(400, 300));
    const { send, edit, call } = siteWith({ storage: broken, files });
    isAway = true;
    expect((await send("b.jpg", await photo(400, 300))).status).toBe(500);
    expect((await edit(body.id, { src: body.source_url, modifiers: [rotate(90)] })).status).toBe(500);
    const postProcess = () =>
      call(`POST /media/${body.id}/post-process`, {
        as: "editor",
        body: { action: "create-image-subsizes" },
      });
    expect((await postProcess()).status).toBe(500);
    expect(await stored(files)).toEqual(["a.jpg"]);
    isAway = false;
    expect((await postProcess()).body).toMatchObject({ missing_image_sizes: [] });
    expect(await stored(files)).toEqual(["a-150x150.jpg", "a-300x225.jpg", "a.jpg"]);
  });

  test("stay together where a version cannot be stored", async () => {
    const files = memoryFiles();
    let left = 3;
    const full: FileStore = {
      ...files,
      stage: (bytes) => {
        left -= 1;
        return left < 0 ? Promise.reject(new Error("The disk is full.")) : files.stage(bytes);
      },
    };
    const { send } = siteWith({ files: full });
    expect((await send("a.jpg", await photo(1200, 900))).status).toBe(500);
    expect(await stored(files)).toEqual([]);
  });

  test("agree when two ask for the missing sizes at once", async () => {
    const storage = memoryStorage();
    const files = memoryFiles();
    const { body } = await siteWith({ storage, files, images: undefined }).send(
      "a.jpg",
      await photo(3000, 2000),
    );
    const { call } = siteWith({ storage, files });
    const postProcess = () =>
      call(`POST /media/${body.id}/post-process`, {
        as: "editor",
        body: { action: "create-image-subsizes" },
      });
    const answers = await Promise.all([postProcess(), postProcess(), postProcess()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    const { media_details: details } = (await call(`GET /media/${body.id}`)).body;
    const named = Object.values<SizeAnswer>(details.sizes).map(({ file }) => file);
    const owned: readonly string[] = [...new Set([...named, details.original_image as string])];
    expect(await stored(files)).toEqual(owned.toSorted());
  });

  test("agree when the item is deleted while its sizes are made", async () => {
    const files = memoryFiles();
    const storage = memoryStorage();
    const { body } = await siteWith({ storage, files, images: undefined }).send(
      "a.jpg",
      await photo(400, 300),
    );
    const real = sharpImages();
    let remove: () => Promise<unknown> = async () => {};
    const slow: ImageTool = {
      ...real,
      async resize(...given) {
        const made = await real.resize(...given);
        await remove();
        return made;
      },
    };
    const { call } = siteWith({ storage, files, images: slow });
    remove = () => call(`DELETE /media/${body.id}`, { as: "editor", query: { force: true } });
    const answer = await call(`POST /media/${body.id}/post-process`, {
      as: "editor",
      body: { action: "create-image-subsizes" },
    });
    expect(answer.status).toBe(404);
    expect(await stored(files)).toEqual([]);
  });
});

describe("an edited image", () => {
  async function edited(modifiers: readonly JsonObject[]) {
    const { files, send, edit } = siteWith();
    const { body } = await send("q.png", await quartered(400, 320));
    const answer = await edit(body.id, { src: body.source_url, modifiers });
    return { answer, source: body, pixels: await bytesOf(files, answer.body.source_url) };
  }

  test.each([
    ["a quarter turn", [rotate(90)], [3, 0, 1, 2], 320, 400],
    ["a quarter turn back", [rotate(-90)], [1, 2, 3, 0], 320, 400],
    [
      "a horizontal flip",
      [{ type: "flip", args: { flip: { horizontal: true, vertical: false } } }],
      [1, 0, 3, 2],
      400,
      320,
    ],
    [
      "a vertical flip",
      [{ type: "flip", args: { flip: { horizontal: false, vertical: true } } }],
      [3, 2, 1, 0],
      400,
      320,
    ],
    [
      "a crop of what is upper right after a quarter turn",
      [rotate(90), { type: "crop", args: { left: 50, top: 0, width: 50, height: 50 } }],
      [0, 0, 0, 0],
      160,
      200,
    ],
  ] as const)("shows %s", async (_, modifiers, expected, width, height) => {
    const { answer, pixels, source } = await edited(modifiers);
    expect(answer.status).toBe(201);
    expect(answer.body.media_details).toMatchObject({
      width,
      height,
      file: expect.stringMatching(/q-edited\.png$/),
      parent_image: { attachment_id: source.id, file: source.media_details.file },
    });
    expect(await corners(pixels)).toEqual(expected);
  });

  test("grows to hold what is turned by another angle, and shows through beside it", async () => {
    const { answer, pixels } = await edited([rotate(45)]);
    expect(answer.body.media_details).toMatchObject({ width: 509, height: 509 });
    const { data, info } = await sharp(pixels).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
    expect([info.width, info.height, data[3]]).toEqual([509, 509, 0]);
  });

  test("can be one after another, with any operations behind a free angle", async () => {
    const crop = { type: "crop", args: { left: 25, top: 25, width: 50, height: 50 } };
    const { answer } = await edited([rotate(90), rotate(30), crop, rotate(-30), crop, rotate(180)]);
    expect(answer.status).toBe(201);
  });

  test("is made of the whole upload where that is shown scaled, and shown scaled itself", async () => {
    const { send, edit } = siteWith();
    const { body } = await send("l.jpg", await photo(2800, 2100));
    const answer = await edit(body.id, { src: body.source_url, modifiers: [rotate(90)] });
    expect(answer.body.media_details).toMatchObject({
      width: 1920,
      height: 2560,
      original_image: "l-edited.jpg",
    });
    const again = await edit(answer.body.id, { src: answer.body.source_url, modifiers: [rotate(90)] });
    expect(again.body.media_details.original_image).toBe("l-edited-1.jpg");
  });

  test("of a photograph that lies on its side is edited as it is seen", async () => {
    const { send, edit, files } = siteWith();
    const lying = await sharp(await quartered(400, 320))
      .rotate(270)
      .jpeg()
      .withMetadata({ orientation: 6 })
      .toBuffer();
    const { body } = await send("held.jpg", lying);
    const answer = await edit(body.id, {
      src: body.source_url,
      modifiers: [{ type: "crop", args: { left: 50, top: 0, width: 50, height: 50 } }],
    });
    expect(answer.body.media_details).toMatchObject({ width: 200, height: 160 });
    expect(await corners(await bytesOf(files, answer.body.source_url))).toEqual([1, 1, 1, 1]);
  });

  test("is its editor's, and what others wrote of the first is trusted no more than before", async () => {
    const { send, edit, call } = siteWith();
    const { body } = await send("a.jpg", await photo(200, 200), "author");
    const answer = await edit(body.id, { src: body.source_url, rotation: 90, title: "Turned" }, "editor");
    const { body: own } = await call(`GET /media/${answer.body.id}`, {
      as: "editor",
      query: { context: "edit" },
    });
    expect(own).toMatchObject({ author: 2, title: { raw: "Turned" }, slug: "turned" });
  });

  test("needs the right to edit the item and to upload", async () => {
    const { send, edit } = siteWith();
    const { body } = await send("a.jpg", await photo(200, 200));
    const asked = { src: body.source_url, modifiers: [rotate(90)] };
    expect((await edit(body.id, asked, "author")).body.code).toBe("rest_cannot_edit");
    expect((await edit(body.id, asked, "contributor")).body.code).toBe("rest_cannot_edit_image");
  });
});

describe("the tool", () => {
  test("makes of a stored image what sharp makes of it step by step, from any orientation", async () => {
    const tool = sharpImages();
    const stored = await quartered(40, 24);
    const flip = { kind: "flip", horizontal: true, vertical: false } as const;
    const turn = { kind: "rotate", degrees: 90 } as const;
    const crop = { kind: "crop", left: 3, top: 0, width: 12, height: 18 } as const;
    for (let orientation = 1; orientation <= 8; orientation += 1) {
      const image = await sharp(stored)
        .jpeg({ quality: 100, chromaSubsampling: "4:4:4" })
        .withMetadata({ orientation })
        .toBuffer();
      const upright = await sharp(image).autoOrient().png().toBuffer();
      const flopped = await sharp(upright).flop().png().toBuffer();
      const turned = await sharp(flopped).rotate(90).png().toBuffer();
      const { left, top, width, height } = crop;
      const expected = await sharp(turned).extract({ left, top, width, height }).png().toBuffer();
      const made = await tool.edit(source(image), [flip, turn, crop]);
      if (typeof made === "string") throw new Error(made);
      expect([made.width, made.height]).toEqual([12, 18]);
      expect(await corners(made.bytes)).toEqual(await corners(expected));
    }
  });

  const source = (bytes: Uint8Array, mimeType = "image/jpeg") => ({ mimeType, read: async () => bytes });
  const small = [{ width: 10, height: 10 }];

  test("works on as many images as it may, lets others wait, and refuses those beyond", async () => {
    const tool = sharpImages({ concurrency: 2, maxWaiting: 1 });
    const bytes = await photo(40, 40);
    let open = 0;
    let most = 0;
    const gates: (() => void)[] = [];
    const held = {
      mimeType: "image/jpeg",
      async read() {
        open += 1;
        most = Math.max(most, open);
        await new Promise<void>((resolve) => gates.push(resolve));
        open -= 1;
        return bytes;
      },
    };
    const started = Array.from({ length: 5 }, () => tool.resize(held, small));
    const refused = await Promise.race(started.slice(3));
    expect(refused).toBe("busy");
    expect(await started[4]).toBe("busy");
    for (let freed = 0; freed < 3; freed += 1) {
      while (gates.length === 0) await new Promise((resolve) => setImmediate(resolve));
      gates.shift()?.();
    }
    const done = await Promise.all(started);
    expect(done.map((made) => (typeof made === "string" ? made : made.length))).toEqual([
      1,
      1,
      1,
      "busy",
      "busy",
    ]);
    expect(most).toBe(2);
    expect(await tool.resize(source(bytes), small)).toHaveLength(1);
  });

  test("has room again after images that failed", async () => {
    const tool = sharpImages({ concurrency: 1, maxWaiting: 0 });
    const away = { mimeType: "image/jpeg", read: () => Promise.reject(new Error("away")) };
    await expect(tool.resize(away, small)).rejects.toThrow("away");
    expect(await tool.edit(source(Buffer.from("none")), [])).toBe("unreadable");
    expect(await tool.resize(source(await photo(40, 40)), small)).toHaveLength(1);
  });

  test("makes nothing larger than it may, whatever size the operations were planned for", async () => {
    const tool = sharpImages({ maxPixels: 2_000 });
    const turn = (degrees: number) => ({ kind: "rotate", degrees }) as const;
    const middle = { kind: "crop", left: 0, top: 0, width: 10, height: 10 } as const;
    const image = source(await photo(40, 40));
    expect(await tool.edit(image, [turn(45)])).toBe("too_large");
    expect(await tool.edit(image, [turn(45), middle])).toBe("too_large");
    expect(await tool.edit(image, [middle, turn(45)])).toMatchObject({ width: 14, height: 14 });
    expect(await tool.edit(image, [turn(90)])).toMatchObject({ width: 40, height: 40 });
  });

  test("refuses what its options refuse", async () => {
    expect(() => sharpImages({ maxPixels: 0 })).toThrow(/maxPixels/);
    expect(() => sharpImages({ pixels: 1 } as never)).toThrow(/there is no option 'pixels'/);
    const tool = sharpImages({ maxPixels: 1_000, maxFrames: 2 });
    expect(await tool.resize(source(await photo(40, 40)), small)).toBe("too_large");
    expect(await tool.resize(source(await gifOf(3, 10), "image/gif"), small)).toBe("too_large");
    expect(await tool.edit(source(await gifOf(2, 10), "image/gif"), [])).toBe("animated");
  });

  test("gives up on an image that takes too long", async () => {
    const noise = await (await noiseOf(6_000, 6_000)).png({ compressionLevel: 1 }).toBuffer();
    const tool = sharpImages({ timeoutMs: 1_000 });
    // Cut back each time. A fast machine does some of them in a second, and none all.
    const turned = [
      { kind: "rotate", degrees: 1 },
      { kind: "crop", left: 0, top: 0, width: 6_000, height: 6_000 },
    ] as const;
    const operations = Array.from({ length: 40 }, () => turned).flat();
    expect(await tool.edit(source(noise, "image/png"), operations)).toBe("too_slow");
  });

  test("gives up on an AVIF image that takes too long, and says that it was the time", async () => {
    const large = await (await noiseOf(5_000, 4_000)).avif({ effort: 0, quality: 30 }).toBuffer();
    const tool = sharpImages({ timeoutMs: 1_000 });
    const wanted = Array.from({ length: 40 }, () => ({ width: 300, height: 240 }));
    expect(await tool.resize(source(large, "image/avif"), wanted)).toBe("too_slow");
  });

  test("makes no AVIF image so large that its encoder would outlast the time", async () => {
    const tool = sharpImages({ maxAvifPixels: 2_000 });
    const avif = source(await plain(60, 40).avif().toBuffer(), "image/avif");
    const half = { kind: "crop", left: 0, top: 0, width: 30, height: 40 } as const;
    expect(await tool.edit(avif, [{ kind: "rotate", degrees: 90 }])).toBe("too_large");
    expect(await tool.resize(avif, [{ width: 60, height: 40 }])).toBe("too_large");
    expect(await tool.edit(avif, [half])).toMatchObject({ width: 30, height: 40 });
    expect(await tool.resize(avif, small)).toHaveLength(1);
    const jpeg = source(await photo(60, 40));
    expect(await tool.edit(jpeg, [{ kind: "rotate", degrees: 90 }])).toMatchObject({ width: 40, height: 60 });
  });

  test("lets a mistake of a program through, which is no fault of the image", async () => {
    const tool = sharpImages();
    const image = source(await photo(40, 40));
    await expect(tool.edit(image, [null] as never)).rejects.toThrow(TypeError);
    await expect(tool.resize(image, [null] as never)).rejects.toThrow(TypeError);
    expect(await tool.edit(source((await photo(400, 300)).subarray(0, 500)), [])).toBe("unreadable");
  });
});

describe("a tool that cannot work, such as one whose package is missing", () => {
  const broken: ImageTool = {
    maxPixels: 1_000_000,
    resize: () => Promise.reject(new PostbellError("invalid_option", "install the package")),
    edit: () => Promise.reject(new PostbellError("invalid_option", "install the package")),
  };

  test("loses no upload, and answers an edit with 501", async () => {
    const messages: string[] = [];
    const note = (_: object, message: string): void => void messages.push(message);
    const logger = { debug() {}, info() {}, warn: note, error: note };
    const { send, edit } = siteWith({ images: broken, logger });
    const { status, body } = await send("heart.jpg", await photo(400, 300));
    expect(status).toBe(201);
    expect(body.media_details.sizes).toEqual({});
    expect(await edit(body.id, { src: body.source_url, modifiers: [rotate(90)] })).toMatchObject({
      status: 501,
      body: { code: "rest_image_editing_unavailable" },
    });
    expect(messages).toEqual([
      "the smaller versions of an image could not be made",
      "the host's tool cannot edit images",
    ]);
  });
});

describe("an image whose file the host has lost", () => {
  test("is not edited, and that is no failure of the service", async () => {
    const { files, send, edit, postProcess } = siteWith();
    const { body } = await send("heart.jpg", await photo(400, 300));
    for await (const { name } of files.list()) await files.remove(name);
    const asked = { src: body.source_url, modifiers: [rotate(90)] };
    expect(await edit(body.id, asked)).toMatchObject({
      status: 404,
      body: { code: "rest_unknown_attachment" },
    });
    expect((await postProcess(body.id)).status).toBe(200);
  });
});
