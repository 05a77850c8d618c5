import { afterEach, describe, expect, it, vi } from "vitest";
import { parseHead, parseHeaders, type ResponseHead } from "../../src/outbound/http-message.js";
import {
  createChunkedBody,
  createResponseReader,
  type ReadProblem,
  type ReadState,
} from "../../src/outbound/response-reader.js";
import { countExecutedBlocks } from "../support/executed-blocks.js";
import { createRandom, damaged, inParts, readByNode, wellFormedResponse } from "../support/http-responses.js";

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const ONE = `${OK}content-length: 1\r\n\r\nx`;
const MAX_HEAD_BYTES = 16_384;

const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1");

interface Reading {
  readonly state: ReadState;
  readonly problem: ReadProblem | undefined;
  /** True if the connection had to end before the response was complete. */
  readonly isByEnd: boolean;
  readonly head: ResponseHead | undefined;
  readonly body: string;
}

/**
 * Reads a connection that sends these parts and then ends. Bytes after a complete response are
 * excess.
 */
function read(parts: readonly Buffer[]): Reading {
  let head: ResponseHead | undefined;
  let body = "";
  const reader = createResponseReader({
    onHead: (told) => {
      if (head !== undefined) throw new Error("a second head");
      head = told;
    },
    onBody: (bytes) => {
      if (head === undefined || bytes.length === 0) throw new Error("a part without a body");
      body += bytes.toString("latin1");
    },
  });
  reader.start();
  let state: ReadState = "open";
  let at = 0;
  for (; at < parts.length && state === "open"; at += 1) state = reader.read(parts[at] as Buffer);
  if (at < parts.length && state === "complete") state = "excess";
  const isByEnd = state === "open";
  if (isByEnd) state = reader.end();
  return { state, problem: state === "broken" ? reader.problem() : undefined, isByEnd, head, body };
}

const isTaken = ({ state }: Reading): boolean => state === "complete" || state === "excess";

/** Whole, in two parts at every position, and byte by byte: all must be read alike. */
function readInAllWays(text: string): Reading {
  const bytes = bytesOf(text);
  const whole = read([bytes]);
  for (let at = 1; at < bytes.length; at += 1) {
    expect(read([bytes.subarray(0, at), bytes.subarray(at)]), `split at ${at}`).toEqual(whole);
  }
  expect(read([...bytes].map((byte) => Buffer.of(byte)))).toEqual(whole);
  return whole;
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("the head", () => {
  it.each<[string, Partial<ResponseHead>]>([
    [`${OK}\r\n`, { status: 200, framing: "close", isKeptAlive: false, headerLines: "" }],
    ["HTTP/1.1 204\r\n\r\n", { status: 204, framing: 0, isKeptAlive: true }],
    ["HTTP/1.1 304 \r\ncontent-length: 5\r\n\r\n", { status: 304, framing: 0, isKeptAlive: true }],
    ["HTTP/1.1 103 Hi\r\ncontent-length: 5\r\n\r\n", { status: 103, framing: 0 }],
    ["HTTP/1.1 204 x\r\ntransfer-encoding: chunked\r\n\r\n", { framing: 0 }],
    ["HTTP/1.1 999 \xe9\t~\r\ncontent-length: 0\r\n\r\n", { status: 999, framing: 0 }],
    [`${OK}Content-LENGTH:\t7 \r\n\r\n`, { framing: 7, isKeptAlive: true }],
    [`${OK}content-length: 007\r\n\r\n`, { framing: 7 }],
    [`${OK}content-length: 999999999999999\r\n\r\n`, { framing: 999_999_999_999_999 }],
    [`${OK}transfer-encoding: gzip , Chunked\r\n\r\n`, { framing: "chunked", isKeptAlive: true }],
    [`${OK}transfer-encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n`, { framing: "chunked" }],
    [`${OK}transfer-encoding: chunked, gzip\r\n\r\n`, { framing: "close", isKeptAlive: false }],
    [`${OK}transfer-encoding: chunked;a=b\r\n\r\n`, { framing: "close" }],
    [`${OK}transfer-encoding: chunked\xa0\r\n\r\n`, { framing: "close" }],
    [`${OK}x-transfer-encodin: chunked\r\nxontent-length: 5\r\n\r\n`, { framing: "close" }],
    [`${OK}content-length: 1\r\nconnection: foo,\t CLOSE\r\n\r\n`, { isKeptAlive: false }],
    [`${OK}content-length: 1\r\nconnection: keep-alive\r\nconnection: close\r\n\r\n`, { isKeptAlive: false }],
    [`${OK}content-length: 1\r\nconnection: closed, x-close\r\n\r\n`, { isKeptAlive: true }],
    [`${OK}content-length: 1\r\nconnection:\r\n\r\n`, { isKeptAlive: true }],
    ["HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n", { isKeptAlive: false }],
    ["HTTP/1.0 200 OK\r\ncontent-length: 1\r\nconnection: Keep-Alive\r\n\r\n", { isKeptAlive: true }],
    ["HTTP/1.0 200 OK\r\ncontent-length: 1\r\nconnection: no-keep-alive\r\n\r\n", { isKeptAlive: false }],
    [
      "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n",
      { framing: "chunked", isKeptAlive: false },
    ],
    [`${OK}keep-alive: timeout=7, max=5\r\n\r\n`, { keepAliveSeconds: 7 }],
    [`${OK}keep-alive: max=5,TIMEOUT=0\r\n\r\n`, { keepAliveSeconds: 0 }],
    [`${OK}keep-alive: xtimeout=5\r\n\r\n`, { keepAliveSeconds: undefined }],
    [`${OK}keep-alive: timeout=x\r\n\r\n`, { keepAliveSeconds: undefined }],
  ])("%j is read as %o", (text, expected) => {
    expect(parseHead(text)).toMatchObject(expected);
  });

  it.each([
    "",
    "\r\n",
    "HTTP/1.1 200 OK",
    OK,
    "HTTP/1.1 200 OK\n\n",
    "HTTP/1.1 200 OK\r\n\n",
    "HTTP/1.1 200 O\rK\r\n\r\n",
    "HTTP/1.1 200 O\0K\r\n\r\n",
    "HTTP/1.1 200 O\x7f\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1 2x0 OK\r\n\r\n",
    "HTTP/1.1  200 OK\r\n\r\n",
    "HTTP/1.1\t200 OK\r\n\r\n",
    "HTTP/1.1 -20 OK\r\n\r\n",
    "HTTP/1.2 200 OK\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
    "http/1.1 200 OK\r\n\r\n",
    " HTTP/1.1 200 OK\r\n\r\n",
    `\r\n${OK}\r\n`,
    `${OK}\r\n\r\n`,
    `${OK}\r\nx`,
    `${OK}a\r\n\r\n`,
    `${OK}: b\r\n\r\n`,
    `${OK}a : b\r\n\r\n`,
    `${OK} a: b\r\n\r\n`,
    `${OK}a: b\r\n c\r\n\r\n`,
    `${OK}a: b\r\n\tc\r\n\r\n`,
    `${OK}a: b\nc: d\r\n\r\n`,
    `${OK}a: b\rc\r\n\r\n`,
    `${OK}a: \0\r\n\r\n`,
    `${OK}a: \x7f\r\n\r\n`,
    `${OK}\xe9: b\r\n\r\n`,
    `${OK}a(: b\r\n\r\n`,
    `${OK}content-length:\r\n\r\n`,
    `${OK}content-length: -1\r\n\r\n`,
    `${OK}content-length: +1\r\n\r\n`,
    `${OK}content-length: 0x1\r\n\r\n`,
    `${OK}content-length: 1.0\r\n\r\n`,
    `${OK}content-length: 1 1\r\n\r\n`,
    `${OK}content-length: 1, 1\r\n\r\n`,
    `${OK}content-length: 1\t\r\n\r\n`,
    `${OK}content-length: 1\xa0\r\n\r\n`,
    `${OK}content-length: \xa01\r\n\r\n`,
    `${OK}content-length: 1000000000000000\r\n\r\n`,
    `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\n`,
    `${OK}content-length: 1\r\nCONTENT-LENGTH: 2\r\n\r\n`,
    `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
    `${OK}transfer-encoding: gzip\r\ncontent-length: 1\r\n\r\n`,
    `${OK}transfer-encoding:\r\n\r\n`,
    `${OK}transfer-encoding: chunked,\r\n\r\n`,
    `${OK}transfer-encoding: chunked\r\ntransfer-encoding:\r\n\r\n`,
    `${OK}transfer-encoding: chunked\t\r\n\r\n`,
    `${OK}transfer-encoding: gzip,\tchunked\r\n\r\n`,
    "HTTP/1.1 204 x\r\ncontent-length: x\r\n\r\n",
    "HTTP/1.1 204 x\r\ntransfer-encoding: ,\r\n\r\n",
  ])("%j is refused", (text) => {
    expect(parseHead(text)).toBeUndefined();
  });

  it("gives the headers by name, without the blanks around their values and with every other byte", () => {
    const headers = parseHeaders(
      "A:b\r\na: \t c d \t\r\nEmpty:\r\nblank: \t \r\n__proto__: e\r\nx: \xa0\x85:f\xa0\r\nA:  g\r\n",
    );
    expect(Object.getPrototypeOf(headers)).toBeNull();
    expect(Object.entries(headers)).toEqual([
      ["a", "b, c d, g"],
      ["empty", ""],
      ["blank", ""],
      ["__proto__", "e"],
      ["x", "\xa0\x85:f\xa0"],
    ]);
    expect(Object.keys(parseHeaders(""))).toEqual([]);
  });
});

describe("a response, however it is split,", () => {
  it.each<[string, string, Partial<Reading>]>([
    ["with a length", ONE, { state: "complete", isByEnd: false, body: "x" }],
    ["with the length 0", `${OK}content-length: 0\r\n\r\n`, { state: "complete", isByEnd: false, body: "" }],
    ["that is a 204", "HTTP/1.1 204 x\r\n\r\n", { state: "complete", isByEnd: false }],
    ["that is a 304", "HTTP/1.1 304 x\r\ncontent-length: 9\r\n\r\n", { state: "complete", isByEnd: false }],
    ["until the end", `${OK}\r\nab`, { state: "complete", isByEnd: true, body: "ab" }],
    ["until the end, without a body", `${OK}\r\n`, { state: "complete", isByEnd: true, body: "" }],
    [
      "in chunks",
      `${CHUNKED}1\r\na\r\n0a\r\n0123456789\r\n0\r\n\r\n`,
      { state: "complete", body: "a0123456789" },
    ],
    [
      "in chunks of capital size",
      `${CHUNKED}0000000A;b="c d";e\r\n0123456789\r\n000;f\r\n\r\n`,
      { state: "complete" },
    ],
    ["in chunks, without a body", `${CHUNKED}0\r\n\r\n`, { state: "complete", isByEnd: false, body: "" }],
    [
      "with line breaks in its chunks",
      `${CHUNKED}5\r\n\r\n\r\n0\r\n0\r\n\r\n`,
      { state: "complete", body: "\r\n\r\n0" },
    ],
    ["with trailers", `${CHUNKED}1\r\na\r\n0\r\nb: c\r\n\r\n`, { state: "excess", body: "a" }],
    ["with a line feed for a trailer", `${CHUNKED}0\r\n\n`, { state: "excess" }],
    [
      "after interim ones",
      `HTTP/1.1 100 x\r\ncontent-length: 3\r\n\r\nHTTP/1.0 103\r\na: b\r\n\r\n${ONE}`,
      { state: "complete", body: "x" },
    ],
    ["with a byte after its length", `${ONE}y`, { state: "excess", body: "x" }],
    ["with a byte after its chunks", `${CHUNKED}0\r\n\r\ny`, { state: "excess", body: "" }],
    ["with a body it cannot have", "HTTP/1.1 204 x\r\n\r\ny", { state: "excess", body: "" }],
    ["with another after it", `${ONE}${OK}content-length: 6\r\n\r\nforged`, { state: "excess", body: "x" }],
    [
      "shorter than its length",
      `${OK}content-length: 2\r\n\r\nx`,
      { state: "broken", problem: "BAD_RESPONSE", body: "x" },
    ],
    ["that ends before its last chunk", `${CHUNKED}1\r\na\r\n`, { state: "broken", body: "a" }],
    ["that ends after its last chunk", `${CHUNKED}1\r\na\r\n0\r\n`, { state: "broken", body: "a" }],
    ["that ends within its last line break", `${CHUNKED}0\r\n\r`, { state: "broken" }],
    ["that ends in its head", OK, { state: "broken", head: undefined }],
    ["that is empty", "", { state: "broken", problem: "BAD_RESPONSE" }],
    ["that is only interim", "HTTP/1.1 100 x\r\n\r\n", { state: "broken", head: undefined }],
    ["that switches protocols", "HTTP/1.1 101 x\r\nupgrade: y\r\n\r\n", { state: "broken", head: undefined }],
    ["that is not HTTP", "<html>", { state: "broken", problem: "BAD_RESPONSE" }],
    ["with a bad head", `${OK}a : b\r\n\r\n`, { state: "broken", head: undefined }],
    [
      "after a bad interim one",
      `HTTP/1.1 103 x\r\na : b\r\n\r\n${ONE}`,
      { state: "broken", head: undefined },
    ],
    ["after an empty line", `\r\n${ONE}`, { state: "broken", head: undefined }],
    ["with an empty line after an interim one", `HTTP/1.1 100 x\r\n\r\n\r\n${ONE}`, { state: "broken" }],
    ["with an empty chunk size", `${CHUNKED}\r\n\r\n`, { state: "broken" }],
    ["with an extension for a chunk size", `${CHUNKED};a\r\n\r\n`, { state: "broken" }],
    ["with a blank before a chunk size", `${CHUNKED} 1\r\na\r\n0\r\n\r\n`, { state: "broken" }],
    ["with a blank after a chunk size", `${CHUNKED}1 \r\na\r\n0\r\n\r\n`, { state: "broken" }],
    ["with a sign before a chunk size", `${CHUNKED}+1\r\na\r\n0\r\n\r\n`, { state: "broken" }],
    ["with 0x before a chunk size", `${CHUNKED}0x1\r\na\r\n0\r\n\r\n`, { state: "broken" }],
    ["with a line feed after a chunk size", `${CHUNKED}1\na\r\n0\r\n\r\n`, { state: "broken", body: "" }],
    ["with a CR and no LF after a chunk size", `${CHUNKED}1\ra\r\n0\r\n\r\n`, { state: "broken", body: "" }],
    ["with a line feed in an extension", `${CHUNKED}1;a\na\r\n0\r\n\r\n`, { state: "broken", body: "" }],
    [
      "with a control character in an extension",
      `${CHUNKED}1;\0\r\na\r\n0\r\n\r\n`,
      { state: "broken", body: "" },
    ],
    ["with a line feed after a chunk", `${CHUNKED}1\r\na\n0\r\n\r\n`, { state: "broken", body: "a" }],
    ["with a CR and no LF after a chunk", `${CHUNKED}1\r\na\r0\r\n\r\n`, { state: "broken", body: "a" }],
    ["with a chunk longer than its size", `${CHUNKED}1\r\nab\r\n0\r\n\r\n`, { state: "broken", body: "a" }],
  ])("%s is read alike", (_name, text, expected) => {
    expect(readInAllWays(text)).toMatchObject(expected);
  });

  it("that sends nothing is still awaited, and so is an empty part of one", () => {
    const reader = createResponseReader({ onHead: () => {}, onBody: () => {} });
    reader.start();
    expect(reader.read(Buffer.alloc(0))).toBe("open");
    expect(reader.read(bytesOf("H"))).toBe("open");
    expect(reader.read(Buffer.alloc(0))).toBe("open");
    expect(reader.read(bytesOf("x"))).toBe("broken");
    expect(reader.problem()).toBe("BAD_RESPONSE");
  });

  it("is told apart from the one before it on the same connection", () => {
    const told: (number | string)[] = [];
    const reader = createResponseReader({
      onHead: ({ status }) => told.push(status),
      onBody: (bytes) => told.push(bytes.toString()),
    });
    const broken = `${CHUNKED}5;${"x".repeat(10_000)}`;
    for (const text of [
      ONE,
      broken,
      `HTTP/1.1 404 x\r\ncontent-length: 2\r\n\r\nab`,
      broken,
      "HTTP",
      broken,
      ONE,
    ]) {
      reader.start();
      for (const byte of bytesOf(text)) reader.read(Buffer.of(byte));
      reader.stop();
    }
    expect(told).toEqual([200, "x", 200, 404, "a", "b", 200, 200, 200, "x"]);
  });

  it.each([
    ["length", `${OK}content-length: 4\r\n\r\nabcd`],
    ["chunks", `${CHUNKED}2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n`],
    ["end", `${OK}\r\nabcd`],
  ])("with a %s is not read further once it is stopped, at its head or in its body", (_name, text) => {
    for (const stopAt of ["head", "body"]) {
      let parts = 0;
      const reader = createResponseReader({
        onHead: () => void (stopAt === "head" && reader.stop()),
        onBody: () => {
          parts += 1;
          reader.stop();
        },
      });
      reader.start();
      expect(reader.read(bytesOf(text))).toBe("broken");
      expect(reader.read(bytesOf(text))).toBe("broken");
      expect(reader.end()).toBe("broken");
      expect(parts).toBe(stopAt === "head" ? 0 : 1);
    }
  });
});

describe("the bounds", () => {
  const headOf = (length: number): string => {
    const text = `${OK}content-length: 1\r\na: `;
    return `${text}${"b".repeat(length - text.length - 4)}\r\n\r\n`;
  };
  const inThreeWays = (text: string): readonly Reading[] => {
    const bytes = bytesOf(text);
    return [[bytes], inParts(createRandom(7), bytes), [...bytes].map((byte) => Buffer.of(byte))].map(read);
  };

  it("let a head have 16 KiB, and not one byte more", () => {
    for (const reading of inThreeWays(`${headOf(MAX_HEAD_BYTES)}x`))
      expect(reading).toMatchObject({ state: "complete", body: "x" });
    for (const reading of inThreeWays(`${headOf(MAX_HEAD_BYTES + 1)}x`))
      expect(reading).toMatchObject({ state: "broken", problem: "HEADERS_TOO_LARGE", head: undefined });
    for (const reading of inThreeWays(`${OK}a: ${"b".repeat(MAX_HEAD_BYTES)}`))
      expect(reading).toMatchObject({ state: "broken", problem: "HEADERS_TOO_LARGE" });
  });

  it("count each interim response by itself, up to 32 of them", () => {
    const long = headOf(MAX_HEAD_BYTES).replace("200", "103");
    for (const reading of inThreeWays(`${long}${long}${headOf(MAX_HEAD_BYTES)}x`))
      expect(reading).toMatchObject({ state: "complete", body: "x" });
    const interim = "HTTP/1.1 103 x\r\n\r\n";
    for (const reading of inThreeWays(`${interim.repeat(32)}${ONE}`))
      expect(reading).toMatchObject({ state: "complete", body: "x" });
    for (const reading of inThreeWays(`${interim.repeat(33)}${ONE}`))
      expect(reading).toMatchObject({ state: "broken", problem: "TOO_MANY_INTERIM_RESPONSES" });
  });

  it("let the extensions of a body have 16 KiB, and not one byte more", () => {
    const body = (first: number, second: number): string =>
      `${CHUNKED}1;${"a".repeat(first)}\r\nx\r\n0;${"b".repeat(second)}\r\n\r\n`;
    for (const reading of inThreeWays(body(16_000, 384)))
      expect(reading).toMatchObject({ state: "complete" });
    for (const reading of inThreeWays(body(16_000, 385))) expect(reading).toMatchObject({ state: "broken" });
  });

  it("let the size of a chunk have eight digits", () => {
    expect(readInAllWays(`${CHUNKED}00000001\r\nx\r\n00000000\r\n\r\n`)).toMatchObject({ state: "complete" });
    expect(readInAllWays(`${CHUNKED}000000001\r\nx\r\n0\r\n\r\n`)).toMatchObject({ state: "broken" });
    const chunks = createChunkedBody(() => {});
    chunks.start();
    chunks.read(bytesOf("ffffffff\r\nab"), 0);
    expect(chunks.state()).toBe("open");
  });
});

describe("the coding in chunks", () => {
  it("is read from where it begins to where it ends", () => {
    const data: string[] = [];
    const chunks = createChunkedBody((bytes) => data.push(bytes.toString()));
    for (let round = 0; round < 2; round += 1) {
      chunks.start();
      expect(chunks.read(bytesOf("--3\r\nab"), 2)).toBe(7);
      expect(chunks.state()).toBe("open");
      expect(chunks.read(bytesOf("c\r\n0\r\n\r\nmore"), 0)).toBe(8);
      expect(chunks.state()).toBe("complete");
      expect(chunks.read(bytesOf("5\r\n"), 0)).toBe(0);
    }
    expect(data).toEqual(["ab", "c", "ab", "c"]);
  });
});

/**
 * Compares our reader with Node's client for a response that ours accepts. Returns the differences.
 */
async function differenceOf(
  text: string,
  parts: readonly Buffer[],
  ours: Reading,
): Promise<string | undefined> {
  const { head } = ours;
  if (!isTaken(ours) || head === undefined) return undefined;
  const node = await readByNode(parts);
  if (!node.isComplete) {
    // Ours skips what follows the size of a chunk, and trailers; Node's parses them.
    const isSkipped = head.framing === "chunked" && (ours.state === "excess" || text.includes(";"));
    const isInterimClose = /^HTTP\/1\.[01] 1\d\d.*\r\n(?:[^\r].*\r\n)*connection:.*close/im.test(text);
    if (isInterimClose) return undefined;
    if (!isSkipped) return "complete";
    return ours.body.startsWith(node.body.toString("latin1")) ? undefined : "the beginning of the body";
  }
  if (node.status !== head.status) return "status";
  if (JSON.stringify(node.headers) !== JSON.stringify(parseHeaders(head.headerLines))) return "headers";
  if (node.body.toString("latin1") !== ours.body) return "body";
  // A tab after `keep-alive` in HTTP/1.0 is a part of the value to Node's.
  const isReused = ours.state === "complete" && !ours.isByEnd && head.isKeptAlive;
  return isReused && !node.isReused && !/\t[ \t]*\r\n/.test(text) ? "use of the connection" : undefined;
}

describe("beside Node's own parser", () => {
  const WELL_FORMED = 1_500;
  const DAMAGED = 10_000;

  it("takes what is well formed, and reads it alike", async () => {
    let reused = 0;
    for (let seed = 1; seed <= WELL_FORMED; seed += 1) {
      const random = createRandom(seed);
      const text = wellFormedResponse(random);
      const parts = inParts(random, bytesOf(text));
      const ours = read(parts);
      const difference = isTaken(ours) ? await differenceOf(text, parts, ours) : "not taken";
      if (difference !== undefined) throw new Error(`seed ${seed}: ${difference}: ${JSON.stringify(text)}`);
      if (ours.state === "complete" && ours.head?.isKeptAlive) reused += 1;
    }
    // Otherwise the comparison would show little.
    expect(reused).toBeGreaterThan(WELL_FORMED / 4);
  });

  it("reads alike whatever it takes of what is damaged", async () => {
    let taken = 0;
    for (let seed = 1; seed <= DAMAGED; seed += 1) {
      const random = createRandom(100_000 + seed);
      const text = damaged(random, wellFormedResponse(random));
      const parts = inParts(random, bytesOf(text));
      const ours = read(parts);
      const difference = await differenceOf(text, parts, ours);
      if (difference !== undefined) throw new Error(`seed ${seed}: ${difference}: ${JSON.stringify(text)}`);
      if (isTaken(ours)) taken += 1;
    }
    expect(taken).toBeGreaterThan(DAMAGED / 10);
    expect(taken).toBeLessThan(DAMAGED / 2);
  });

  it("reads a truncated response alike, wherever it ends", async () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const text = wellFormedResponse(createRandom(seed));
      for (let length = 0; length < Math.min(text.length, 300); length += 1) {
        const cut = text.slice(0, length);
        const parts = [bytesOf(cut)];
        expect(await differenceOf(cut, parts, read(parts)), JSON.stringify(cut)).toBeUndefined();
      }
    }
  });

  it.each([
    ["an empty line first: RFC 9112 lets servers skip one, not clients", `\r\n${ONE}`],
    ["a line feed first", `\n${ONE}`],
    ["another protocol: nobody asked for it", "HTTP/1.1 101 x\r\nupgrade: x\r\n\r\n"],
    [
      "a control character in the reason: Node's may drop it or not",
      `HTTP/1.1 200 \x0b\r\ncontent-length: 0\r\n\r\n`,
    ],
    ["a status below 100", "HTTP/1.1 099 x\r\ncontent-length: 0\r\n\r\n"],
    ["an older version: it has no headers", "HTTP/0.9 200 OK\r\ncontent-length: 0\r\n\r\n"],
    ["a newer version: it does not look like this", "HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n"],
    ["an empty coding: others see no last one", `${OK}transfer-encoding: chunked,\r\n\r\n0\r\n\r\n`],
    [
      "a tab in the codings: others see a part of a name",
      `${OK}transfer-encoding: a,\tchunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      "a tab after the coding: to Node's it is not chunked",
      `${OK}transfer-encoding: chunked\t\r\n\r\n0\r\n\r\n`,
    ],
    ["a length of more digits than a number holds", `${OK}content-length: 0000000000000001\r\n\r\nx`],
    ["a chunk size of more digits than any needs", `${CHUNKED}000000001\r\nx\r\n0\r\n\r\n`],
    ["interim responses without end", `${"HTTP/1.1 103 x\r\n\r\n".repeat(33)}${ONE}`],
  ])("refuses on purpose what Node's takes: %s", async (_reason, text) => {
    const parts = [bytesOf(text)];
    expect((await readByNode(parts)).isComplete).toBe(true);
    expect(read(parts).state).toBe("broken");
  });

  it("refuses a line of codings without one, as Node 26 does and Node 20 does not", () => {
    expect(read([bytesOf(`${OK}transfer-encoding:\r\n\r\nx`)]).state).toBe("broken");
  });

  it.each([
    ["trailer fields, which it does not read", `${CHUNKED}1\r\na\r\n0\r\nb: c\r\n\r\n`],
    [
      "HTTP/1.0 in chunks, which that did not know",
      `${CHUNKED.replace("1.1 200 OK", "1.0 200 OK\r\nconnection: keep-alive")}0\r\n\r\n`,
    ],
  ])("does not use the connection again after what Node's would: %s", async (_reason, text) => {
    const parts = [bytesOf(text)];
    const ours = read(parts);
    expect(await readByNode(parts)).toMatchObject({ isComplete: true, isReused: true });
    expect([isTaken(ours), ours.state === "complete" && ours.head?.isKeptAlive]).toEqual([true, false]);
  });

  it.each([
    [
      "an interim response that says close: it is about what follows the final one",
      `HTTP/1.1 103 x\r\nconnection: close\r\n\r\n${ONE}`,
    ],
    ["an invalid extension: its line ends at the same place for all", `${CHUNKED}1; a=\r\nx\r\n0\r\n\r\n`],
    [
      "invalid trailer fields: the body is complete, and the connection is dropped",
      `${CHUNKED}1\r\nx\r\n0\r\n\0\r\n\r\n`,
    ],
  ])("takes on purpose what Node's refuses: %s", async (_reason, text) => {
    const parts = [bytesOf(text)];
    expect((await readByNode(parts)).isComplete).toBe(false);
    expect(read(parts)).toMatchObject({ body: "x" });
    expect(isTaken(read(parts))).toBe(true);
  });
});

describe("the time", () => {
  /**
   * Bytes that Buffers search, copy, compare, decode and allocate. The counts of the program itself
   * are in blocks.
   */
  function countBufferWork(): () => number {
    let work = 0;
    const count = (
      method: "indexOf" | "copy" | "compare" | "toString",
      costOf: (bytes: Buffer, args: readonly (number | undefined)[], result: number) => number,
    ): void => {
      const original = Buffer.prototype[method] as (...args: unknown[]) => unknown;
      const counted = function (this: Buffer, ...args: unknown[]): unknown {
        const result = Reflect.apply(original, this, args);
        work += 1 + costOf(this, args as number[], result as number);
        return result;
      };
      vi.spyOn(Buffer.prototype, method).mockImplementation(counted as never);
    };
    count("indexOf", ({ length }, [, from = 0], found) => (found < 0 ? length : found) - from);
    count("copy", (_bytes, _args, copied) => copied);
    count("compare", ({ length }, [, , , start = 0, end = length]) => end - start);
    count("toString", ({ length }, [, start = 0, end = length]) => end - start);
    vi.spyOn(Buffer, "allocUnsafe").mockImplementation((size) => {
      work += size;
      return Buffer.alloc(size);
    });
    return () => work;
  }

  const byBytes = (text: string): Buffer[] => [...bytesOf(text)].map((byte) => Buffer.of(byte));
  const INPUTS: readonly (readonly [string, (count: number) => readonly Buffer[]])[] = [
    ["a head byte by byte", (count) => byBytes(`${OK}${"a: b\r\n".repeat(count)}`)],
    ["a head in one", (count) => [bytesOf(`${OK}${"a: b\r\n".repeat(count)}\r\n`)]],
    ["a header byte by byte", (count) => byBytes(`${OK}a: ${"b".repeat(6 * count)}`)],
    ["many interim responses in one", (count) => [bytesOf("HTTP/1.1 103 x\r\n\r\n".repeat(count / 64))]],
    ["many interim responses byte by byte", (count) => byBytes("HTTP/1.1 103 x\r\n\r\n".repeat(count / 64))],
    ["a body byte by byte", (count) => byBytes(`${OK}content-length: ${count}\r\n\r\n${"x".repeat(count)}`)],
    ["small chunks in one", (count) => [bytesOf(`${CHUNKED}${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`)]],
    ["small chunks byte by byte", (count) => byBytes(`${CHUNKED}${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`)],
    ["an extension byte by byte", (count) => byBytes(`${CHUNKED}1;${"x".repeat(6 * count)}`)],
    ["a body until the end", (count) => [...byBytes(`${OK}\r\n`), ...byBytes("x".repeat(count))]],
  ];

  it("grows with the bytes alone, however they come", async () => {
    // The last test, because the counting slows the process down. Loaded once more: of code that
    // was compiled before, only calls of functions are counted.
    const blocks = await countExecutedBlocks("/src/outbound/");
    vi.resetModules();
    const fresh = await import("../../src/outbound/response-reader.js");
    const costOf = async (parts: readonly Buffer[]): Promise<readonly [number, number]> => {
      const before = await blocks.count();
      const bufferWork = countBufferWork();
      const reader = fresh.createResponseReader({ onHead: () => {}, onBody: () => {} });
      reader.start();
      for (const part of parts) reader.read(part);
      const work = bufferWork();
      vi.restoreAllMocks();
      return [(await blocks.count()) - before, work];
    };
    for (const [name, make] of INPUTS) {
      await costOf(make(128));
      const once = await costOf(make(1024));
      // Linear work is four times as much, quadratic work sixteen times. V8 forgets some counts of
      // code that it frees meanwhile.
      const fourTimes = await costOf(make(4096));
      expect(once[0], name).toBeGreaterThan(0);
      expect(fourTimes[0] / once[0], `${name}: blocks`).toBeLessThan(8);
      expect(fourTimes[1] / Math.max(1, once[1]), `${name}: bytes`).toBeLessThan(8);
    }
    await blocks.stop();
  });
});
