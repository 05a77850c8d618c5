/**
 * Hostile files and edits, each a real file sent through the interface. By the numbers of the
 * security checklist:
 *
 * | E37 | "E37: src is compared with the addresses of the item" |
 * | E38 | "E38: what cannot be edited is refused without being decoded" |
 * | E39 | "E39: modifiers beyond reason are refused" |
 * | E40 | "E40: …": pixels, a claimed size, frames, compressed texts and profiles, many uploads at
 * once |
 * | E41, E42 | "E41, E42: …": polyglots and names; types by bytes and names are in
 * content-media-judging.test.ts and content-upload.test.ts |
 * | E43 | "E43: versions are served like any file"; all of serving is in content-uploads.test.ts |
 * | E44 | content-media-judging.test.ts, "a Content-Disposition header", and "E44: a header of 64
 * KB" |
 * | E45 | content-upload.test.ts, "that breaks off …" and "with Content-MD5 …", and "E45: a wrong
 * digest of an image" |
 */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { deflateSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import { sharpImages } from "../../../adapters/sharp/index.js";
import type { ImageSource, ImageTool } from "../../../src/content/media/image-tool.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { expectAtMost, expectTurning } from "../../support/cpu-time.js";
import { bytesOf, rotate, siteWith, stored } from "../../support/image-site.js";
import {
  gifOf,
  jpegClaiming,
  movingWebp,
  plain,
  pngChunk,
  pngOf,
  withMetadata,
} from "../../support/images.js";

const MEGABYTE = 1_048_576;

const photo = (width = 400, height = 300) => plain(width, height).jpeg().toBuffer();

/** How often an image was handed to the decoder. */
const decoder = vi.hoisted(() => ({ calls: 0 }));
vi.mock("sharp", async (original) => {
  const { default: sharp } = await original<typeof import("sharp")>();
  const counting = (...given: Parameters<typeof sharp>) => {
    decoder.calls += 1;
    return sharp(...given);
  };
  return { default: Object.assign(counting, sharp) };
});

/** Runs `work` and counts the images that it decodes. */
async function decodesOf<T>(work: () => Promise<T>) {
  const before = decoder.calls;
  return { result: await work(), decodes: decoder.calls - before };
}

/** Real, and tells which files it was asked to read. */
function watchedTool(): { readonly tool: ImageTool; readonly reads: () => number } {
  const tool = sharpImages();
  let reads = 0;
  const watched = (source: ImageSource): ImageSource => ({
    ...source,
    read() {
      reads += 1;
      return source.read();
    },
  });
  const counting: ImageTool = {
    ...tool,
    resize: (source, wanted) => tool.resize(watched(source), wanted),
    edit: (source, operations) => tool.edit(watched(source), operations),
  };
  return { tool: counting, reads: () => reads };
}

/** How much the process grew at most, in bytes, while `work` ran. */
async function costOf<T>(work: () => Promise<T>) {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 5);
  try {
    const result = await work();
    return { result, grown: Math.max(most, process.memoryUsage.rss()) - before };
  } finally {
    clearInterval(timer);
  }
}

describe("an edit", () => {
  afterEach(() => vi.unstubAllGlobals());

  test("E37: src is compared with the addresses of the item, and never fetched", async () => {
    const connections: string[] = [];
    const server = createServer((request, response) => {
      connections.push(request.url ?? "");
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const fetched = vi.fn<typeof fetch>(() => Promise.reject(new Error("fetched")));
    vi.stubGlobal("fetch", fetched);
    try {
      const { send, edit, files } = siteWith();
      const { body: own } = await send("own.jpg", await photo());
      const { body: other } = await send("other.jpg", await photo());
      const before = await stored(files);
      const { source_url: url } = own;
      const wrong = [
        `${origin}/own.jpg`,
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/own.jpg",
        "file:///etc/passwd",
        "phar://own.jpg",
        "data:image/png;base64,AAAA",
        "php://filter/resource=own.jpg",
        other.source_url,
        url.replace("http://localhost", origin),
        url.replace("localhost", "localhost.evil.example"),
        url.replace("http://", "http://evil.example@"),
        `${url}#x`,
        `${url}/`,
        `${url}%00`,
        url.replace("own", "x/../own"),
        url.replace("own", "%6fwn"),
        url.replace("/uploads/", "/uploads//"),
        url.replace("own.jpg", "own-150x151.jpg"),
        url.toUpperCase(),
        "own.jpg",
        "",
        "x".repeat(2_000),
      ];
      for (const src of wrong) {
        const answer = await edit(own.id, { src, modifiers: [rotate(90)] });
        expect([answer.status, answer.body.code], src.slice(0, 80)).toEqual([404, "rest_unknown_attachment"]);
      }
      const long = await edit(own.id, { src: "x".repeat(100_000), modifiers: [rotate(90)] });
      expect([long.status, long.body.code]).toEqual([400, "rest_invalid_param"]);
      expect(await stored(files)).toEqual(before);
      expect(fetched).not.toHaveBeenCalled();
      expect(connections).toEqual([]);
      const small = own.media_details.sizes.thumbnail.source_url;
      expect((await edit(own.id, { src: small, modifiers: [rotate(90)] })).status).toBe(201);
    } finally {
      server.close();
    }
  });

  test("E38: what cannot be edited is refused without being decoded", async () => {
    const { tool, reads } = watchedTool();
    const { send, edit, files } = siteWith({ images: tool });
    const { body: text } = await send("note.txt", Buffer.from("no image"));
    const asked = (src: string) => ({ src, modifiers: [rotate(90)] });
    expect((await edit(text.id, asked(text.source_url))).status).toBe(404);
    expect((await send("v.svg", Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"))).status).toBe(400);
    expect(reads()).toBe(0);
    for (const [name, bytes] of [
      ["moving.gif", await gifOf(2, 20)],
      ["moving.webp", await movingWebp(20)],
    ] as const) {
      const { body } = await send(name, bytes);
      const before = reads();
      const { result, decodes } = await decodesOf(() => edit(body.id, asked(body.source_url)));
      expect([result.status, result.body.code], name).toEqual([400, "rest_cannot_edit_file_type"]);
      // Read once, for its frames to be counted.
      expect([reads() - before, decodes], name).toEqual([1, 0]);
    }
    const jpeg = await photo();
    // Uploaded while the site had no tool, or a wider bound.
    const storage = memoryStorage();
    const { body: huge } = await siteWith({ storage, files, images: undefined }).send(
      "huge.png",
      pngOf(14_000, 14_000),
    );
    const narrow = siteWith({ storage, files });
    const edited = await decodesOf(() => narrow.edit(huge.id, asked(huge.source_url)));
    expect([edited.result.status, edited.result.body.code]).toEqual([400, "rest_image_too_large"]);
    const processed = await decodesOf(() => narrow.postProcess(huge.id));
    expect(processed.result.body.media_details.sizes).toEqual({});
    expect([edited.decodes, processed.decodes]).toEqual([0, 0]);
    expect((await decodesOf(() => narrow.send("a.jpg", jpeg))).decodes).toBe(2);
  });

  test("E39: modifiers beyond reason are refused, and leave nothing", async () => {
    const { send, edit, files } = siteWith();
    const { body: own } = await send("own.jpg", await photo());
    const before = await stored(files);
    const crop = (left: unknown, top: unknown, width: unknown, height: unknown) =>
      ({ type: "crop", args: { left, top, width, height } }) as never;
    const wrong = [
      Array.from({ length: 11 }, () => rotate(90)),
      Array.from({ length: 10_000 }, () => rotate(90)),
      [rotate(1e308)],
      [rotate(-1e308)],
      [rotate("NaN" as never)],
      [rotate("Infinity" as never)],
      [rotate("1e999" as never)],
      [rotate(null as never)],
      [rotate([90] as never)],
      [crop(0, 0, 0, 0)],
      [crop(100, 0, 50, 50)],
      [crop(0, 100.1, 50, 50)],
      [crop(-50, 0, 50, 50)],
      [crop(-1e308, 0, 50, 50)],
      [crop(0, 0, -10, 50)],
      [crop("NaN", 0, 50, 50)],
      [crop(1e308, 1e308, 1e308, 1e308)],
      [crop({}, 0, 50, 50)],
      [crop(0, 0, 1e-300, 1e-300)],
      [rotate(90), crop(0, 0, 0.01, 50)],
    ];
    for (const modifiers of wrong) {
      const answer = await edit(own.id, { src: own.source_url, modifiers });
      expect(answer.status, JSON.stringify(modifiers).slice(0, 80)).toBe(400);
    }
    for (const older of [
      { rotation: 0 },
      { rotation: 360 },
      { rotation: 1e308 },
      { x: 0, y: 0, width: 0, height: 0 },
    ]) {
      expect((await edit(own.id, { src: own.source_url, ...older })).status).toBe(400);
    }
    expect(await stored(files)).toEqual(before);
    const inside = await edit(own.id, { src: own.source_url, modifiers: [crop(50, 50, 100, 1e308)] });
    expect(inside.body.media_details).toMatchObject({ width: 200, height: 150 });
    const tiny = Array.from({ length: 10 }, () => crop(0, 0, 50, 50));
    const last = await edit(own.id, { src: own.source_url, modifiers: tiny });
    expect(last.body.media_details).toMatchObject({ width: 1, height: 1 });
    const dot = await edit(own.id, { src: own.source_url, modifiers: [crop(0, 0, 0.25, 0.34)] });
    expect(dot.body.media_details).toMatchObject({ width: 1, height: 1 });
  });

  test("E39: a strip is not turned into a bomb", async () => {
    const { send, edit, files } = siteWith();
    const { body: strip } = await send("strip.png", pngOf(40_000, 10));
    const before = await stored(files);
    const { result, decodes } = await decodesOf(() =>
      edit(strip.id, { src: strip.source_url, modifiers: [rotate(45)] }),
    );
    expect([result.status, result.body.code, decodes]).toEqual([400, "rest_image_rotation_failed", 0]);
    expect(await stored(files)).toEqual(before);
  });
});

describe("an upload", () => {
  test("E40: of 14,000 × 14,000 pixels is refused by its header, before anything is stored or decoded", async () => {
    const { tool, reads } = watchedTool();
    const { send, files } = siteWith({ images: tool });
    const bomb = pngOf(14_000, 14_000);
    expect(bomb.length).toBeLessThan(100_000);
    const { result, decodes } = await decodesOf(() => send("bomb.png", bomb));
    expect([result.status, result.body.code, decodes]).toEqual([400, "rest_upload_image_too_large", 0]);
    expect(reads()).toBe(0);
    expect(await stored(files)).toEqual([]);
  });

  test("E40: that claims 65,535 × 65,535 pixels is refused, as a GIF and a WebP too", async () => {
    const { send, files } = siteWith();
    const gif = await plain(8, 8).gif().toBuffer();
    gif.writeUInt16LE(65_535, 6);
    gif.writeUInt16LE(65_535, 8);
    const webp = await plain(8, 8).webp().toBuffer();
    const extended = Buffer.concat([
      webp.subarray(0, 12),
      Buffer.from("VP8X\x0a\0\0\0\0\0\0\0\xff\xff\0\xff\xff\0", "latin1"),
      webp.subarray(12),
    ]);
    for (const [name, bytes] of [
      ["claim.jpg", await jpegClaiming(65_535, 65_535)],
      ["claim.gif", gif],
      ["claim.webp", extended],
    ] as const) {
      const { result, decodes } = await decodesOf(() => send(name, bytes));
      expect([result.status, result.body.code, decodes], name).toEqual([
        400,
        "rest_upload_image_too_large",
        0,
      ]);
    }
    expect(await stored(files)).toEqual([]);
  });

  test("E40: whose size stands behind a megabyte of metadata is bounded like any other", async () => {
    const { send, edit, files } = siteWith();
    const bomb = withMetadata(await jpegClaiming(14_000, 14_000), 2 * MEGABYTE);
    const refused = await send("bomb.jpg", bomb);
    expect([refused.status, refused.body.code]).toEqual([400, "rest_upload_image_too_large"]);
    const endless = await send("endless.jpg", bomb.subarray(0, 2 * MEGABYTE));
    expect([endless.status, endless.body.code]).toEqual([400, "rest_upload_sideload_error"]);
    expect(await stored(files)).toEqual([]);
    const large = withMetadata(await plain(7_000, 7_000).jpeg({ quality: 30 }).toBuffer(), 2 * MEGABYTE);
    const { body } = await siteWith({ files, images: undefined }).send("large.jpg", large);
    expect(body.media_details).toMatchObject({ width: 7_000, height: 7_000 });
    const { body: own } = await send("large.jpg", large);
    const answer = await edit(own.id, { src: own.source_url, modifiers: [rotate(45)] });
    expect([answer.status, answer.body.code]).toEqual([400, "rest_image_rotation_failed"]);
  });

  test("E40: whose header lies about the pixels that follow costs what the header says", async () => {
    const { send } = siteWith();
    const { result, grown } = await costOf(async () => send("lie.jpg", await jpegClaiming(7_000, 7_000)));
    expect(result.status).toBe(201);
    expect(grown).toBeLessThan(400 * MEGABYTE);
  });

  test("E40: of 100,000 frames is stored as it came, and no frame is decoded", async () => {
    const { send, files } = siteWith();
    const bytes = await gifOf(100_000, 200);
    const before = decoder.calls;
    const { result, grown } = await costOf(() => expectTurning(100, () => send("film.gif", bytes)));
    expect(decoder.calls).toBe(before);
    expect(result.status).toBe(201);
    expect(result.body.media_details.sizes).toEqual({});
    expect((await bytesOf(files, result.body.source_url)).equals(bytes)).toBe(true);
    expect(grown).toBeLessThan(12 * bytes.length + 100 * MEGABYTE);
  });

  test("E40: with compressed texts and profiles that swell is bounded in memory", async () => {
    const swollen = deflateSync(Buffer.alloc(300 * MEGABYTE));
    const zTXt = pngChunk("zTXt", Buffer.concat([Buffer.from("Comment\0\0", "latin1"), swollen]));
    const iCCP = pngChunk("iCCP", Buffer.concat([Buffer.from("icc\0\0", "latin1"), swollen]));
    for (const chunks of [[zTXt], [iCCP], Array.from({ length: 20 }, () => zTXt)]) {
      const { send, edit } = siteWith();
      const { result, grown } = await costOf(() => send("swell.png", pngOf(400, 300, ...chunks)));
      expect(result.status).toBe(201);
      expect(grown).toBeLessThan(150 * MEGABYTE);
      const edited = await costOf(() =>
        edit(result.body.id, { src: result.body.source_url, modifiers: [rotate(90)] }),
      );
      expect(edited.result.status).toBe(201);
      expect(edited.grown).toBeLessThan(150 * MEGABYTE);
    }
  });

  test("E40: one of many at once waits or goes without sizes; the event loop goes on", async () => {
    const { send, postProcess } = siteWith({ images: sharpImages({ concurrency: 1, maxWaiting: 2 }) });
    const bytes = await photo(3_000, 2_000);
    const result = await expectTurning(100, () =>
      Promise.all(Array.from({ length: 10 }, (_, index) => send(`many-${index}.jpg`, bytes))),
    );
    expect(result.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 201));
    const bare = result.filter(({ body }) => body.missing_image_sizes.length > 0);
    expect(bare.length).toBe(7);
    const later = await postProcess(bare[0]?.body.id);
    expect(later.body).toMatchObject({
      missing_image_sizes: [],
      media_details: { original_image: bare[0]?.body.filename },
    });
  });

  test("E41, E42: polyglots are what their first bytes say, served as that and nothing else", async () => {
    const { send, site, files } = siteWith();
    const html = Buffer.from("<html><script>alert(document.domain)</script></html>");
    const php = Buffer.from("<?php system($_GET['c']); ?>");
    for (const tail of [html, php, Buffer.from("%!PS-Adobe"), Buffer.from("PK\x03\x04")]) {
      const { status, body } = await send("poly.jpg", Buffer.concat([await photo(), tail]));
      expect([status, body.mime_type]).toEqual([201, "image/jpeg"]);
      const path = String(body.source_url).replace("http://localhost/uploads", "");
      const served = await site.uploads.handle({
        method: "GET",
        path,
        query: "",
        headers: {},
        body: null,
        baseUrl: "",
      });
      expect(served?.headers).toMatchObject({
        "content-type": "image/jpeg",
        "x-content-type-options": "nosniff",
      });
      // Nothing of what stands behind the picture goes into a version of it.
      const { sizes } = body.media_details;
      expect((await bytesOf(files, sizes.medium.source_url)).includes(tail)).toBe(false);
      expect((await bytesOf(files, body.source_url)).includes(tail)).toBe(true);
    }
    // Read as a GIF, the comment that a script would begin with says 10,799 × 26,684 pixels.
    const { status, body } = await send("gifar.gif", Buffer.concat([Buffer.from("GIF89a/*"), html]));
    expect([status, body.code]).toEqual([400, "rest_upload_image_too_large"]);
  });

  test("E41, E42: a comment in an image does not go into its versions", async () => {
    const { send, files } = siteWith();
    const bytes = await plain(400, 300)
      .withExif({ IFD0: { Copyright: "<script>alert(1)</script>" } })
      .jpeg()
      .toBuffer();
    expect(bytes.includes("<script>")).toBe(true);
    const { body } = await send("exif.jpg", bytes);
    expect((await bytesOf(files, body.media_details.sizes.medium.source_url)).includes("<script>")).toBe(
      false,
    );
  });

  test("E41, E42: names get a safe form, and versions theirs from it", async () => {
    const { send } = siteWith();
    const bytes = await photo();
    for (const name of [
      "a.php.jpg",
      "../../../etc/cron.d/x.jpg",
      "CON.jpg",
      `${"n".repeat(300)}.jpg`,
      `${"字".repeat(300)}.jpg`,
      "x\u202egpj.exe.jpg",
      "label:@/etc/passwd.jpg",
      "MSL:x.jpg",
      ".htaccess.jpg",
      "a b\r\nSet-Cookie: x.jpg",
      "-rf.jpg",
    ]) {
      const { status, body } = await send(name, bytes);
      expect(status, name).toBe(201);
      const file = String(body.media_details.sizes.medium.file);
      expect(file).toMatch(/^[\p{L}\p{N}_][\p{L}\p{N}\p{M}._-]*-300x225(?:-\d+)?\.jpg$/u);
      expect(Buffer.byteLength(file)).toBeLessThan(255);
      expect(file).not.toMatch(/\.php\b(?!_)|^con\.|\.\./i);
    }
    for (const name of ["a.jpg\0.php", "x.svg", "x.eps", "x.svgz", "x.heic", "x.tiff", "x.jpg.php", "x"]) {
      expect((await send(name, bytes)).body.code, name).toBe("rest_upload_sideload_error");
    }
  });

  test("E43: versions are served like any file", async () => {
    const { send, site } = siteWith();
    const { body } = await send("a.jpg", await photo());
    const path = String(body.media_details.sizes.thumbnail.source_url).replace(
      "http://localhost/uploads",
      "",
    );
    const served = await site.uploads.handle({
      method: "GET",
      path,
      query: "",
      headers: {},
      body: null,
      baseUrl: "",
    });
    expect(served?.status).toBe(200);
    expect(served?.headers).toMatchObject({
      "content-type": "image/jpeg",
      "x-content-type-options": "nosniff",
    });
  });

  test("E44: a header of 64 KB is read in linear time", async () => {
    const { send } = siteWith();
    const bytes = await photo();
    const many = (count: number) => Array.from({ length: count }, (_, at) => `; x${at}=1`).join("");
    for (const [header, expected] of [
      [`attachment; ${'a="'.repeat(21_000)}`, [400, "rest_upload_invalid_disposition"]],
      [`attachment; filename="${"\\".repeat(65_000)}`, [400, "rest_upload_invalid_disposition"]],
      [`attachment${many(8_000)}; filename=a.jpg`, [400, "rest_upload_invalid_disposition"]],
      ["attachment; filename=a.jpg\r\nX-Injected: 1", [400, "rest_upload_invalid_disposition"]],
      // As long as one may be, with as much as fits in.
      [`attachment${many(1_000)}; filename=a.jpg`, [201, "a.jpg"]],
      [`attachment; filename="${"\\\\".repeat(4_000)}b.jpg"`, [201, "b.jpg"]],
    ] as const) {
      const { status, body } = await expectAtMost(50, () =>
        send("", bytes, "administrator", { "content-disposition": header }),
      );
      expect([status, body.code ?? body.source_url.split("/").at(-1)]).toEqual(expected);
    }
  });

  test("E45: a wrong digest of an image leaves neither it nor a version", async () => {
    const { send, files } = siteWith();
    const { status } = await send("a.jpg", await photo(), "administrator", { "content-md5": "0".repeat(32) });
    expect(status).toBe(412);
    expect(await stored(files)).toEqual([]);
  });
});
