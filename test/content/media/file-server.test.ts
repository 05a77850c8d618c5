/** Serving the files of media: which part, under which headers, and what cannot be reached. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import type { FileStore } from "../../../src/content/files.js";
import { createFileServer, uploadPath } from "../../../src/content/media/file-server.js";
import { silentLogger } from "../../../src/core/logger.js";
import type { HttpResponse } from "../../../src/http/types.js";
import { memoryFiles } from "../../../storage/files/index.js";

const CONTENT = Buffer.from("0123456789abcdefghij");
const NAME = "2026/11/heart.png";

async function filesWith(...names: string[]): Promise<FileStore> {
  const files = memoryFiles();
  for (const name of names) {
    const staged = await files.stage(
      (async function* () {
        yield CONTENT;
      })(),
    );
    await staged.publish(name);
  }
  return files;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

const ask = (files: FileStore, path: string, { method = "GET", headers = {} }: Asked = {}) =>
  createFileServer({ files, logger: silentLogger }).handle({
    method,
    path,
    query: "",
    headers,
    body: null,
    baseUrl: "https://example.org/uploads",
  });

async function textOf(response: HttpResponse | undefined): Promise<string | null> {
  const body = response?.body ?? null;
  if (body === null || typeof body === "string" || body instanceof Uint8Array) return body && String(body);
  const chunks = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function heart(headers: Record<string, string> = {}, method = "GET") {
  const response = await ask(await filesWith(NAME), `/${NAME}`, { method, headers });
  return { status: response?.status, headers: response?.headers ?? {}, text: await textOf(response) };
}

describe("a file of media", () => {
  test("is served whole, under a fixed type, for good", async () => {
    const { status, headers, text } = await heart();
    expect({ status, text }).toEqual({ status: 200, text: String(CONTENT) });
    expect(headers).toEqual({
      "content-type": "image/png",
      "content-length": "20",
      "x-content-type-options": "nosniff",
      "cache-control": "public, max-age=86400",
      "accept-ranges": "bytes",
      etag: expect.stringMatching(/^"[a-z0-9-]+"$/),
      "last-modified": expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/),
    });
  });

  test("answers HEAD with the same headers and no body, and no other method", async () => {
    const files = await filesWith(NAME);
    const get = await ask(files, `/${NAME}`, {});
    const head = await ask(files, `/${NAME}`, { method: "HEAD", headers: { range: "bytes=0-1" } });
    expect(head).toEqual({ ...get, body: null });
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      expect(await ask(files, `/${NAME}`, { method })).toMatchObject({
        status: 405,
        headers: { allow: "GET, HEAD" },
      });
    }
    expect((await files.stat(NAME))?.bytes).toBe(20);
  });

  test.each([
    ["a.jpg", "image/jpeg", true],
    ["a.webp", "image/webp", true],
    ["a.mp4", "video/mp4", true],
    ["a.mp3", "audio/mpeg", true],
    ["a.pdf", "application/pdf", false],
    ["a.txt", "text/plain", false],
    ["a.csv", "text/csv", false],
    ["a.html", "application/octet-stream", false],
    ["a.svg", "application/octet-stream", false],
    ["a.js", "application/octet-stream", false],
    ["bare", "application/octet-stream", false],
  ])("named %s is %s and is shown in place: %s", async (name, type, isShown) => {
    const response = await ask(await filesWith(name), `/${name}`);
    expect(response?.headers).toMatchObject({ "content-type": type, "x-content-type-options": "nosniff" });
    expect(response?.headers["content-disposition"]).toBe(isShown ? undefined : "attachment");
    expect(response?.headers["content-security-policy"]).toBe(
      isShown ? undefined : "default-src 'none'; sandbox",
    );
  });

  test.each([
    ["bytes=0-0", "0", "0-0"],
    ["bytes=5-9", "56789", "5-9"],
    ["bytes=15-", "fghij", "15-19"],
    ["bytes=-3", "hij", "17-19"],
    ["bytes=-500", String(CONTENT), "0-19"],
    ["bytes=10-99999999999999999999", "abcdefghij", "10-19"],
    ["Bytes= 5-9 ", "56789", "5-9"],
  ])("is served in part for %j", async (range, text, span) => {
    const answer = await heart({ range });
    expect(answer).toMatchObject({ status: 206, text });
    expect(answer.headers).toMatchObject({
      "content-range": `bytes ${span}/20`,
      "content-length": String(text.length),
    });
  });

  test.each(["bytes=20-", "bytes=20-30", "bytes=-0", "bytes=99999999999999999999-"])(
    "has nothing for the range %j",
    async (range) => {
      const { status, headers, text } = await heart({ range });
      expect({ status, text }).toEqual({ status: 416, text: null });
      expect(headers).toMatchObject({ "content-range": "bytes */20" });
    },
  );

  test.each([
    "bytes=9-5",
    "bytes=-",
    "bytes=",
    "bytes=a-b",
    "bytes=0-1,3-4",
    "chars=0-1",
    "0-1",
    "bytes=-5-",
    "",
  ])("is served whole for the range %j", async (range) => {
    expect(await heart({ range })).toMatchObject({ status: 200, text: String(CONTENT) });
  });

  test("is what any range says of it, or whole", async () => {
    const files = await filesWith(NAME);
    await fc.assert(
      fc.asyncProperty(fc.nat(25), fc.nat(25), async (first, last) => {
        const response = await ask(files, `/${NAME}`, { headers: { range: `bytes=${first}-${last}` } });
        const expected = first > last ? CONTENT : CONTENT.subarray(first, last + 1);
        const nothing = first <= last && first >= 20;
        expect(response?.status).toBe(nothing ? 416 : first > last ? 200 : 206);
        expect(await textOf(response)).toBe(nothing ? null : String(expected));
      }),
    );
  });

  test("is not sent again to who has it", async () => {
    const files = await filesWith(NAME);
    const current = await ask(files, `/${NAME}`);
    const ownTag = String(current?.headers["etag"]);
    const own = String(current?.headers["last-modified"]);
    const status = async (asked: Record<string, string>) =>
      (await ask(files, `/${NAME}`, { headers: asked }))?.status;
    for (const given of [ownTag, `W/${ownTag}`, `"other", ${ownTag}`, "*"]) {
      expect(await status({ "if-none-match": given, range: "bytes=0-1" })).toBe(304);
    }
    expect(await status({ "if-none-match": '"other"', "if-modified-since": own })).toBe(200);
    expect(await status({ "if-modified-since": own })).toBe(304);
    expect(await status({ "if-modified-since": "Thu, 01 Jan 1970 00:00:00 GMT" })).toBe(200);
    expect(await status({ "if-modified-since": "nonsense" })).toBe(200);
    expect(await status({ "if-match": '"other"' })).toBe(412);
    expect(await status({ "if-match": `W/${ownTag}` })).toBe(412);
    expect(await status({ "if-match": `"x", ${ownTag}` })).toBe(200);
    expect(await status({ "if-match": "*" })).toBe(200);
    expect(await status({ "if-unmodified-since": "Thu, 01 Jan 1970 00:00:00 GMT" })).toBe(412);
    expect(await status({ "if-unmodified-since": own })).toBe(200);
    const range = "bytes=0-1";
    expect(await status({ range, "if-range": ownTag })).toBe(206);
    expect(await status({ range, "if-range": own })).toBe(206);
    expect(await status({ range, "if-range": `W/${ownTag}` })).toBe(200);
    expect(await status({ range, "if-range": '"other"' })).toBe(200);
    expect(await status({ range, "if-range": "Thu, 01 Jan 1970 00:00:00 GMT" })).toBe(200);
    const { headers: notModified } =
      (await ask(files, `/${NAME}`, { headers: { "if-none-match": "*" } })) ?? {};
    expect(notModified).toMatchObject({ etag: ownTag, "x-content-type-options": "nosniff" });
    expect(notModified).not.toHaveProperty("content-length");
  });

  test("has an address, whatever its letters", async () => {
    const name = "2026/11/心臓_ü-1.png";
    expect(uploadPath(name)).toBe("2026/11/%E5%BF%83%E8%87%93_%C3%BC-1.png");
    expect((await ask(await filesWith(name), `/${uploadPath(name)}`))?.status).toBe(200);
  });
});

describe("what is no file of media", () => {
  test.each([
    "/",
    "",
    "/2026/11",
    "/2026/11/",
    "/2026/11/other.png",
    "/2026/11/heart.png/",
    "//2026/11/heart.png",
    "/2026/../2026/11/heart.png",
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/2026%5C11%5Cheart.png",
    "/.staging",
    "/%00",
    "/%zz",
    "/%ff",
    "/2026/11/HEART.png",
    `/${"a/".repeat(5_000)}`,
  ])("is not answered: %j", async (path) => {
    const files = await filesWith(NAME);
    for (const method of ["GET", "POST"]) expect(await ask(files, path, { method })).toBeUndefined();
  });

  test("is not asked for in the store unless it could be a name", async () => {
    const asked: string[] = [];
    const files: FileStore = {
      ...memoryFiles(),
      async stat(name) {
        asked.push(name);
        return undefined;
      },
    };
    for (const path of ["/../x", "/.hidden", "/a b", "/a%00", "/ok.png"]) await ask(files, path);
    expect(asked).toEqual(["ok.png"]);
  });
});

test("a store that fails is answered with 503, and logged", async () => {
  const files: FileStore = { ...memoryFiles(), stat: () => Promise.reject(new Error("EIO")) };
  const logged: string[] = [];
  const logger = { ...silentLogger, error: (_: object, message: string) => void logged.push(message) };
  const response = await createFileServer({ files, logger }).handle({
    method: "GET",
    path: `/${NAME}`,
    query: "",
    headers: {},
    body: null,
    baseUrl: "",
  });
  expect(response).toMatchObject({
    status: 503,
    headers: { "retry-after": "5", "cache-control": "no-store" },
  });
  expect(logged).toHaveLength(1);
});

test("over HTTP, whole, in part and not at all", async () => {
  const files = await filesWith(NAME);
  const uploads = createFileServer({ files, logger: silentLogger });
  const server = createServer(nodeAdapter(uploads, { prefix: "/uploads" }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/uploads/${NAME}`;
  try {
    const whole = await fetch(url);
    expect([whole.status, whole.headers.get("content-length"), await whole.text()]).toEqual([
      200,
      "20",
      String(CONTENT),
    ]);
    const part = await fetch(url, { headers: { range: "bytes=-2" } });
    expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([
      206,
      "bytes 18-19/20",
      "ij",
    ]);
    const head = await fetch(url, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "20", ""]);
    const same = await fetch(url, { headers: { "if-none-match": String(head.headers.get("etag")) } });
    expect([same.status, await same.text()]).toEqual([304, ""]);
    const missing = await fetch(`${url}x`);
    expect([missing.status, await missing.text()]).toEqual([404, "Not Found"]);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
