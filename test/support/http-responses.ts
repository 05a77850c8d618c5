/**
 * Generates and damages HTTP responses from a seed, and reads them with Node's own client (llhttp)
 * to compare.
 */

import { request } from "node:http";
import { Duplex } from "node:stream";

/**
 * A generator of numbers that are the same in every run: whole, from 0 up to but not including
 * `below`.
 */
export type Random = (below: number) => number;

export function createRandom(seed: number): Random {
  let state = (seed * 2 + 1) | 0;
  return (below) => {
    // xorshift32, by Marsaglia.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const pick = <T>(random: Random, from: readonly T[]): T => from[random(from.length)] as T;
const chance = (random: Random, percent: number): boolean => random(100) < percent;
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

const TOKEN = "abcXYZ019!#$%&'*+-.^_`|~";
const TEXT = "abc XYZ,;:=\"'()<>\t\x80\xa0\xff{}[]@/\\?~";

const textOf = (random: Random, alphabet: string, length: number): string =>
  times(length, () => alphabet[random(alphabet.length)]).join("");

const blank = (random: Random): string => pick(random, ["", " ", " ", " ", "\t", "  \t "]);

const line = (random: Random, name: string, value: string): string =>
  `${name}:${blank(random)}${value}${chance(random, 20) ? blank(random) : ""}\r\n`;

/** A line that says where the body ends: a tab behind its value is refused. */
const framingLine = (random: Random, name: string, value: string): string =>
  `${cased(random, name)}:${pick(random, ["", " ", "  ", "\t"])}${value}${pick(random, ["", "", " "])}\r\n`;

/** The same name in other letters. */
const cased = (random: Random, name: string): string =>
  pick(random, [
    name,
    name.toUpperCase(),
    name.replace(/(?<![a-z])[a-z]/g, (letter) => letter.toUpperCase()),
  ]);

const KNOWN_LINES: readonly (readonly [string, string])[] = [
  ["content-type", "text/html; charset=utf-8"],
  ["set-cookie", "a=1; path=/"],
  ["set-cookie", "b=2"],
  ["date", "Mon, 01 Jan 2024 00:00:00 GMT"],
  ["connection", "keep-alive"],
  ["connection", "close"],
  ["connection", "Keep-Alive, Foo"],
  ["connection", "foo, CLOSE"],
  ["connection", ""],
  ["keep-alive", "timeout=5, max=100"],
  ["retry-after", "120"],
  ["location", "/elsewhere?a=b"],
  ["etag", '"x"'],
];

function otherLines(random: Random): string[] {
  return times(random(5), () => {
    if (chance(random, 60)) {
      const [name, value] = pick(random, KNOWN_LINES);
      return line(random, cased(random, name), value);
    }
    const name = `x-${textOf(random, TOKEN, random(16))}`;
    return line(random, name, textOf(random, TEXT, random(20)).replace(/^[ \t]+|[ \t]+$/g, ""));
  });
}

/** Node's client breaks off at an interim response with `connection: close`. */
const interimLines = (random: Random): string =>
  otherLines(random)
    .filter((text) => !/^connection/i.test(text))
    .join("");

const EXTENSIONS = ["", "", "", ";a", ";a=b", ';a="b c"', ";a=1;b=2", `;${"x".repeat(200)}=y`];

function chunksOf(random: Random, body: string): string {
  let text = "";
  for (let at = 0; at < body.length; ) {
    const part = body.slice(at, at + 1 + random(40));
    const size = part.length.toString(16).padStart(pick(random, [1, 1, 1, 4, 8]), "0");
    const cased = chance(random, 50) ? size.toUpperCase() : size;
    text += `${cased}${pick(random, EXTENSIONS)}\r\n${part}\r\n`;
    at += part.length;
  }
  const trailer = chance(random, 15) ? "x-checksum: 1\r\n" : "";
  return `${text}${"0".repeat(1 + random(3))}${pick(random, EXTENSIONS)}\r\n${trailer}\r\n`;
}

const STATUSES = [200, 200, 200, 201, 202, 204, 206, 299, 301, 304, 400, 404, 410, 429, 500, 503, 599, 999];
const CHUNKED = ["chunked", "chunked", "Chunked", "gzip, chunked", "foo , CHUNKED"];
const REASONS = ["", " ", " OK", " Not Found", " \xe9\x80 \t~"];
const BODY = "0123456789abcdef\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n\x00\x01\x7f\x80\xff";

/** The line that says how the body ends, if any, and the body. */
function framed(random: Random, status: number): readonly [string, string] {
  const body = textOf(random, BODY, pick(random, [0, 1, 5, 30, 300]));
  const length = framingLine(random, "content-length", String(body.length));
  if (status === 204) return ["", ""];
  if (status === 304) return [pick(random, ["", length]), ""];
  switch (random(8)) {
    case 0:
      return ["", body];
    case 1:
      return [framingLine(random, "transfer-encoding", pick(random, ["gzip", "x-foo"])), body];
    case 2:
    case 3:
    case 4:
      return [framingLine(random, "transfer-encoding", pick(random, CHUNKED)), chunksOf(random, body)];
    default:
      return [length, body];
  }
}

/** A response as RFC 9112 allows it, a character per byte, with what may stand before it. */
export function wellFormedResponse(random: Random): string {
  const interim = times(chance(random, 20) ? 1 + random(3) : 0, () => {
    const status = pick(random, [100, 102, 103, 199]);
    return `HTTP/1.1 ${status}${pick(random, REASONS)}\r\n${interimLines(random)}\r\n`;
  });
  const status = pick(random, STATUSES);
  const [framing, body] = framed(random, status);
  const lines = otherLines(random);
  lines.splice(random(lines.length + 1), 0, framing);
  // A transfer coding was unknown to HTTP/1.0, and a message with one is faulty (RFC 9112 section
  // 6.1).
  const version = chance(random, 15) && !/^transfer/i.test(framing) ? "1.0" : "1.1";
  return `${interim.join("")}HTTP/${version} ${status}${pick(random, REASONS)}\r\n${lines.join("")}\r\n${body}`;
}

/** Bytes and lines that parsers read in different ways, as an attacker would send them. */
const SNIPPETS = [
  ...'\r\n \t\0\x0b\x0c\x7f\x80\x85\xa0\xff:;,"0123456789aAfFgxX+-HTP/.'.split(""),
  "\r\n",
  "\r\r\n",
  "\n\n",
  "\r\n ",
  "\r\n\t",
  "\r\n\r\n",
  "0\r\n\r\n",
  "content-length: 5\r\n",
  "Content-Length: 0\r\n",
  "content-length: 5, 5\r\n",
  "content-length: +5\r\n",
  "content-length: 5\xa0\r\n",
  "content-length : 5\r\n",
  "content-length:\r\n",
  "content-length: 99999999999999999999\r\n",
  "transfer-encoding: chunked\r\n",
  "transfer-encoding: identity\r\n",
  "transfer-encoding: chunked\xa0\r\n",
  "transfer-encoding: \x0bchunked\r\n",
  "transfer-encoding: chunked, gzip\r\n",
  "transfer-encoding: chunked, chunked\r\n",
  "transfer-encoding: chunked,\r\n",
  "transfer-encoding: chunked;a=b\r\n",
  'transfer-encoding: a="b, chunked\r\n',
  "transfer-encoding:\r\n",
  "transfer-encoding\0: chunked\r\n",
  "connection: close\xa0\r\n",
  "connection: upgrade\r\nupgrade: x\r\n",
  "HTTP/1.1 200 OK\r\n",
  "HTTP/1.1 204\r\n\r\n",
  "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nxyz",
  "HTTP/1.1 101 x\r\nupgrade: x\r\n\r\n",
];

/** `text` with a few changes, most of them where a line ends. */
export function damaged(random: Random, text: string): string {
  let result = text;
  for (let count = 1 + random(3); count > 0; count -= 1) {
    const ends = [0, ...[...result.matchAll(/\r\n/g)].map(({ index }) => index + 2)];
    const at = Math.min(result.length, pick(random, [random(result.length + 1), pick(random, ends)]));
    const near = Math.max(0, at - random(4));
    const [before, after] = [result.slice(0, near), result.slice(near)];
    const snippet = pick(random, SNIPPETS);
    switch (random(7)) {
      case 0:
        result = before + after.slice(1 + random(3));
        break;
      case 1:
        result = before + snippet + after.slice(1);
        break;
      case 2:
        result = before + after.slice(0, 1 + random(30)) + after;
        break;
      case 3:
        result = before;
        break;
      case 4:
        result += pick(random, [snippet, text]);
        break;
      default:
        result =
          (chance(random, 50) ? result.slice(0, at) : before) +
          snippet +
          (chance(random, 50) ? result.slice(at) : after);
    }
  }
  return result;
}

/** Parts of any length, down to single bytes. */
export function inParts(random: Random, bytes: Buffer): Buffer[] {
  const most = pick(random, [1, 3, 20, 200, 100_000]);
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += parts.at(-1)?.length ?? 0)
    parts.push(bytes.subarray(at, at + 1 + random(most)));
  return parts;
}

export interface NodeReading {
  /** Undefined where Node's client took no head of a final response. */
  readonly status: number | undefined;
  /** Names in lower case; several values of one name are joined by `, `. */
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  /** True if it took the response as complete. */
  readonly isComplete: boolean;
  /** True if it would have reused the connection before the connection ended. */
  readonly isReused: boolean;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function joined(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    const value = raw[at + 1] as string;
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return headers;
}

/**
 * Reads a connection that sends these parts and then ends with Node's client, without a socket or a
 * timer.
 */
export async function readByNode(parts: readonly Buffer[]): Promise<NodeReading> {
  const connection = new Duplex({ read() {}, write: (_part, _encoding, done) => done() });
  let isReused = false;
  connection.once("free", () => {
    isReused = true;
  });
  let status: number | undefined;
  let headers: Record<string, string> = {};
  let isComplete = false;
  const body: Buffer[] = [];
  const sent = request({ createConnection: () => connection, headers: { connection: "keep-alive" } });
  sent.on("error", () => {});
  sent.once("response", (response) => {
    status = response.statusCode;
    headers = joined(response.rawHeaders);
    response.on("data", (part: Buffer) => body.push(part));
    response.on("error", () => {});
    response.once("close", () => {
      isComplete = response.complete;
    });
  });
  sent.end();
  await nextTurn();
  for (const part of parts) connection.push(part);
  await nextTurn();
  const isReusedBeforeEnd = isReused;
  connection.push(null);
  await nextTurn();
  connection.destroy();
  await nextTurn();
  return { status, headers, body: Buffer.concat(body), isComplete, isReused: isReusedBeforeEnd };
}
