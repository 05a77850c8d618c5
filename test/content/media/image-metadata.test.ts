import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import { sharpImages } from "../../../adapters/sharp/index.js";
import { readImageMetadata } from "../../../src/content/media/image-metadata.js";
import { memoryFiles } from "../../../storage/files/index.js";
import type { RunningHost } from "../../contracts/adapter.js";
import { contentSite, credentials, type Role } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";
import { send } from "../../support/http-client.js";
import { plain } from "../../support/images.js";

const EMPTY = {
  aperture: "0",
  credit: "",
  camera: "",
  caption: "",
  created_timestamp: "0",
  copyright: "",
  focal_length: "0",
  iso: "0",
  shutter_speed: "0",
  title: "",
  orientation: "0",
  keywords: [],
  alt: "",
};

type Directories = Parameters<ReturnType<typeof plain>["withExif"]>[0];

const photo = (exif: Directories): Promise<Buffer> => plain(40, 30).jpeg().withExif(exif).toBuffer();

const LONG = "A caption that has more than the seventy-nine characters that a title may have in WordPress.";

/** Puts a segment in front of the others. */
function withSegment(jpeg: Buffer, marker: number, contents: Buffer): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0]);
  head.writeUInt16BE(contents.length + 2, 2);
  return Buffer.concat([jpeg.subarray(0, 2), head, contents, jpeg.subarray(2)]);
}

const iptcField = (field: number, text: string | Buffer): Buffer => {
  const bytes = Buffer.from(text as string);
  const head = Buffer.from([0x1c, 2, field, 0, 0]);
  head.writeUInt16BE(bytes.length, 3);
  return Buffer.concat([head, bytes]);
};

/** As Photoshop writes it: a resource with the fields of IPTC. */
function withIptc(jpeg: Buffer, ...fields: readonly Buffer[]): Buffer {
  const data = Buffer.concat([Buffer.from([0x1c, 1, 90, 0, 3, 0x1b, 0x25, 0x47]), ...fields]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const name = Buffer.from("Photoshop 3.0\x008BIM\x04\x04\0\0", "latin1");
  return withSegment(jpeg, 0xed, Buffer.concat([name, length, data]));
}

const withXmp = (jpeg: Buffer, inner: string): Buffer =>
  withSegment(
    jpeg,
    0xe1,
    Buffer.from(
      `http://ns.adobe.com/xap/1.0/\0<x:xmpmeta><rdf:RDF><rdf:Description>${inner}</rdf:Description></rdf:RDF></x:xmpmeta>`,
    ),
  );

const read = (jpeg: Uint8Array) => readImageMetadata("image/jpeg", jpeg);

describe("the metadata of a photograph", () => {
  it("has EXIF's values, as numbers", async () => {
    const jpeg = await photo({
      IFD0: { Model: "Camera 7", Artist: "Ada", Copyright: "(C) Ada" },
      IFD2: {
        ExposureTime: "1/200",
        FNumber: "28/10",
        ISOSpeedRatings: "400",
        FocalLength: "50/3",
        DateTimeDigitized: "2026:11:23 10:20:30",
      },
    });
    expect(read(jpeg)).toMatchObject({
      camera: "Camera 7",
      credit: "Ada",
      copyright: "(C) Ada",
      shutterSpeed: 0.005,
      aperture: 2.8,
      iso: 400,
      focalLength: 16.666666666667,
      createdTimestamp: Date.UTC(2026, 10, 23, 10, 20, 30) / 1000,
    });
  });

  it.each([
    ["Short", undefined, { title: "Short", caption: "Short" }],
    [LONG, undefined, { caption: LONG }],
    ["Short", "A comment", { title: "Short", caption: "A comment" }],
    [LONG, "A comment", { caption: `${LONG} A comment` }],
    [undefined, "A comment", { title: "A comment", caption: "A comment" }],
  ])(
    "takes title and caption from the description %j and the comment %j",
    async (description, comment, expected) => {
      const { title, caption } =
        read(
          await photo({
            IFD0: { ...(description && { ImageDescription: description }) },
            IFD2: { ...(comment && { UserComment: comment }) },
          }),
        ) ?? {};
      expect({ title, caption }).toEqual({ title: undefined, ...expected });
    },
  );

  it("prefers the texts of IPTC", async () => {
    const jpeg = withIptc(
      await photo({ IFD0: { ImageDescription: "Theirs", Artist: "Theirs", Copyright: "Theirs" } }),
      iptcField(5, "The object"),
      iptcField(25, "heart"),
      iptcField(25, "Größe"),
      iptcField(55, "20261123"),
      iptcField(60, "102030+0100"),
      iptcField(80, "The creator"),
      iptcField(105, "The headline"),
      iptcField(110, "The agency"),
      iptcField(116, "The owner"),
      iptcField(120, "The caption"),
      iptcField(120, "Another one"),
    );
    expect(read(jpeg)).toMatchObject({
      title: "The headline",
      caption: "The caption",
      credit: "The agency",
      copyright: "The owner",
      keywords: ["heart", "Größe"],
      createdTimestamp: Date.UTC(2026, 10, 23, 9, 20, 30) / 1000,
    });
  });

  it("decodes what is not UTF-8 as Latin-1", async () => {
    const jpeg = withIptc(await photo({}), iptcField(105, Buffer.from("Größe", "latin1")));
    expect(read(jpeg)).toMatchObject({ title: "Größe" });
  });

  it.each([
    [
      '<rdf:Alt><rdf:li xml:lang="x-default">A &lt;red&gt; &amp; plain square</rdf:li></rdf:Alt>',
      "A & plain square",
    ],
    ['<rdf:Alt><rdf:li xml:lang="de">Rot</rdf:li><rdf:li xml:lang="x-default">Red</rdf:li></rdf:Alt>', "Red"],
    ['<rdf:Alt><rdf:li xml:lang="de">Rot</rdf:li></rdf:Alt>', "Rot"],
    ["<rdf:Alt></rdf:Alt>", undefined],
    ["<rdf:li>", undefined],
  ])("has the alternative text of XMP: %s", async (inner, altText) => {
    const element = "Iptc4xmpCore:AltTextAccessibility";
    const jpeg = withXmp(await photo({}), `<${element}>${inner}</${element}>`);
    expect(read(jpeg)?.altText).toBe(altText);
  });

  it("has no scripts, control characters or endless texts", async () => {
    const jpeg = withIptc(
      await photo({ IFD0: { Model: "<img src=x onerror=alert(1)>Camera" } }),
      iptcField(105, "a\x01\x1b[31m<script>alert(1)</script>"),
      iptcField(120, "x".repeat(30_000)),
      ...Array.from({ length: 1000 }, (_, index) => iptcField(25, `<iframe>${index}`)),
    );
    const metadata = read(jpeg);
    expect(JSON.stringify(metadata)).not.toMatch(/onerror|<script|<iframe|\\u00/);
    expect(metadata?.caption).toHaveLength(2000);
    expect(metadata?.keywords).toHaveLength(100);
  });

  it("is absent for other types, and if nothing is known", async () => {
    expect(read(await plain(4, 4).jpeg().toBuffer())).toBeUndefined();
    const png = await plain(4, 4)
      .png()
      .withExif({ IFD0: { Model: "Camera 7" } })
      .toBuffer();
    expect(readImageMetadata("image/png", png)).toBeUndefined();
  });
});

describe("hostile metadata", () => {
  /** A TIFF structure of little-endian 12-byte entries: tag, type, count, value. */
  function tiff(
    entries: readonly (readonly [number, number, number, number])[],
    count = entries.length,
  ): Buffer {
    const bytes = Buffer.alloc(10 + 12 * entries.length + 64);
    bytes.write("II*\0", "latin1");
    bytes.writeUInt32LE(8, 4);
    bytes.writeUInt16LE(count, 8);
    for (const [index, [tag, type, length, value]] of entries.entries()) {
      const at = 10 + 12 * index;
      bytes.writeUInt16LE(tag, at);
      bytes.writeUInt16LE(type, at + 2);
      bytes.writeUInt32LE(length, at + 4);
      bytes.writeUInt32LE(value, at + 8);
    }
    return bytes;
  }
  const withExif = (jpeg: Buffer, contents: Buffer): Buffer =>
    withSegment(jpeg, 0xe1, Buffer.concat([Buffer.from("Exif\0\0"), contents]));

  it("of a directory that leads to itself, or out of the file, has what is readable", async () => {
    const jpeg = await plain(4, 4).jpeg().toBuffer();
    const iso = [0x8827, 3, 1, 400] as const;
    for (const [name, contents] of Object.entries({
      itself: tiff([iso, [0x8769, 4, 1, 8]]),
      outside: tiff([iso, [0x8769, 4, 1, 0xffffffff]]),
      tooMany: tiff([iso], 0xffff),
      hugeText: tiff([iso, [0x010e, 2, 0xffffffff, 8]]),
      farText: tiff([iso, [0x010e, 2, 100, 0xfffffff0]]),
      unknownType: tiff([iso, [0x010e, 99, 1, 8]]),
      repeated: tiff([iso, [0x8827, 3, 1, 800]]),
      divisorZero: tiff([iso, [0x829d, 5, 1, 40]]),
    })) {
      expect([name, read(withExif(jpeg, contents))]).toEqual([name, { iso: 400 }]);
    }
  });

  it("never throws and stays small, wherever it is cut or changed", async () => {
    const jpeg = withXmp(
      withIptc(
        await photo({ IFD0: { ImageDescription: LONG }, IFD2: { FNumber: "4/1" } }),
        iptcField(105, "Title"),
      ),
      "<Iptc4xmpCore:AltTextAccessibility><rdf:li>Red</rdf:li></Iptc4xmpCore:AltTextAccessibility>",
    );
    for (let at = 0; at < jpeg.length; at += 1) {
      expect(JSON.stringify(read(jpeg.subarray(0, at)) ?? {}).length).toBeLessThan(20_000);
      for (const byte of [0x00, 0x1c, 0xff]) {
        const changed = Buffer.from(jpeg);
        changed[at] = byte;
        expect(JSON.stringify(read(changed) ?? {}).length).toBeLessThan(20_000);
      }
    }
  });
});

describe("an uploaded image", () => {
  let host: RunningHost;
  beforeAll(async () => {
    host = await listen(
      createServer(nodeAdapter(contentSite({ files: memoryFiles(), images: sharpImages() }))),
    );
  });
  afterAll(() => host.close());

  const post = async (path: string, as: Role, body: Uint8Array | string, headers: Record<string, string>) => {
    const reply = await send(host.origin, path, {
      method: "POST",
      headers: { authorization: credentials(as), ...headers },
      body,
    });
    return { status: reply.status, body: reply.json as ReturnType<typeof JSON.parse> };
  };
  const upload = (name: string, body: Uint8Array, as: Role = "author", query = "") =>
    post(`/core/v2/media${query}`, as, body, {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename=${name}`,
    });

  it("shows image_meta in WordPress's form", async () => {
    const jpeg = await photo({
      IFD0: { Model: "Camera 7", ImageDescription: "A red square" },
      IFD2: { FNumber: "28/10", FocalLength: "35/1" },
    });
    const { status, body } = await upload("photo.jpg", jpeg);
    expect(status).toBe(201);
    expect(body.media_details.image_meta).toEqual({
      ...EMPTY,
      aperture: "2.8",
      camera: "Camera 7",
      caption: "A red square",
      focal_length: "35",
      title: "A red square",
      orientation: "1",
    });
    const read = await send(host.origin, `/core/v2/media/${body.id}`);
    expect((read.json as typeof body).media_details.image_meta).toEqual(body.media_details.image_meta);
  });

  it("shows the empty form if the file says nothing", async () => {
    for (const [name, image] of [
      ["a.png", plain(4, 4).png()],
      ["a.webp", plain(4, 4).webp()],
      ["a.gif", plain(4, 4).gif()],
      ["a.jpg", plain(4, 4).jpeg()],
    ] as const) {
      const { body } = await upload(name, await image.toBuffer());
      expect([name, body.media_details.image_meta]).toEqual([name, EMPTY]);
    }
    const text = await upload("a.txt", Buffer.from("hello"));
    expect(text.body.media_details).toEqual({ filesize: 5, sizes: {} });
  });

  it("is upright if a version of it was turned", async () => {
    const jpeg = await plain(40, 30).jpeg().withExif({}).withMetadata({ orientation: 6 }).toBuffer();
    const { body } = await upload("turned.jpg", jpeg);
    expect(body.media_details).toMatchObject({ width: 30, height: 40, image_meta: { orientation: "1" } });
  });

  it("takes title, caption and alternative text from the file unless the client gives them", async () => {
    const element = "Iptc4xmpCore:AltTextAccessibility";
    const jpeg = withXmp(
      withIptc(await photo({}), iptcField(105, "The headline"), iptcField(120, LONG)),
      `<${element}><rdf:li>Red</rdf:li></${element}>`,
    );
    const texts = async (query = "", as: Role = "author") => {
      const { body } = await upload("photo.jpg", jpeg, as, query);
      const { slug, title, caption, alt_text: alt } = body;
      return { slug: slug.replace(/-\d+$/, ""), title: title.raw, caption: caption.raw, alt };
    };
    const own = { slug: "the-headline", title: "The headline", caption: LONG, alt: "Red" };
    expect(await texts()).toEqual(own);
    expect(await texts("", "administrator")).toEqual(own);
    expect(await texts("?title=&caption=&alt_text=")).toEqual(own);
    expect(await texts("?title=Mine&caption=My+caption&alt_text=My+alt")).toEqual({
      slug: "mine",
      title: "Mine",
      caption: "My caption",
      alt: "My alt",
    });
  });

  it("takes no number for a title", async () => {
    const { body } = await upload("photo.jpg", await photo({ IFD0: { ImageDescription: "20261123" } }));
    expect(body.title.raw).toMatch(/^photo/);
    expect(body.caption.raw).toBe("20261123");
  });

  it("has no markup that an author may not write, whoever uploads it", async () => {
    const jpeg = await photo({ IFD0: { ImageDescription: "<b>Bold</b><script>alert(1)</script>" } });
    for (const role of ["author", "administrator"] as const) {
      const { body } = await upload("photo.jpg", jpeg, role);
      expect(JSON.stringify(body)).not.toContain("<script");
      expect(body.caption.raw).toContain("<b>Bold</b>");
    }
  });

  it("keeps its metadata when it is edited", async () => {
    const jpeg = await photo({ IFD0: { Model: "Camera 7" } });
    const uploaded = (await upload("photo.jpg", jpeg)).body;
    const edited = await post(
      `/core/v2/media/${uploaded.id}/edit`,
      "author",
      JSON.stringify({ src: uploaded.source_url, rotation: 90 }),
      { "content-type": "application/json" },
    );
    expect(edited.status).toBe(201);
    expect(edited.body.media_details.image_meta).toMatchObject({ camera: "Camera 7", orientation: "1" });
  });
});
