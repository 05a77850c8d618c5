import { getEventListeners } from "node:events";
import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readBytes, readJson } from "../../src/http/body.js";
import type { HttpError } from "../../src/http/errors.js";
import type { HttpRequest, ReadableBody, RequestBody } from "../../src/http/types.js";
import { heapUsed } from "../support/heap.js";

type BodyRequest = Pick<HttpRequest, "body" | "headers" | "signal">;

const JSON_TYPE = { "content-type": "application/json" };
const LIMIT = { limit: 1000 };

const sent = (body: RequestBody, headers: Record<string, string> = {}): BodyRequest => ({ body, headers });
const utf8 = (text: string): Uint8Array => Buffer.from(text);
const asJson = (body: RequestBody | string, headers = {}): Promise<unknown> =>
  readJson(sent(typeof body === "string" ? utf8(body) : body, { ...JSON_TYPE, ...headers }), LIMIT);

async function* stream(chunks: readonly Uint8Array[], closed: () => void = () => {}): ReadableBody {
  try {
    yield* chunks;
  } finally {
    closed();
  }
}

const endless = (closed: () => void): ReadableBody =>
  stream(Array(1_000_000).fill(utf8("0123456789")), closed);

const TOO_LARGE = { name: "HttpError", status: 413, code: "body_too_large" };
const ABORTED = { name: "HttpError", status: 400, code: "request_aborted" };
const UNAVAILABLE = { name: "PostbellError", code: "raw_body_unavailable" };

describe("reading bytes", () => {
  it("gives back what was sent, however it was cut into chunks, or refuses it by its size", async () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(chunks, fc.nat(200), async (parts, limit) => {
        const whole = Buffer.concat(parts);
        for (const body of [stream(parts), Readable.from(parts), ReadableStream.from(parts), whole]) {
          const outcome = await readBytes(sent(body), { limit }).then(
            (bytes) => Buffer.from(bytes),
            (error: HttpError) => error.code,
          );
          expect(outcome).toEqual(whole.length > limit ? "body_too_large" : whole);
        }
      }),
    );
  });

  it("costs the bytes of a body, not its chunks", async () => {
    const count = 200_000;
    const before = heapUsed() + process.memoryUsage().arrayBuffers;
    let grown = Number.NaN;
    async function* body() {
      for (let sent = 0; sent < count; sent += 1) yield Uint8Array.of(sent % 256);
      grown = heapUsed() + process.memoryUsage().arrayBuffers - before;
    }
    const bytes = await readBytes(sent(body()), { limit: count });
    expect(grown).toBeLessThan(8_000_000);
    expect(Buffer.from(bytes).equals(Uint8Array.from({ length: count }, (_, at) => at % 256))).toBe(true);
  });

  it("finds no bytes where there is no body", async () => {
    expect(await readBytes(sent(null), LIMIT)).toEqual(new Uint8Array(0));
  });

  it("refuses a body that is announced too large without reading of it", async () => {
    let isTouched = false;
    const body: ReadableBody = {
      [Symbol.asyncIterator]: () => {
        isTouched = true;
        return stream([])[Symbol.asyncIterator]();
      },
    };
    await expect(readBytes(sent(body, { "content-length": "1001" }), LIMIT)).rejects.toMatchObject(TOO_LARGE);
    expect(isTouched).toBe(false);
    expect((await readBytes(sent(body, { "content-length": "1000" }), LIMIT)).length).toBe(0);
  });

  it("stops reading where the limit is passed, and closes the stream", async () => {
    let isClosed = false;
    const body = endless(() => {
      isClosed = true;
    });
    await expect(readBytes(sent(body), LIMIT)).rejects.toMatchObject(TOO_LARGE);
    expect(isClosed).toBe(true);
  });

  it("ends when the client leaves, even if the stream never says so", async () => {
    const controller = new AbortController();
    const silent: ReadableBody = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) };
    const reading = readBytes({ ...sent(silent), signal: controller.signal }, LIMIT);
    controller.abort();
    await expect(reading).rejects.toMatchObject(ABORTED);
    await expect(readBytes({ ...sent(silent), signal: controller.signal }, LIMIT)).rejects.toMatchObject(
      ABORTED,
    );
  });

  it("leaves no listener on a signal that outlives the reading", async () => {
    const { signal } = new AbortController();
    await readBytes({ ...sent(stream([utf8("a")])), signal }, LIMIT);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("reports a stream that fails as a body cut short", async () => {
    const failing = Readable.from([utf8("a")]);
    failing.destroy(new Error("reset by peer"));
    await expect(readBytes(sent(failing), LIMIT)).rejects.toMatchObject({
      ...ABORTED,
      cause: expect.objectContaining({ message: "reset by peer" }),
    });
  });

  it("says what to change in the host where a body parser has consumed the bytes", async () => {
    const reading = readBytes(sent({ parsed: { a: 1 } }), LIMIT);
    await expect(reading).rejects.toMatchObject(UNAVAILABLE);
    await expect(reading).rejects.toThrow(/before the body parser.*`req\.rawBody`/);
  });
});

describe("reading JSON", () => {
  it("gives back any value that was sent", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const body = utf8(JSON.stringify(value));
        expect(await readJson(sent(body, JSON_TYPE), { limit: 1e6 })).toEqual(
          JSON.parse(JSON.stringify(value)),
        );
      }),
    );
  });

  it("answers any bytes with a value or a 400, never with another error, and never repeats them", async () => {
    const secret = "whsec_0123456789";
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), async (noise) => {
        const body = Buffer.concat([utf8(`{"secret":"${secret}"`), noise]);
        const error = await asJson(body).catch((reason: unknown) => reason);
        if (!(error instanceof Error)) return;
        expect(error).toMatchObject({ status: 400, code: "invalid_json" });
        expect(`${error.stack}${String(error.cause)}`).not.toContain(secret);
      }),
    );
  });

  it("takes a value that the host has parsed from JSON as it is", async () => {
    const parsed = { a: 1 };
    expect(await asJson({ parsed }, { "content-length": "1000" })).toBe(parsed);
    expect(await asJson({ parsed: null })).toBeNull();
    await expect(asJson({ parsed: undefined })).rejects.toMatchObject(UNAVAILABLE);
  });

  it("refuses a value that the host has parsed from something else, or from more than the limit", async () => {
    for (const type of ["application/x-www-form-urlencoded", "text/plain", ""]) {
      for (const parsed of [{ url: "https://example.com" }, "text", undefined]) {
        const reading = asJson({ parsed }, { "content-type": type });
        await expect(reading).rejects.toMatchObject({ status: 415, code: "unsupported_media_type" });
      }
    }
    await expect(asJson({ parsed: {} }, { "content-length": "1001" })).rejects.toMatchObject(TOO_LARGE);
  });

  it.each([
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
    "application/json; charset=utf8; x=y",
    "application/fhir+json",
    "application/vnd.a.b+json;charset=utf-8",
  ])("accepts %s", async (type) => {
    expect(await readJson(sent(utf8("[1]"), { "content-type": type }), LIMIT)).toEqual([1]);
  });

  it.each([
    "",
    "text/plain",
    "text/json",
    "application/jsonp",
    "application/json-seq",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=json",
    "application/json, text/plain",
    "application/json; charset=utf-7",
    "application/json; charset=utf-16",
    "application/json; charset=utf-8; charset=latin1",
  ])("refuses the content type '%s' with 415", async (type) => {
    const reading = readJson(sent(utf8("{}"), { "content-type": type }), LIMIT);
    await expect(reading).rejects.toMatchObject({ status: 415, code: "unsupported_media_type" });
  });

  it("refuses a body without a content type, and one with a content coding", async () => {
    await expect(readJson(sent(utf8("{}")), LIMIT)).rejects.toMatchObject({ status: 415 });
    for (const coding of ["gzip", "br", "identity, gzip", "x"]) {
      await expect(asJson("{}", { "content-encoding": coding })).rejects.toMatchObject({ status: 415 });
    }
    expect(await asJson("{}", { "content-encoding": " Identity" })).toEqual({});
  });

  it("says whether the body is missing, empty, not UTF-8 or not JSON", async () => {
    const invalid = (message: RegExp) => ({
      status: 400,
      code: "invalid_json",
      message: expect.stringMatching(message),
    });
    await expect(readJson(sent(null), LIMIT)).rejects.toMatchObject(invalid(/no body/));
    await expect(asJson("")).rejects.toMatchObject(invalid(/empty/));
    await expect(asJson(Uint8Array.of(0x22, 0xff, 0x22))).rejects.toMatchObject(invalid(/UTF-8/));
    await expect(asJson(Buffer.from('{"a":1}', "utf16le"))).rejects.toMatchObject(invalid(/not valid JSON/));
    for (const text of [" ", "\uFEFF", "{", "{'a':1}", '{"a":1}{}', "NaN", "\0", '{"a":1,}', "\u00A0{}"]) {
      await expect(asJson(text)).rejects.toMatchObject(invalid(/not valid JSON/));
    }
  });

  it("ignores a byte order mark and lets the last of two equal names count", async () => {
    expect(await asJson('\uFEFF{"a":1,"a":2}')).toEqual({ a: 2 });
  });

  it("leaves the prototype alone, whatever the names are", async () => {
    const value = await asJson('{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}}}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it("survives nesting as deep as the limit allows", async () => {
    const deep = "[".repeat(500_000);
    const reading = readJson(sent(utf8(deep), JSON_TYPE), { limit: 1_000_000 });
    await expect(reading).rejects.toMatchObject({ status: 400 });
    const closed = readJson(sent(utf8(deep + "]".repeat(500_000)), JSON_TYPE), { limit: 1_000_000 });
    await expect(closed).rejects.toMatchObject({ status: 400 });
    const deepest = `${"[".repeat(9_999)}${"]".repeat(9_999)}`;
    const taken = readJson(sent(utf8(deepest), JSON_TYPE), { limit: 1_000_000 });
    expect(Array.isArray(await taken)).toBe(true);
  });

  it("keeps the limit", async () => {
    await expect(asJson(`"${"x".repeat(999)}"`)).rejects.toMatchObject(TOO_LARGE);
  });
});
