/** Files on S3: the contract against a server that others wrote, and servers that fail. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import S3rver from "s3rver";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { type S3FilesOptions, s3Files } from "../../adapters/s3.js";
import { systemClock } from "../../src/core/clock.js";
import { filesContract } from "../../src/testing/files-contract.js";
import { manualClock } from "../../src/testing/manual-clock.js";

const SECRET = "S3RVER";
let directory: string;
let server: S3rver;
let endpoint: string;
let count = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "postbell-s3-"));
  server = new S3rver({
    ...{ address: "127.0.0.1", port: 0, silent: true, directory },
    configureBuckets: [{ name: "media", configs: [] }],
  });
  const { port } = await server.run();
  endpoint = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

const open = (options: Partial<S3FilesOptions> = {}) =>
  s3Files({ endpoint, bucket: "media", accessKeyId: "S3RVER", secretAccessKey: SECRET, ...options });

async function* bytesOf(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe("files on S3 keep the files contract:", () => {
  filesContract({
    test,
    create: () => {
      count += 1;
      return { files: open({ prefix: `test-${count}/media` }) };
    },
  });
});

describe("check", () => {
  it("resolves for a bucket that can be read", async () => {
    await expect(open().check()).resolves.toBeUndefined();
  });

  it.each([
    [
      "another bucket",
      { bucket: "missing" },
      /^404 NoSuchBucket/,
      /bucket missing .* check endpoint and bucket/,
    ],
    ["an unknown key", { accessKeyId: "NOBODY" }, /^403 /, /check accessKeyId/],
    [
      "a closed port",
      { endpoint: "http://127.0.0.1:1" },
      /./,
      /the connection to http:\/\/127.0.0.1:1 failed/,
    ],
  ])("tells what to change for %s, without the secret", async (_, options, reason, message) => {
    const error: unknown = await open({
      secretAccessKey: "WRONG-SECRET",
      ...options,
      clock: impatientClock(),
    })
      .check()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "storage_unavailable",
      reason: expect.stringMatching(reason),
      message: expect.stringMatching(message),
    });
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/WRONG-SECRET|Signature=/);
  });
});

/** A clock on which the pauses between retries are over at once; other timers never fire. */
function impatientClock() {
  const clock = manualClock(systemClock.now());
  return {
    ...clock,
    setTimeout: (callback: () => void, ms: number) => {
      const timer = clock.setTimeout(callback, ms);
      if (ms < 3_000) setImmediate(() => void clock.advance(ms));
      return timer;
    },
  };
}

/** A store that answers with `respond`, and counts its requests. */
async function openFake(respond: RequestListener, options: Partial<S3FilesOptions> = {}) {
  const requests: string[] = [];
  const fake = createServer((request, response) => {
    requests.push(`${request.method} ${request.url?.split("?")[0]}`);
    respond(request, response);
  });
  await new Promise<void>((done) => fake.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    fake.closeAllConnections();
    fake.close();
  });
  const { port } = fake.address() as AddressInfo;
  const files = open({ endpoint: `http://127.0.0.1:${port}`, clock: impatientClock(), ...options });
  return { files, requests };
}

const LAST = "<LastModified>2026-11-27T00:00:00.000Z</LastModified>";
const slowDown = "<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>";

describe("a store that fails", () => {
  it.each([500, 503, 429])("is asked four times if it responds with %d", async (status) => {
    const { files, requests } = await openFake((_, response) => response.writeHead(status).end(slowDown));
    await expect(readAll(files.read("a.txt"))).rejects.toMatchObject({
      ...{ code: "storage_unavailable", reason: `${status} SlowDown`, isPermanent: false },
    });
    expect(requests).toHaveLength(4);
  });

  it.each([301, 400, 403])("is asked once if it responds with %d", async (status) => {
    const { files, requests } = await openFake((_, response) => response.writeHead(status).end());
    await expect(files.stat("a.txt")).rejects.toMatchObject({
      code: "storage_unavailable",
      isPermanent: true,
    });
    expect(requests).toHaveLength(1);
  });

  it("recovers: an upload that failed half way is sent again, whole", async () => {
    const bodies: string[] = [];
    const { files } = await openFake((request, response) => {
      if (request.method === "HEAD") return void response.writeHead(404).end();
      if (bodies.length === 0) {
        bodies.push("cut off");
        request.once("data", () => request.socket.destroy());
        return;
      }
      void readAll(request).then((body) => {
        bodies.push(body);
        response.writeHead(200).end();
      });
    });
    const whole = "x".repeat(3_000_000);
    const staged = await files.stage(bytesOf(whole));
    expect(await staged.publish("a.txt")).toBe(true);
    expect(bodies[1] === whole).toBe(true);
  });

  it("does not lose a file whose upload succeeded although the response was lost", async () => {
    let id: string | undefined;
    const { files, requests } = await openFake((request, response) => {
      if (request.method === "PUT") {
        id = String(request.headers["x-amz-meta-postbell-upload"]);
        request.resume().once("end", () => request.socket.destroy());
      } else if (id === undefined) response.writeHead(404).end();
      else {
        const headers = { "x-amz-meta-postbell-upload": id, "last-modified": new Date(0).toUTCString() };
        response.writeHead(200, { ...headers, "content-length": 1 }).end();
      }
    });
    expect(await (await files.stage(bytesOf("x"))).publish("a.txt")).toBe(true);
    expect(requests.filter((line) => line.startsWith("PUT"))).toHaveLength(1);
  });

  it("publishes only on a free name: the store decides if another process is faster", async () => {
    const conditions: unknown[] = [];
    const { files } = await openFake((request, response) => {
      if (request.method === "PUT") conditions.push(request.headers["if-none-match"]);
      request.resume().once("end", () => response.writeHead(request.method === "PUT" ? 412 : 404).end());
    });
    const staged = await files.stage(bytesOf("x"));
    expect(await staged.publish("a.txt")).toBe(false);
    expect(conditions).toEqual(["*"]);
    await staged.discard();
  });

  it.each([
    ["ends early", true],
    ["is shorter than the range, in chunks", false],
  ])("a file that %s is an error, not a short file", async (_, isAnnounced) => {
    const { files } = await openFake((__, response) => {
      response.writeHead(206, isAnnounced ? { "content-length": "10" } : {});
      response.write("12345");
      setImmediate(() => (isAnnounced ? response.destroy() : response.end()));
    });
    const read = readAll(files.read("a.txt", { start: 0, end: 10 }));
    await expect(read).rejects.toMatchObject({ code: "storage_unavailable" });
  });

  it("a store that ignores the range is an error, not another part of the file", async () => {
    const { files } = await openFake((_, response) => response.end("0123456789"));
    await expect(readAll(files.read("a.txt", { start: 5, end: 7 }))).rejects.toMatchObject({
      code: "storage_unavailable",
    });
  });

  it.each(["before the response", "within the body"])("that hangs %s is given up", async (when) => {
    const clock = manualClock(systemClock.now());
    const { files, requests } = await openFake(
      (_, response) => {
        if (when === "within the body") response.writeHead(200, { "content-length": "10" }).write("12345");
      },
      { clock, timeoutMs: 1_000 },
    );
    let isOver = false;
    const read = readAll(files.read("a.txt")).finally(() => {
      isOver = true;
    });
    const failure = read.catch((error: unknown) => error);
    while (!isOver) {
      await new Promise(setImmediate);
      if (requests.length > 0) await clock.advance(100);
    }
    expect(await failure).toMatchObject({ code: "storage_unavailable", reason: "timeout" });
    expect(requests.length).toBeGreaterThan(0);
  });

  /** The server that others wrote cannot make tokens on this version of OpenSSL. */
  it("lists page after page, with the token of each", async () => {
    const pages = ["a", "b", "c"];
    const { files } = await openFake(
      (request, response) => {
        const query = new URL(request.url ?? "", "http://localhost").searchParams;
        const at = Number(query.get("continuation-token") ?? 0);
        const object = `<Contents><Key>p/${pages[at]}.txt</Key><Size>${at}</Size>${LAST}</Contents>`;
        const next = at < 2 ? `<NextContinuationToken>${at + 1}</NextContinuationToken>` : "";
        expect([query.get("prefix"), query.get("list-type")]).toEqual(["p/", "2"]);
        response.end(`<ListBucketResult>${object}${next}</ListBucketResult>`);
      },
      { prefix: "p" },
    );
    const listed: string[] = [];
    for await (const { name } of files.list()) listed.push(name);
    expect(listed).toEqual(["a.txt", "b.txt", "c.txt"]);
  });

  it.each([
    ["the same token", () => "again"],
    ["two tokens in turn", (count: number) => `token-${count % 2}`],
  ])("repeats %s without end: the list is an error", async (_, tokenOf) => {
    const { files, requests } = await openFake((__, response) => {
      const next = `<NextContinuationToken>${tokenOf(requests.length)}</NextContinuationToken>`;
      response.end(requests.length > 50 ? "" : `<ListBucketResult>${next}</ListBucketResult>`);
    });
    const listing = (async () => {
      for await (const { name } of files.list()) throw new Error(name);
    })();
    await expect(listing).rejects.toMatchObject({ code: "storage_unavailable", isPermanent: true });
  });

  it("cuts a list off without a token: an error, not a short list", async () => {
    const { files } = await openFake((_, response) => response.end("<IsTruncated>true</IsTruncated>"));
    await expect(files.list()[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "storage_unavailable",
    });
  });

  it("compresses a file although it was told not to: an error, not the wrong bytes", async () => {
    const bytes = gzipSync("0123456789".repeat(100));
    const { files } = await openFake((request, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-length": bytes.length });
      response.end(request.method === "HEAD" ? undefined : bytes);
    });
    const refusal = { code: "storage_unavailable", reason: expect.stringContaining("Content-Encoding") };
    await expect(readAll(files.read("a.txt"))).rejects.toMatchObject(refusal);
    await expect(files.stat("a.txt")).rejects.toMatchObject(refusal);
    await expect(files.check()).rejects.toMatchObject(refusal);
  });

  it.each([
    ["a size that is no number", `<Size>many</Size>${LAST}`],
    ["no size", LAST],
    ["a size below 0", `<Size>-5</Size>${LAST}`],
    ["an infinite size", `<Size>1e999</Size>${LAST}`],
    ["a size in parts of bytes", `<Size>1.5</Size>${LAST}`],
    ["no time", "<Size>1</Size>"],
    ["an invalid time", "<Size>1</Size><LastModified>yesterday</LastModified>"],
  ])("lists an object with %s: an error, not an entry", async (_, inside) => {
    const { files } = await openFake((__, response) =>
      response.end(`<Contents><Key>a.txt</Key>${inside}</Contents>`),
    );
    await expect(files.list()[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "storage_unavailable",
    });
  });

  it("tells no time in a HEAD: an error, not a file without an age", async () => {
    const { files } = await openFake((_, response) => response.writeHead(200, { "content-length": 1 }).end());
    await expect(files.stat("a.txt")).rejects.toMatchObject({ code: "storage_unavailable" });
  });

  it("answers with foreign names, broken XML and a list that is too long without harm", async () => {
    const object = (key: string) =>
      `<Contents><Key>${key}</Key><Size>1</Size><LastModified>2026-11-27T00:00:00.000Z</LastModified></Contents>`;
    const keys = ["p/a.txt", "p/..%2Fx", "p/%E0%A4%A", "a.txt", "p/", "p/a b", "p/&lt;x"];
    const { files } = await openFake((_, response) => response.end(keys.map(object).join("")), {
      prefix: "p",
    });
    const listed = [];
    for await (const entry of files.list()) listed.push(entry);
    expect(listed).toEqual([{ name: "a.txt", bytes: 1, storedAt: Date.UTC(2026, 10, 27) }]);
    const endless = await openFake((_, response) => response.end("x".repeat(17 * 2 ** 20)));
    await expect(endless.files.list()[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "storage_unavailable",
    });
  });
});

it.each([
  ["endpoint", ""],
  ["endpoint", "s3.amazonaws.com"],
  ["endpoint", "https://s3.amazonaws.com/bucket"],
  ["endpoint", "https://key:secret@s3.amazonaws.com"],
  ["bucket", ""],
  ["bucket", "a/b"],
  ["bucket", ".."],
  ["prefix", "../x"],
  ["prefix", "/x"],
  ["accessKeyId", ""],
  ["secretAccessKey", ""],
  ["secretAccessKey", "a\nb"],
  ["sessionToken", 1],
  ["region", ""],
  ["timeoutMs", 1],
  ["nonsense", 1],
])("refuses the option %s = %j, and never repeats a secret", (field, given) => {
  const options = { [field]: given } as Partial<S3FilesOptions>;
  expect(() => open(options)).toThrow(expect.objectContaining({ code: "invalid_option", field }));
});
