/**
 * Checks of an upload that need no storage: its name, its header, its type and its dimensions.
 */

import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isFileName } from "../../../src/content/files.js";
import { titleFromFileName, toBaseName } from "../../../src/content/media/file-name.js";
import { imageSize } from "../../../src/content/media/image-size.js";
import { detectMediaType, findMimeType, hasBinary } from "../../../src/content/media/media-type.js";
import { readFileName, readParameters } from "../../../src/http/content-disposition.js";
import { expectLinear } from "../../support/cpu-time.js";

const fixtures = JSON.parse(
  readFileSync(new URL("../../conformance/fixtures.json", import.meta.url), "utf8"),
) as Record<string, { base64: string }>;
const fixture = (name: string): Buffer => Buffer.from(fixtures[name]?.base64 ?? "", "base64");
const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");

const hostileText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  fc
    .array(
      fc.constantFrom(
        "..",
        "/",
        "\\",
        ".",
        "-",
        "_",
        "\0",
        "php",
        "\u202e",
        "\u0301",
        "ä",
        "CON",
        "%20",
        "\ud800",
        "😀",
        " ",
      ),
      { maxLength: 60 },
    )
    .map((parts) => parts.join("")),
);

describe("the name of a stored file", () => {
  test.each([
    ["heart.png", "heart"],
    ["my photo (1).png", "my-photo-1"],
    ["a%20b+c\u00a0d\te.png", "a-b-c-d-e"],
    ["_ÄÖ.png", "AO"],
    ["Straße Łódź.png", "Strase-Lodz"],
    ["'quote.png", "quote"],
    ["x--dash..dot.png", "x-dash.dot_"],
    ["x.php.png", "x.php_"],
    ["a.jpg.png", "a.jpg"],
    ["photo.v2.png", "photo.v2"],
    ["a.php\0.jpg", "a.php_"],
    ["../../etc/passwd.png", "passwd"],
    ["C:\\dir\\photo.png", "photo"],
    [".png", "unnamed-file"],
    ["...png", "unnamed-file"],
    ["😀?.png", "unnamed-file"],
    ["CON.png", "CON_"],
    ["com1.txt", "com1_"],
    ["lpt0.x.png", "lpt0_.x"],
    ["console.png", "console"],
    ["exe\u202egnp.png", "exegnp"],
    ["a\u200bb\u3164.png", "ab"],
    ["心臓.png", "心臓"],
    ["हिंदी.png", "हिंदी"],
    ["__proto__.png", "proto"],
    ["\u0301a.png", "a"],
  ])("of %j is %j", (given, expected) => {
    expect(toBaseName(given)).toBe(expected);
  });

  test("is cut between characters, below the bounds of file systems", () => {
    const long = toBaseName(`${"ü😀心".repeat(200)}.png`);
    expect(Buffer.byteLength(long)).toBeLessThanOrEqual(180);
    expect(toBaseName(`${"心".repeat(100)}.png`)).toBe("心".repeat(60));
    expect(toBaseName(`${"a".repeat(300)}.png`)).toBe("a".repeat(180));
  });

  test.each([
    ["a sign at the end", `${"a".repeat(179)}.bbbb.jpg`, "a".repeat(179)],
    ["several signs at the end", `${"a".repeat(177)}.-_b.jpg`, "a".repeat(177)],
    ["an extension whose mark is cut off", `${"a".repeat(175)}.php5.jpg`, `${"a".repeat(175)}.php_`],
    ["an extension that was longer", `${"a".repeat(175)}.phplonger.jpg`, `${"a".repeat(175)}.php_`],
    ["an extension with room for its mark", `${"a".repeat(175)}.php.jpg`, `${"a".repeat(175)}.php_`],
    ["an extension of one letter more", `${"a".repeat(176)}.php.jpg`, `${"a".repeat(176)}.ph_`],
    ["half an extension", `${"a".repeat(177)}.php.jpg`, `${"a".repeat(177)}.p`],
    ["a device that was longer", `con.${"-_".repeat(100)}a.jpg`, "con_"],
  ])("that is cut at %s is still safe", (_, given, expected) => {
    expect(toBaseName(given)).toBe(expected);
  });

  test("is safe wherever it is cut", () => {
    const piece = fc.constantFrom(".", "-", "_", "php", "phtml5", "exe", "心", "a", "\u0301");
    fc.assert(
      fc.property(fc.integer({ min: 165, max: 182 }), fc.array(piece, { maxLength: 12 }), (length, end) => {
        const base = toBaseName(`${"a".repeat(length)}${end.join("")}.jpg`);
        expect(Buffer.byteLength(base)).toBeLessThanOrEqual(180);
        expect(base).not.toMatch(/[.-]$|\.(?:php|phtml5?|exe)(?:\.|$)/);
      }),
      { numRuns: 1_000 },
    );
  });

  test("can name a file, whatever the client sends", () => {
    fc.assert(
      fc.property(hostileText, fc.constantFrom("", ".png", ".tar.gz"), (text, end) => {
        const base = toBaseName(text + end);
        expect(isFileName(`2026/11/${base}-1.png`)).toBe(true);
        expect(base).not.toContain("..");
      }),
      { numRuns: 500 },
    );
  });

  test("is found in linear time", async () => {
    for (const part of [".", "-", " ", "a.", "\u0301", "a\u0301", "%20", "/", "\u202e"]) {
      await expectLinear(200_000, (size) => [
        toBaseName(part.repeat(size)),
        titleFromFileName(part.repeat(size)),
      ]);
    }
  });

  test("and the title keep what a reader sees", () => {
    expect(titleFromFileName("my photo (1).png")).toBe("my photo (1)");
    expect(titleFromFileName("C:\\x\\Ä'q.tar.gz")).toBe("Ä'q.tar");
    expect(titleFromFileName("exe\u202egnp\0.png")).toBe("exegnp");
    expect(titleFromFileName(".png")).toBe("");
    expect(titleFromFileName("bare")).toBe("bare");
  });
});

describe("a Content-Disposition header", () => {
  test.each([
    ["attachment; filename=a.png", "a.png"],
    ['attachment; filename="a.png"', "a.png"],
    ["attachment;filename=a.png", "a.png"],
    ['attachment ; x=1;\tfilename = "a b;c.png" ; y', "a b;c.png"],
    ["attachment; filename='a.png'", "'a.png'"],
    ['attachment; filename="a \\"b\\" \\\\c.png"', 'a "b" \\c.png'],
    ['attachment; filename="C:\\dir\\a.png"', "C:\\dir\\a.png"],
    ["inline; filename=a.png", "a.png"],
    ["attachment; flag; filename=a.png", "a.png"],
    ["attachment; filename=a=b.png", "a=b.png"],
    [`attachment; filename="${latin1("").toString()}${Buffer.from("ü.png").toString("latin1")}"`, "ü.png"],
    ['attachment; filename="\u00fc.png"', "ü.png"],
    ["attachment; filename=x.png; filename*=UTF-8''na%C3%AFve%20x.png", "naïve x.png"],
    ["attachment; filename*=utf-8'en'a.png", "a.png"],
    ["attachment; filename*=UTF-8''it's.jpg", "it's.jpg"],
    ["attachment; filename*=UTF-8''''.jpg", "''.jpg"],
  ])("%j names %j", (header, name) => {
    expect(readFileName(header)).toBe(name);
  });

  test.each([
    "",
    "inline",
    "attachment",
    'attachment; name="x.png"',
    "filename=x.png",
    "attachment; filename=",
    'attachment; filename=""',
    "ATTACHMENT; FILENAME=e.png",
    'attachment; filename="a.png',
    'attachment; filename="a.png"x',
    'attachment; filename="a\\"',
    "attachment; filename=a.png; filename=b.png",
    "attachment; filename=a\r\nX: y.png",
    "attachment; filename=a\0.png",
    "attachment; filename*=a.png",
    "attachment; filename*=UTF-8'a.png",
    "attachment; filename*=it's UTF-8''a.png",
    "attachment; filename*=UTF-8''%ff.png",
    "attachment; filename*=UTF-8''%E0%A4%A.png",
    "attachment; filename*=x-unknown''a.png",
    `attachment; filename="${"a".repeat(65_536)}"`,
    "attachment; filename",
  ])("%j names nothing", (header) => {
    expect(readFileName(header)).toBeUndefined();
  });

  test("of any form is read in linear time, and never throws", async () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => void readFileName(text)));
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(";", "=", '"', "\\", "filename", "*", "'", " ", "a"), { maxLength: 80 }),
        (parts) => {
          const name = readFileName(parts.join(""));
          expect(name === undefined || name.length > 0).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
    for (const part of [";", "a;", "a=;", '"', "\\", ";a=b", " "]) {
      await expectLinear(8_000, (size) => {
        for (let round = 0; round < 20; round += 1) readParameters(part.repeat(size / part.length));
      });
      await expectLinear(500_000, (size) => readParameters(part.repeat(size)));
    }
  });

  test("has parameters that touch no prototype", () => {
    expect(readParameters("x; __proto__=1; constructor=2")).toEqual(
      new Map([
        ["__proto__", "1"],
        ["constructor", "2"],
      ]),
    );
  });
});

const RIFF = (kind: string): string => `RIFF\x10\0\0\0${kind}`;
const FTYP = (major: string, ...compatible: string[]): string =>
  `\0\0\0${String.fromCharCode(16 + 4 * compatible.length)}ftyp${major}\0\0\0\0${compatible.join("")}`;
const ZIP = (first: string): string => `PK\x03\x04${"\0".repeat(26)}${first}`;

describe("the type of a file", () => {
  test.each([
    ["a.png", "\x89PNG\r\n\x1a\n", "image/png"],
    ["a.JPG", "\xff\xd8\xff\xe0", "image/jpeg"],
    ["a.jpe", "\xff\xd8\xff\xe1", "image/jpeg"],
    ["a.gif", "GIF89a", "image/gif"],
    ["a.webp", RIFF("WEBPVP8 "), "image/webp"],
    ["a.avif", FTYP("avif"), "image/avif"],
    ["a.avif", FTYP("mif1", "miaf", "avif"), "image/avif"],
    ["a.pdf", "%PDF-1.7\n", "application/pdf"],
    ["a.mp4", FTYP("isom", "mp42"), "video/mp4"],
    ["a.m4a", FTYP("M4A "), "audio/mp4"],
    ["a.mov", FTYP("qt  "), "video/quicktime"],
    ["a.webm", "\x1aE\xdf\xa3", "video/webm"],
    ["a.ogg", "OggS\0", "audio/ogg"],
    ["a.ogv", "OggS\0", "video/ogg"],
    ["a.wav", RIFF("WAVEfmt "), "audio/wav"],
    ["a.flac", "fLaC\0", "audio/flac"],
    ["a.mp3", "ID3\x04", "audio/mpeg"],
    ["a.mp3", "\xff\xfb\x90\x64", "audio/mpeg"],
    ["a.aac", "\xff\xf1\x50\x80", "audio/aac"],
    [
      "a.docx",
      ZIP("[Content_Types].xml"),
      "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ],
    [
      "a.odt",
      ZIP("mimetypeapplication/vnd.oasis.opendocument.text"),
      "application/vnd.oasis.opendocument.text",
    ],
    ["a.txt", "Grüße\r\n\tTab", "text/plain"],
    ["a.txt", "\xef\xbb\xbfwith a mark", "text/plain"],
    ["a.txt", "1 < 2", "text/plain"],
    ["a.csv", "a,b\n1,2", "text/csv"],
    ["a.vtt", "WEBVTT\n", "text/vtt"],
    ["photo.php.png", "\x89PNG\r\n\x1a\n", "image/png"],
  ])("%j that begins with %j is %s", (name, head, mimeType) => {
    const type = detectMediaType(name, latin1(head));
    expect(type?.mimeType).toBe(mimeType);
    expect(findMimeType(`2026/11/a.${type?.extension}`)).toBe(mimeType);
    expect(type?.isText).toBe(mimeType.startsWith("text/"));
  });

  test("of an image wins over a name that says another kind of image", () => {
    expect(detectMediaType("a.jpg", fixture("small.png"))).toMatchObject({
      mimeType: "image/png",
      extension: "png",
    });
    expect(detectMediaType("a.webp", fixture("photo.jpg"))).toMatchObject({
      mimeType: "image/jpeg",
      extension: "jpg",
    });
    expect(detectMediaType("a.jpeg", fixture("photo.jpg"))).toMatchObject({
      mimeType: "image/jpeg",
      extension: "jpeg",
    });
  });

  test.each([
    ["a.svg", "<svg xmlns='http://www.w3.org/2000/svg'>"],
    ["a.png", "<svg xmlns='http://www.w3.org/2000/svg'>"],
    ["a.html", "<html>"],
    ["a.php", "plain"],
    ["a.php", "<?php"],
    ["a.js", "alert(1)"],
    ["a.xml", "<?xml?>"],
    ["a.exe", "MZ\x90\0"],
    ["a.zip", ZIP("a.txt")],
    ["a.docx", ZIP("evil.exe")],
    ["a.odt", ZIP("mimetypeapplication/zip")],
    ["a.gz", "\x1f\x8b\x08"],
    ["a.ps", "%!PS-Adobe"],
    ["a.heic", FTYP("heic")],
    ["a.mp4", FTYP("heic")],
    ["a.avif", FTYP("mif1", "heic")],
    ["a.mp4", FTYP("avif")],
    ["a.txt", "<!DOCTYPE html>"],
    ["a.txt", "\xef\xbb\xbf \n<SCRIPT>"],
    ["a.txt", "<?php"],
    ["a.csv", "%!PS-Adobe"],
    ["a.txt", "#!/bin/sh"],
    ["a.txt", "%PDF-1.7"],
    ["a.txt", "\x89PNG\r\n\x1a\n"],
    ["a.txt", "with a NUL \0"],
    ["a.txt", "\x1f\x8b\x08"],
    ["a.txt", "\xff\xfeu\0t\0f\0"],
    ["a.txt", ""],
    ["a.png", "this is not an image"],
    ["a.png", ""],
    ["a.jpg", "<html><body>"],
    ["a.jpg", "%PDF-1.7"],
    ["a.pdf", "\xff\xd8\xff\xe0"],
    ["a.webp", RIFF("WAVE")],
    ["a.webp", RIFF("constructor")],
    ["a.wav", RIFF("AVI ")],
    ["a.mp3", "\xff\xff\xff\xff"],
    [".htaccess", "text"],
    ["bare", "text"],
    ["a.png'", "\x89PNG\r\n\x1a\n"],
    ["a.jpg\0.php", "\xff\xd8\xff\xe0"],
    ["photo\u202egnp.exe", "\x89PNG\r\n\x1a\n"],
    ["FORMAT:a", "text"],
    ["a.__proto__", "text"],
    ["a.constructor", "text"],
  ])("%j that begins with %j is refused", (name, head) => {
    expect(detectMediaType(name, latin1(head))).toBeUndefined();
  });

  test("is text only without control characters", () => {
    expect(hasBinary(latin1("a\tb\r\n\f\x1b é"))).toBe(false);
    for (const code of [0, 1, 8, 11, 14, 26, 28, 31]) expect(hasBinary(Uint8Array.of(97, code))).toBe(true);
  });

  test("is judged of any bytes without an exception", () => {
    const starts = ["\0\0\0\x20ftypmif1", "\0\0\0\xffftypheic", "PK\x03\x04", "RIFF", "\xff\xf1", "ID3", ""];
    fc.assert(
      fc.property(
        fc.constantFrom(...starts),
        fc.uint8Array({ maxLength: 64 }),
        fc.constantFrom("a.avif", "a.docx", "a.txt", "a.mp3"),
        (start, more, name) => {
          expect(() => detectMediaType(name, Buffer.concat([latin1(start), more]))).not.toThrow();
        },
      ),
      { numRuns: 500 },
    );
  });
});

const u16 = (value: number, isLittle = false): Buffer => {
  const bytes = Buffer.alloc(2);
  if (isLittle) bytes.writeUInt16LE(value);
  else bytes.writeUInt16BE(value);
  return bytes;
};
const u32 = (value: number, isLittle = false): Buffer => {
  const bytes = Buffer.alloc(4);
  if (isLittle) bytes.writeUInt32LE(value);
  else bytes.writeUInt32BE(value);
  return bytes;
};
const box = (kind: string, ...content: Uint8Array[]): Buffer => {
  const inner = Buffer.concat(content);
  return Buffer.concat([u32(8 + inner.length), latin1(kind), inner]);
};
const ispe = (width: number, height: number): Buffer => box("ispe", u32(0), u32(width), u32(height));
const avif = (...properties: Buffer[]): Buffer =>
  Buffer.concat([
    box("ftyp", latin1("avif"), u32(0)),
    box("meta", u32(0), box("hdlr", u32(0)), box("iprp", box("ipco", ...properties))),
    box("mdat", Buffer.alloc(20)),
  ]);

function png(width: number, height: number): Buffer {
  return Buffer.concat([
    latin1("\x89PNG\r\n\x1a\n"),
    u32(13),
    latin1("IHDR"),
    u32(width),
    u32(height),
    Buffer.alloc(9),
  ]);
}

const segment = (marker: number, ...content: Uint8Array[]): Buffer => {
  const inner = Buffer.concat(content);
  return Buffer.concat([Uint8Array.of(0xff, marker), u16(inner.length + 2), inner]);
};
const frame = (width: number, height: number, marker = 0xc0): Buffer =>
  segment(marker, Uint8Array.of(8), u16(height), u16(width), Uint8Array.of(1, 1, 17, 0));
const jpeg = (...segments: Buffer[]): Buffer => Buffer.concat([Uint8Array.of(0xff, 0xd8), ...segments]);
const exif = (orientation: number, isLittle = true): Buffer =>
  segment(
    0xe1,
    latin1("Exif\0\0"),
    latin1(isLittle ? "II" : "MM"),
    u16(42, isLittle),
    u32(8, isLittle),
    u16(2, isLittle),
    Buffer.concat([u16(0x010f, isLittle), u16(2, isLittle), u32(4, isLittle), u32(0, isLittle)]),
    Buffer.concat([
      u16(0x0112, isLittle),
      u16(3, isLittle),
      u32(1, isLittle),
      u16(orientation, isLittle),
      u16(0),
    ]),
  );

describe("the dimensions of an image", () => {
  test.each([
    ["small.png", "image/png", 64, 48],
    ["small.gif", "image/gif", 64, 48],
    ["small.webp", "image/webp", 64, 48],
    ["photo.jpg", "image/jpeg", 400, 300],
    ["dot.png", "image/png", 1, 1],
  ])("of %s are read from its bytes", (name, mimeType, width, height) => {
    expect(imageSize(mimeType, fixture(name))).toEqual({ width, height, orientation: 1 });
  });

  test("of the lossless and the extended form of WebP", () => {
    const bits = u32(((31 - 1) << 14) | (70 - 1), true);
    const lossless = Buffer.concat([latin1(`${RIFF("WEBP")}VP8L\x0a\0\0\0\x2f`), bits]);
    expect(imageSize("image/webp", lossless)).toMatchObject({ width: 70, height: 31 });
    const extended = Buffer.concat([
      latin1(`${RIFF("WEBP")}VP8X\x0a\0\0\0\0\0\0\0`),
      u32(69_999, true).subarray(0, 3),
      u32(1, true).subarray(0, 3),
    ]);
    expect(imageSize("image/webp", extended)).toMatchObject({ width: 70_000, height: 2 });
  });

  test("of AVIF are those of the largest picture in it", () => {
    expect(
      imageSize("image/avif", avif(ispe(64, 48), box("pixi", u32(0)), ispe(640, 480), ispe(8, 8))),
    ).toEqual({
      width: 640,
      height: 480,
      orientation: 1,
    });
    expect(imageSize("image/avif", avif())).toBeUndefined();
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])("of a JPEG follow its orientation %i", (orientation) => {
    for (const isLittle of [true, false]) {
      const turned = orientation > 4;
      expect(
        imageSize("image/jpeg", jpeg(segment(0xe0), exif(orientation, isLittle), frame(40, 30, 0xc2))),
      ).toEqual({
        width: turned ? 30 : 40,
        height: turned ? 40 : 30,
        orientation,
      });
    }
  });

  test("of a JPEG with odd but legal or broken data beside the picture", () => {
    const size = { width: 40, height: 30, orientation: 1 };
    const filler = Buffer.from([0xff, 0xff, 0xff]);
    expect(imageSize("image/jpeg", jpeg(filler, frame(40, 30)))).toEqual(size);
    expect(imageSize("image/jpeg", jpeg(Buffer.from([0xff, 0x01]), segment(0xc4), frame(40, 30)))).toEqual(
      size,
    );
    expect(imageSize("image/jpeg", jpeg(exif(0), frame(40, 30)))).toEqual(size);
    expect(imageSize("image/jpeg", jpeg(exif(9), frame(40, 30)))).toEqual(size);
    const lost = segment(0xe1, latin1("Exif\0\0II"), u16(42, true), u32(0xffffffff, true), Buffer.alloc(8));
    expect(imageSize("image/jpeg", jpeg(lost, frame(40, 30)))).toEqual(size);
    const endless = segment(
      0xe1,
      latin1("Exif\0\0II"),
      u16(42, true),
      u32(8, true),
      u16(65_535, true),
      Buffer.alloc(24),
    );
    expect(imageSize("image/jpeg", jpeg(endless, frame(40, 30)))).toEqual(size);
  });

  test("as large as a header can say are told, not decoded", () => {
    expect(imageSize("image/jpeg", jpeg(frame(65_535, 65_535)))).toMatchObject({
      width: 65_535,
      height: 65_535,
    });
    expect(imageSize("image/png", png(2 ** 31 - 1, 1))).toMatchObject({ width: 2 ** 31 - 1 });
  });

  test.each([
    ["a width of 0", "image/png", png(0, 5)],
    ["a height of 0", "image/png", png(5, 0)],
    ["more than a PNG may have", "image/png", png(2 ** 31, 5)],
    [
      "another chunk first",
      "image/png",
      Buffer.concat([latin1("\x89PNG\r\n\x1a\n"), u32(13), latin1("tEXt"), Buffer.alloc(20, 1)]),
    ],
    ["a GIF of no width", "image/gif", latin1("GIF89a\0\0\x01\0")],
    ["an unknown form of WebP", "image/webp", latin1(`${RIFF("WEBP")}XXXX${"\x01".repeat(30)}`)],
    ["a WebP frame without its start code", "image/webp", latin1(`${RIFF("WEBP")}VP8 ${"\x01".repeat(30)}`)],
    ["a JPEG without a frame", "image/jpeg", jpeg(segment(0xe0), segment(0xda), frame(4, 4))],
    ["a JPEG whose height comes later", "image/jpeg", jpeg(frame(40, 0))],
    ["a JPEG with a segment of length 0", "image/jpeg", jpeg(Buffer.from([0xff, 0xe0, 0, 0]), frame(4, 4))],
    ["a JPEG with no marker where one must be", "image/jpeg", jpeg(Buffer.from([1, 2, 3, 4]), frame(4, 4))],
    ["a form that is no image", "text/plain", latin1("abc")],
    ["a name of Object.prototype", "constructor", latin1("abc")],
  ])("are not told for %s", (_, mimeType, bytes) => {
    expect(imageSize(mimeType, bytes)).toBeUndefined();
  });

  test("are not told for what breaks off before them, at any byte, and any bytes do no harm", () => {
    const samples = {
      "image/png": png(5, 6),
      "image/gif": fixture("small.gif").subarray(0, 10),
      "image/webp": fixture("small.webp").subarray(0, 30),
      "image/jpeg": jpeg(exif(6), frame(40, 30)).subarray(0, -4),
      "image/avif": avif(ispe(5, 6)),
    };
    for (const [mimeType, whole] of Object.entries(samples)) {
      const needed = { "image/png": 24, "image/avif": whole.length - 28 }[mimeType] ?? whole.length;
      expect(imageSize(mimeType, whole.subarray(0, needed))).toBeDefined();
      for (let length = 0; length < needed; length += 1) {
        expect(imageSize(mimeType, whole.subarray(0, length))).toBeUndefined();
      }
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(whole.length), (noise, at) => {
          const bytes = Buffer.concat([whole.subarray(0, at), noise, whole.subarray(at)]);
          const size = imageSize(mimeType, bytes);
          expect(size === undefined || (size.width > 0 && size.height > 0)).toBe(true);
        }),
      );
    }
  });

  test("are looked for in linear time", async () => {
    const many = (length: number, one: () => Buffer): Buffer[] => Array.from({ length }, one);
    const hostile: [string, number, (size: number) => Buffer][] = [
      ["image/jpeg", 1_048_576, (size) => Buffer.alloc(size, 0xff)],
      [
        "image/jpeg",
        200_000,
        (size) => jpeg(Buffer.concat(many(size, () => Buffer.from([0xff, 0xe0, 0, 2])))),
      ],
      ["image/jpeg", 20_000, (size) => jpeg(Buffer.concat(many(size, () => exif(1))))],
      ["image/avif", 50_000, (size) => avif(...many(size, () => box("free")))],
      [
        "image/avif",
        50_000,
        (size) => Buffer.concat(many(size, () => Buffer.concat([u32(0x7fffffff), latin1("iprp")]))),
      ],
    ];
    for (const [mimeType, size, bytesOf] of hostile) {
      await expectLinear(size, (length) => imageSize(mimeType, bytesOf(length)));
    }
  });
});
