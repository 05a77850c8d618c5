/** Reads and writes requests as text, such as the files of `listen --save`. Pure. */

import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { trimEnd } from "../../src/core/trim-end.js";

export interface HttpMessage {
  method: string;
  path: string;
  /** In order, with their names as written. */
  headers: readonly (readonly [name: string, value: string])[];
  body: Uint8Array;
}

export interface ReadMessage extends HttpMessage {
  /** Notes for the user about how the text was read. */
  notes: string[];
}

/** Returns the values of a header, joined as in HTTP. The case of its name does not matter. */
export function getHeader({ headers }: HttpMessage, name: string): string | undefined {
  const values = headers
    .filter(([key]) => key.toLowerCase() === name.toLowerCase())
    .map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(", ");
}

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/;
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/\d(?:\.\d)?$/;
/** Lines that `curl -v` writes around a request: remarks, both heads, and amounts of data. */
const CURL_LINE = /^(?:[*<>](?: |\r?$)|[{}] \[\d+ bytes data\])/;

/**
 * Reads a request: an optional request line, headers, an empty line, and the body up to
 * `Content-Length` or to the end. Lines of the head end with LF or CRLF. In the output of `curl
 * -v`, the head is the lines with `>`, and the body is all that curl did not write itself.
 *
 * @throws `Error` whose message is for the user, if a line of the head is not a header.
 */
export function readMessage(bytes: Uint8Array): ReadMessage {
  // One character per byte, so that the bytes of the body stay the same.
  const text = Buffer.from(bytes).toString("latin1");
  const isCurl = CURL_LINE.test(text.split("\n", 1)[0] ?? "");
  const { head, body } = isCurl ? splitCurl(text) : split(text);
  const lines = head.split(/\r?\n/).filter((line) => line !== "");
  const [, method = "POST", path = "/"] = REQUEST_LINE.exec(lines[0] ?? "") ?? [];
  const isNamed = REQUEST_LINE.test(lines[0] ?? "");
  const headers = lines.slice(isNamed ? 1 : 0).map((line, index): [string, string] => {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new Error(
        `Line ${index + (isNamed ? 2 : 1)} of the request is not a header: expected 'Name: value'.`,
      );
    return [name, trimEnd(value.replace(/^[ \t]+/, ""), " \t")];
  });
  const message = { method, path, headers, body: Buffer.from(body, "latin1") };
  return { ...message, ...cutToLength(message) };
}

function split(text: string): { head: string; body: string } {
  const end = /\r?\n\r?\n/.exec(text);
  if (end === null) return { head: text, body: "" };
  return { head: text.slice(0, end.index), body: text.slice(end.index + end[0].length) };
}

function splitCurl(text: string): { head: string; body: string } {
  const lines = text.split("\n");
  return {
    head: lines
      .filter((line) => line.startsWith("> "))
      .map((line) => line.slice(2))
      .join("\n"),
    body: lines
      .filter((line) => !CURL_LINE.test(line))
      .join("\n")
      .trimEnd(),
  };
}

/** Cuts the body to its `Content-Length`, and notes if the length is wrong. */
function cutToLength(message: HttpMessage): { body: Uint8Array; notes: string[] } {
  const { body } = message;
  const announced = getHeader(message, "content-length");
  const length = announced !== undefined && /^\d{1,15}$/.test(announced) ? Number(announced) : body.length;
  if (length < body.length) {
    return {
      body: body.subarray(0, length),
      notes: [
        `The text continues after the ${length} bytes that Content-Length announces; the rest was ignored.`,
      ],
    };
  }
  return {
    body,
    notes:
      length === body.length
        ? []
        : [`The body has only ${body.length} of the ${length} bytes that Content-Length announces.`],
  };
}

/** Writes a request as the bytes of a file that {@link readMessage} reads. */
export function writeMessage({ method, path, headers, body }: HttpMessage): Uint8Array {
  const others = headers.filter(([name]) => !/^(?:transfer-encoding|content-length)$/i.test(name));
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...others.map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${body.length}`,
  ];
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body]);
}

// Sends a request that was saved or received.

const TIMEOUT_MS = 15_000;
/** Headers that belong to the earlier connection, in addition to `proxy-*`. */
const HOP_HEADERS: Set<string> = new Set(
  "connection keep-alive te trailer transfer-encoding upgrade host content-length expect".split(" "),
);

const isHopHeader = (name: string): boolean =>
  HOP_HEADERS.has(name.toLowerCase()) || name.toLowerCase().startsWith("proxy-");

/**
 * POSTs the body and the headers, byte for byte and in order, to `url`. Resolves with the status.
 * Follows no redirects.
 */
export function sendRequest(
  { headers, body }: HttpMessage,
  url: string,
  signal: AbortSignal,
): Promise<number> {
  const { protocol, host } = new URL(url);
  const forwarded = [
    ...headers.filter(([name]) => !isHopHeader(name)),
    ["Content-Length", String(body.length)],
  ];
  return new Promise((resolve, reject) => {
    const request = (protocol === "https:" ? requestHttps : requestHttp)(
      url,
      {
        method: "POST",
        headers: [["Host", host], ...forwarded].flat() as unknown as Record<string, string>,
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      },
      (response) => {
        response.resume();
        response.on("error", reject);
        response.on("end", () => resolve(response.statusCode ?? 0));
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

/** The largest possible notification has 16 MiB. This leaves room for its head. */
const MAX_REQUEST_BYTES = 17_825_792;

export const TOO_LARGE = "The request is larger than 17 MiB.";

/** Returns `undefined` if the stream has more bytes than the limit. The rest is then not read. */
export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of stream) {
    length += piece.length;
    if (length > MAX_REQUEST_BYTES) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
