/**
 * Taking an upload in: what is stored of it, what is refused, and that nothing is left of what was
 * refused or cut off.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import type { FileStore } from "../../../src/content/files.js";
import { stageUpload } from "../../../src/content/media/staged-upload.js";
import { RestError } from "../../../src/content/rest/error.js";
import type { HttpRequest, RequestBody } from "../../../src/http/types.js";
import { diskFiles, memoryFiles } from "../../../storage/files/index.js";
import { heapUsed } from "../../support/heap.js";

const fixtures = JSON.parse(
  readFileSync(new URL("../../conformance/fixtures.json", import.meta.url), "utf8"),
) as Record<string, { base64: string }>;
const fixture = (name: string): Buffer => Buffer.from(fixtures[name]?.base64 ?? "", "base64");

const PNG = fixture("small.png");
const NOVEMBER = Date.UTC(2026, 10, 21, 15);
const LIMIT = 1_000_000;

const requestOf = (
  headers: Record<string, string>,
  body: RequestBody,
  signal?: AbortSignal,
): HttpRequest => ({
  method: "POST",
  path: "/core/v2/media",
  query: "",
  headers,
  body,
  baseUrl: "https://example.org/api",
  signal,
});

const raw = (fileName: string, body: RequestBody, headers: Record<string, string> = {}): HttpRequest =>
  requestOf(
    { "content-type": "image/png", "content-disposition": `attachment; filename="${fileName}"`, ...headers },
    body,
  );

interface Part {
  readonly name: string;
  readonly fileName?: string;
  readonly content: string | Uint8Array;
}

const BOUNDARY = "----test-boundary";

const formBytes = (parts: readonly Part[]): Buffer =>
  Buffer.concat([
    ...parts.flatMap(({ name, fileName, content }) => [
      Buffer.from(
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${fileName === undefined ? "" : `; filename="${fileName}"\r\nContent-Type: application/x-anything`}\r\n\r\n`,
      ),
      Buffer.from(content),
      Buffer.from("\r\n"),
    ]),
    Buffer.from(`--${BOUNDARY}--\r\n`),
  ]);

const FORM_TYPE = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };
const form = (...parts: readonly Part[]): HttpRequest => requestOf(FORM_TYPE, formBytes(parts));
const filePart = (fileName: string, content: Uint8Array = PNG, name = "file"): Part => ({
  name,
  fileName,
  content,
});

async function* chunked(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const receive = (files: FileStore, request: HttpRequest, limit = LIMIT) =>
  stageUpload(request, { files, limit });

async function stored(files: FileStore): Promise<string[]> {
  const names = [];
  for await (const { name } of files.list()) names.push(name);
  return names.sort();
}

async function content(files: FileStore, name: string): Promise<Buffer> {
  const chunks = [];
  for await (const chunk of files.read(name)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A store that counts what is staged and not yet published or discarded. */
function watched(): { readonly files: FileStore; readonly staged: () => number } {
  const files = memoryFiles();
  let staged = 0;
  return {
    staged: () => staged,
    files: {
      ...files,
      async stage(bytes) {
        const file = await files.stage(bytes);
        staged += 1;
        let isOpen = true;
        const close = (): void => {
          if (isOpen) staged -= 1;
          isOpen = false;
        };
        return {
          ...file,
          async publish(name) {
            const isPublished = await file.publish(name);
            if (isPublished) close();
            return isPublished;
          },
          async discard() {
            close();
            await file.discard();
          },
        };
      },
    },
  };
}

async function refusal(request: HttpRequest, limit = LIMIT): Promise<{ status: number; code: string }> {
  const { files, staged } = watched();
  const error: unknown = await receive(files, request, limit).then(
    () => new Error("It was accepted."),
    (thrown: unknown) => thrown,
  );
  expect(await stored(files)).toEqual([]);
  expect(staged()).toBe(0);
  expect(error).toBeInstanceOf(RestError);
  const { status, code } = error as RestError;
  return { status, code };
}

const SIDELOAD = { status: 400, code: "rest_upload_sideload_error" };

describe("a raw upload", () => {
  test("is stored under its cleaned name in the folder of its month, and titled by it", async () => {
    const files = memoryFiles();
    const upload = await receive(files, raw("my photo.png", PNG));
    expect(upload.mimeType).toBe("image/png");
    expect(upload.fields).toEqual({});
    expect(await stored(files)).toEqual([]);
    const published = await upload.publish(NOVEMBER);
    expect(published).toEqual({
      file: {
        name: "2026/11/my-photo.png",
        bytes: PNG.length,
        altText: "",
        width: 64,
        height: 48,
        sizes: {},
      },
      title: "my-photo",
    });
    expect(await content(files, "2026/11/my-photo.png")).toEqual(PNG);
  });

  test.each([
    ["x.php.png", "small.png", "2026/11/x.php_.png", "x.php_"],
    ["h.PNG", "small.png", "2026/11/h.png", "h"],
    ["../../i.png", "small.png", "2026/11/i.png", "i"],
    ["wrong.jpg", "small.png", "2026/11/wrong.png", "wrong"],
    ["doc.pdf", "doc.pdf", "2026/11/doc.pdf", "doc"],
    ["data.csv", "data.csv", "2026/11/data.csv", "data"],
    ["note.txt", "note.txt", "2026/11/note.txt", "note"],
  ])("%j with the bytes of %s is stored as %s", async (given, from, name, title) => {
    const files = memoryFiles();
    const upload = await receive(files, raw(given, fixture(from)));
    expect(await upload.publish(NOVEMBER)).toMatchObject({
      file: { name, bytes: fixture(from).length },
      title,
    });
    expect(await content(files, name)).toEqual(fixture(from));
  });

  test("gets a number where its name is taken, and some name where all numbers are", async () => {
    const files = memoryFiles();
    const publish = async () => (await (await receive(files, raw("a.png", PNG))).publish(NOVEMBER)).file.name;
    expect([await publish(), await publish(), await publish()]).toEqual([
      "2026/11/a.png",
      "2026/11/a-1.png",
      "2026/11/a-2.png",
    ]);
    for (let count = 3; count < 30; count += 1) await publish();
    expect(await stored(files)).toHaveLength(30);
  });

  test("is gone after it was discarded, before or after it got its name", async () => {
    const { files, staged } = watched();
    const one = await receive(files, raw("a.png", PNG));
    await one.discard();
    await one.discard();
    expect(staged()).toBe(0);
    const other = await receive(files, raw("a.png", PNG));
    await other.publish(NOVEMBER);
    await other.discard();
    await other.discard();
    expect(await stored(files)).toEqual([]);
  });

  test.each([
    ["no Content-Disposition", { "content-type": "image/png" }, PNG, "rest_upload_no_content_disposition"],
    [
      "no Content-Type",
      { "content-disposition": "attachment; filename=a.png" },
      PNG,
      "rest_upload_no_content_type",
    ],
    [
      "no name",
      { "content-type": "", "content-disposition": "inline" },
      PNG,
      "rest_upload_invalid_disposition",
    ],
    [
      "an empty header",
      { "content-type": "", "content-disposition": "" },
      PNG,
      "rest_upload_invalid_disposition",
    ],
    ["no body", { "content-type": "" }, null, "rest_upload_no_data"],
    [
      "an empty body of unknown length and no headers",
      {},
      chunked(Buffer.alloc(0), 1),
      "rest_upload_no_data",
    ],
    ["a body of unknown length and no headers", {}, chunked(PNG, 10), "rest_upload_no_content_type"],
    ["an announced length of 0", { "content-length": "0" }, chunked(PNG, 10), "rest_upload_no_data"],
    [
      "an empty body",
      { "content-type": "", "content-disposition": "attachment; filename=a.bin" },
      Buffer.alloc(0),
      "rest_upload_no_data",
    ],
    [
      "JSON",
      { "content-type": "application/json" },
      { parsed: { title: "x" } },
      "rest_upload_no_content_disposition",
    ],
  ])("with %s is refused", async (_, headers, body, code) => {
    expect(await refusal(requestOf(headers, body))).toEqual({ status: 400, code });
  });

  test.each([
    ["x.png", "fake.png"],
    ["x.svg", "vector.svg"],
    ["x.png", "vector.svg"],
    ["x.exe", "tool.exe"],
    ["x.php", "note.txt"],
    ["x.txt", "page.html"],
    ["x.html", "page.html"],
    ["x.jpg", "page.html"],
    ["x.txt", "small.png"],
    ["bad", "small.png"],
    [".htaccess", "note.txt"],
    ["x.jpg\u0000.php", "photo.jpg"],
  ])("named %j with the bytes of %s is refused", async (name, from) => {
    const header = `attachment; filename*=UTF-8''${encodeURIComponent(name)}`;
    expect(await refusal(raw("", fixture(from), { "content-disposition": header }))).toEqual(SIDELOAD);
  });

  test("is refused where an image has no dimensions, or binary data comes late in a text", async () => {
    expect(await refusal(raw("x.png", PNG.subarray(0, 20)))).toEqual(SIDELOAD);
    const text = Buffer.alloc(1_500_000, "a,b\n");
    const late = Buffer.concat([text, Uint8Array.of(0)]);
    expect(await refusal(raw("x.csv", chunked(late, 60_000)), 2_000_000)).toEqual(SIDELOAD);
    const files = memoryFiles();
    const upload = await receive(files, raw("x.csv", chunked(text, 60_000)), 2_000_000);
    const { file } = await upload.publish(NOVEMBER);
    expect(text.equals(await content(files, file.name))).toBe(true);
  });

  test("of a photograph whose dimensions stand behind much else is measured once it is stored", async () => {
    const comment = Buffer.concat([Uint8Array.of(0xff, 0xfe, 0xff, 0xff), Buffer.alloc(65_533)]);
    const late = Buffer.concat([
      Uint8Array.of(0xff, 0xd8),
      ...Array.from({ length: 20 }, () => comment),
      fixture("photo.jpg").subarray(2),
    ]);
    const files = memoryFiles();
    const upload = await receive(files, raw("late.jpg", chunked(late, 65_536)), 2_000_000);
    const { file } = await upload.publish(NOVEMBER);
    expect(file).toMatchObject({ width: 400, height: 300, bytes: late.length });
  });

  test("with Content-MD5 is accepted with that digest only, in either notation", async () => {
    const digest = createHash("md5").update(PNG).digest();
    for (const given of [
      digest.toString("hex"),
      digest.toString("hex").toUpperCase(),
      ` ${digest.toString("base64")}`,
    ]) {
      const upload = await receive(memoryFiles(), raw("a.png", PNG, { "content-md5": given }));
      expect(upload.mimeType).toBe("image/png");
    }
    const wrong = { status: 412, code: "rest_upload_hash_mismatch" };
    for (const given of ["0".repeat(32), "", "x"]) {
      expect(await refusal(raw("a.png", PNG, { "content-md5": given }))).toEqual(wrong);
    }
    const inForm = requestOf({ ...FORM_TYPE, "content-md5": "0".repeat(32) }, formBytes([filePart("a.png")]));
    expect(await refusal(inForm)).toEqual(wrong);
  });

  test("is accepted up to the limit and refused beyond it, announced or not", async () => {
    const bytes = Buffer.concat([PNG, Buffer.alloc(50_000)]);
    const big = { status: 413, code: "rest_upload_file_too_big" };
    for (const body of [() => bytes, () => chunked(bytes, 1_000)]) {
      await receive(memoryFiles(), raw("a.png", body()), bytes.length);
      expect(await refusal(raw("a.png", body()), bytes.length - 1)).toEqual(big);
    }
    let isRead = false;
    async function* unread() {
      isRead = true;
      yield PNG;
    }
    expect(await refusal(raw("a.png", unread(), { "content-length": String(LIMIT + 1) }))).toEqual(big);
    expect(isRead).toBe(false);
  });

  test("that breaks off, is shorter or longer than announced, or is abandoned leaves nothing", async () => {
    const aborted = { status: 400, code: "rest_request_aborted" };
    async function* broken() {
      yield PNG;
      throw new Error("ECONNRESET");
    }
    expect(await refusal(raw("a.png", broken()))).toEqual(aborted);
    for (const length of [PNG.length - 1, PNG.length + 1]) {
      const headers = { "content-length": String(length) };
      expect(await refusal(raw("a.png", chunked(PNG, 50), headers))).toEqual(aborted);
    }
    const leaving = new AbortController();
    async function* stalled() {
      yield PNG;
      setImmediate(() => leaving.abort());
      await new Promise(() => {});
    }
    const { "content-type": type = "", "content-disposition": name = "" } = raw("a.png", null).headers;
    const request = requestOf(
      { "content-type": type, "content-disposition": name },
      stalled(),
      leaving.signal,
    );
    expect(await refusal(request)).toEqual(aborted);
  });

  test("whose bytes a body parser has taken says what to change", async () => {
    await expect(receive(memoryFiles(), raw("a.png", { parsed: {} }))).rejects.toMatchObject({
      code: "raw_body_unavailable",
    });
  });

  test("E27: with a content coding is refused before it is read, raw or as a form", async () => {
    let isRead = false;
    async function* unread() {
      isRead = true;
      yield PNG;
    }
    const unsupported = { status: 415, code: "rest_unsupported_media_type" };
    for (const coding of ["gzip", "GZIP", "br", "deflate", "identity, gzip", "x"]) {
      const coded = { "content-encoding": coding };
      expect(await refusal(raw("a.png", unread(), coded))).toEqual(unsupported);
      expect(await refusal(requestOf({ ...FORM_TYPE, ...coded }, unread()))).toEqual(unsupported);
    }
    expect(isRead).toBe(false);
    for (const none of ["", " Identity"]) {
      const upload = await receive(memoryFiles(), raw("a.png", PNG, { "content-encoding": none }));
      expect(upload.mimeType).toBe("image/png");
    }
  });

  test("fails as the store does", async () => {
    const request = raw("a.png", Buffer.concat([PNG, Buffer.alloc(1_000)]));
    await expect(receive(memoryFiles({ limits: { bytes: 500 } }), request)).rejects.toMatchObject({
      code: "storage_full",
    });
  });
});

describe("an upload as multipart form data", () => {
  test("has its fields, before and behind the file, and the client's name as its title", async () => {
    const files = memoryFiles();
    const upload = await receive(
      files,
      form(
        { name: "title", content: "Ein Herz & mehr=1%2B+" },
        { name: "meta[inline_featured_image]", content: "true" },
        filePart("x_ÄÖ (1).png"),
        { name: "caption[raw]", content: "line\r\nline" },
        { name: "tags[]", content: "1" },
        { name: "tags[]", content: "2" },
        { name: "__proto__[polluted]", content: "1" },
        { name: "empty", content: "" },
      ),
    );
    expect(upload.fields).toMatchObject({
      title: "Ein Herz & mehr=1%2B+",
      meta: { inline_featured_image: "true" },
      caption: { raw: "line\r\nline" },
      tags: ["1", "2"],
      empty: "",
    });
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(await upload.publish(NOVEMBER)).toMatchObject({
      file: { name: "2026/11/x_AO-1.png", bytes: PNG.length, width: 64, height: 48 },
      title: "x_ÄÖ (1)",
    });
    expect(await content(files, "2026/11/x_AO-1.png")).toEqual(PNG);
  });

  test("is the same however its bytes are cut up", async () => {
    const bytes = formBytes([
      { name: "title", content: "t" },
      filePart("a.jpg", fixture("photo.jpg")),
      { name: "post", content: "5" },
    ]);
    const sizes = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        async function* cut() {
          for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
            const next = at + (lengths[turn % lengths.length] ?? 1);
            yield bytes.subarray(at, next);
            at = next;
          }
        }
        const files = memoryFiles();
        const upload = await receive(files, requestOf(FORM_TYPE, cut()));
        const { file } = await upload.publish(NOVEMBER);
        expect({ ...upload.fields }).toEqual({ title: "t", post: "5" });
        expect(await content(files, file.name)).toEqual(fixture("photo.jpg"));
      }),
      { numRuns: 20 },
    );
  });

  test.each([
    ['a "b".png', "a%22b%22.png", 'a"b"', "ab"],
    ["a path of Windows", "C:/dir/a.png", "a", "a"],
    ["a line break", "a%0D%0Ab.png", "a  b", "a-b"],
  ])("with %s in the name of the file is stored", async (_, fileName, title, base) => {
    const upload = await receive(memoryFiles(), form(filePart(fileName)));
    expect(await upload.publish(NOVEMBER)).toMatchObject({ file: { name: `2026/11/${base}.png` }, title });
  });

  test("takes the first file of the field `file` only", async () => {
    const files = memoryFiles();
    const upload = await receive(
      files,
      form(
        filePart("other.png", fixture("dot.png"), "upload"),
        filePart("a.png"),
        filePart("b.png", fixture("dot.png")),
      ),
    );
    await upload.publish(NOVEMBER);
    expect(await stored(files)).toEqual(["2026/11/a.png"]);
    expect(await content(files, "2026/11/a.png")).toEqual(PNG);
  });

  test.each([
    ["no part", []],
    ["no file", [{ name: "title", content: "x" }]],
    ["its file in another field", [filePart("a.png", PNG, "upload")]],
    ["a file without a name", [filePart("")]],
    ["text instead of a file", [{ name: "file", content: "x" }]],
    ["an empty file", [filePart("a.png", Buffer.alloc(0))]],
  ])("with %s is refused", async (_, parts) => {
    expect(await refusal(form(...parts))).toEqual({ status: 400, code: "rest_upload_no_data" });
  });

  test("with a file that is not accepted is refused, though fields follow", async () => {
    const request = form(filePart("a.svg", fixture("vector.svg")), {
      name: "title",
      content: "x".repeat(300_000),
    });
    expect(await refusal(request)).toEqual(SIDELOAD);
  });

  test.each([10, 16_384, 100_000, 400_000])(
    "reads over a part whose headers cannot be read, with %i bytes in it that come at once",
    async (length) => {
      const files = memoryFiles();
      const before = formBytes([{ name: "title", content: "A heart" }]).toString("latin1");
      const unreadable = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="x\n"\r\n\r\n${"x".repeat(length)}\r\n`;
      const body = Buffer.from(before.replace(`--${BOUNDARY}--`, `${unreadable}--${BOUNDARY}--`), "latin1");
      const request = requestOf(FORM_TYPE, body);
      await expect(stageUpload(request, { files, limit: LIMIT })).rejects.toMatchObject({
        status: 400,
        code: "rest_upload_no_data",
      });
      const whole = Buffer.concat([Buffer.from(unreadable, "latin1"), formBytes([filePart("heart.png")])]);
      const upload = await stageUpload(requestOf(FORM_TYPE, whole), { files, limit: LIMIT });
      expect(upload.mimeType).toBe("image/png");
      await upload.discard();
    },
  );

  const malformed = { status: 400, code: "rest_invalid_multipart" };

  test.each([
    ["no boundary", "multipart/form-data"],
    ["an empty boundary", "multipart/form-data; boundary="],
    ["an empty quoted boundary", 'multipart/form-data; boundary=""'],
    ["a boundary that is too long", `multipart/form-data; boundary=${"a".repeat(71)}`],
    ["a boundary of other characters", "multipart/form-data; boundary=a\u00e4"],
    ["two boundaries", "multipart/form-data; boundary=a; boundary=b"],
    ["another boundary", "multipart/form-data; boundary=other"],
  ])("with %s is refused", async (_, type) => {
    expect(await refusal(requestOf({ "content-type": type }, formBytes([filePart("a.png")])))).toEqual(
      malformed,
    );
  });

  test("that is cut off at any place leaves nothing", async () => {
    const whole = formBytes([
      { name: "title", content: "x" },
      filePart("a.png"),
      { name: "post", content: "5" },
    ]);
    // Bytes after the closing boundary are optional.
    const end = whole.length - "--\r\n".length;
    for (let length = 1; length < end; length += 7) {
      const { status } = await refusal(requestOf(FORM_TYPE, chunked(whole.subarray(0, length), 64)));
      expect(status).toBe(400);
    }
    expect(await refusal(requestOf(FORM_TYPE, Buffer.from("no form at all")))).toEqual(malformed);
  });

  test("is bounded in its file, its fields and their number", async () => {
    const big = { status: 413, code: "rest_upload_file_too_big" };
    const image = Buffer.concat([PNG, Buffer.alloc(10_000)]);
    await receive(memoryFiles(), form(filePart("a.png", image)), image.length);
    expect(await refusal(form(filePart("a.png", image)), image.length - 1)).toEqual(big);
    expect(
      await refusal(requestOf({ ...FORM_TYPE, "content-length": "9000000000" }, chunked(PNG, 9))),
    ).toEqual(big);
    const long = { status: 413, code: "rest_body_too_large" };
    const text = { name: "a", content: "x".repeat(600_000) };
    expect(await refusal(form(filePart("a.png"), text, text))).toEqual(long);
    expect(await refusal(form({ name: "a", content: "x".repeat(1_100_000) }, filePart("a.png")))).toEqual(
      long,
    );
    const many = Array.from({ length: 1_001 }, (_, at) => ({ name: `f${at}`, content: "" }));
    expect(await refusal(form(filePart("a.png"), ...many))).toEqual({
      status: 400,
      code: "rest_invalid_query",
    });
    const more = Array.from({ length: 1_200 }, (_, at) => ({ name: `f${at}`, content: "" }));
    expect(await refusal(form(filePart("a.png"), ...more))).toEqual(malformed);
    const unread = Array.from({ length: 1_200 }, () => filePart("a.png", Buffer.alloc(1), "other"));
    expect(await refusal(form(filePart("a.png"), ...unread))).toEqual(malformed);
  });

  test("of any bytes is answered without harm", async () => {
    const pieces = fc.constantFrom(
      `--${BOUNDARY}`,
      "\r\n",
      "--",
      'Content-Disposition: form-data; name="file"; filename="a.png"',
      'Content-Disposition: form-data; name="a"',
      "Content-Type: text/plain; charset=utf-16le",
      "Content-Disposition: form-data",
      ":",
      "\u0000",
      PNG.toString("latin1"),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(pieces, { maxLength: 30 }),
        fc.integer({ min: 1, max: 50 }),
        async (parts, size) => {
          const { files, staged } = watched();
          const body = chunked(Buffer.from(parts.join(""), "latin1"), size);
          const outcome: unknown = await receive(files, requestOf(FORM_TYPE, body)).then(
            (upload) => upload.discard(),
            (error: unknown) => error,
          );
          expect(outcome === undefined || outcome instanceof RestError).toBe(true);
          expect(staged()).toBe(0);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("an upload in very many very small chunks", () => {
  const COUNT = 200_000;
  // Far less than a byte each would take if something were kept for every chunk.
  const MOST_BYTES = 8_000_000;

  test.each([
    ["raw", [], []],
    [
      "as multipart form data",
      [formBytes([filePart("a.csv", Buffer.alloc(0))]).subarray(0, -`\r\n--${BOUNDARY}--\r\n`.length)],
      [Buffer.from(`\r\n--${BOUNDARY}--\r\n`)],
    ],
  ])("%s costs its bytes, not its chunks, and is stored as it came", async (kind, before, after) => {
    const line = Buffer.from("a,b\n");
    let grown = Number.NaN;
    const atFirst = heapUsed() + process.memoryUsage().arrayBuffers;
    async function* body() {
      yield* before;
      for (let sent = 0; sent < COUNT; sent += 1) yield line.subarray(sent % 4, (sent % 4) + 1);
      grown = heapUsed() + process.memoryUsage().arrayBuffers - atFirst;
      yield* after;
    }
    const files = memoryFiles();
    const request =
      kind === "raw" ? raw("a.csv", body()) : requestOf(FORM_TYPE, body(), new AbortController().signal);
    const upload = await receive(files, request, 2 * COUNT);
    const { file } = await upload.publish(NOVEMBER);
    expect(grown).toBeLessThan(MOST_BYTES);
    expect((await content(files, file.name)).equals(Buffer.alloc(COUNT, line))).toBe(true);
  });

  test("is kept in memory as its bytes", async () => {
    const files = memoryFiles();
    const atFirst = heapUsed() + process.memoryUsage().arrayBuffers;
    const staged = await files.stage(chunked(Buffer.alloc(COUNT), 1));
    expect(heapUsed() + process.memoryUsage().arrayBuffers - atFirst).toBeLessThan(MOST_BYTES);
    expect(staged.bytes).toBe(COUNT);
  });
});

describe("uploads over HTTP", () => {
  async function withServer(
    run: (port: number, directory: string, settled: () => Promise<string>) => Promise<void>,
  ): Promise<void> {
    const directory = await mkdtemp(join(tmpdir(), "postbell-upload-"));
    const files = diskFiles({ directory });
    const outcomes: string[] = [];
    let tell = (): void => {};
    const settled = async (): Promise<string> => {
      while (outcomes.length === 0) await new Promise<void>((resolve) => (tell = resolve));
      return outcomes.shift() ?? "";
    };
    const server = createServer(
      nodeAdapter({
        async handle(request) {
          let code = "published";
          try {
            await (await receive(files, request)).publish(NOVEMBER);
          } catch (error) {
            code = (error as { code?: string }).code ?? String(error);
          }
          outcomes.push(code);
          tell();
          return { status: code === "published" ? 201 : 400, headers: {}, body: code };
        },
      }),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      await run((server.address() as AddressInfo).port, directory, settled);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true, force: true });
    }
  }

  const post = (port: number, headers: Record<string, string>, body: Uint8Array): Promise<string> =>
    new Promise((resolve, reject) => {
      const sent = httpRequest(
        { port, host: "127.0.0.1", method: "POST", path: "/", headers },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () => resolve(`${response.statusCode} ${Buffer.concat(chunks).toString()}`));
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });

  test("arrive on disk, raw and as a form, with names beyond ASCII", () =>
    withServer(async (port, directory) => {
      const headers = {
        "content-type": "image/png",
        "content-disposition": `attachment; filename="${Buffer.from("ünder.png").toString("latin1")}"`,
      };
      expect(await post(port, headers, PNG)).toBe("201 published");
      expect(await post(port, FORM_TYPE, formBytes([filePart("心臓.png")]))).toBe("201 published");
      expect((await readdir(join(directory, "2026", "11"))).sort()).toEqual(["under.png", "心臓.png"]);
      expect(readFileSync(join(directory, "2026/11/under.png"))).toEqual(PNG);
      expect(await readdir(join(directory, ".staging"))).toEqual([]);
    }));

  test("that the client cuts off leave nothing on disk, and refused ones get their answer", () =>
    withServer(async (port, directory, settled) => {
      const large = Buffer.concat([PNG, Buffer.alloc(500_000)]);
      const bodies = [
        [`content-type: image/png\r\ncontent-disposition: attachment; filename=a.png`, large],
        [`content-type: ${FORM_TYPE["content-type"]}`, formBytes([filePart("a.png", large)])],
      ] as const;
      for (const [headers, body] of bodies) {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => {});
        socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n${headers}\r\n\r\n`);
        socket.write(body.subarray(0, 300_000), () => socket.destroy());
        expect(await settled()).toBe("rest_request_aborted");
      }
      const left = await readdir(directory, { recursive: true }).catch(() => []);
      expect(left.filter((name) => name !== ".staging")).toEqual([]);
      const svg = Buffer.concat([fixture("vector.svg"), Buffer.alloc(400_000, " ")]);
      const answer = await post(port, FORM_TYPE, formBytes([filePart("a.svg", svg)]));
      expect(answer).toBe("400 rest_upload_sideload_error");
    }));
});
