/** A request as text: reading what `listen --save` wrote or somebody pasted, and writing it. Pure. */

import { trimEnd } from "../src/core/trim-end.js";

export interface HttpMessage {
  readonly method: string;
  readonly path: string;
  /** In order and as written. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}

export interface ReadMessage extends HttpMessage {
  /** What a reader should know of how the text was understood. */
  readonly notes: readonly string[];
}

/** The values of a header, in any case, joined as HTTP joins them. */
export function getHeader({ headers }: HttpMessage, name: string): string | undefined {
  const values = headers
    .filter(([key]) => key.toLowerCase() === name.toLowerCase())
    .map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(", ");
}

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/;
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/\d(?:\.\d)?$/;
/** What `curl -v` writes around a request: its remarks, both heads, and how much data went by. */
const CURL_LINE = /^(?:[*<>](?: |\r?$)|[{}] \[\d+ bytes data\])/;

/**
 * Reads a request: a request line (may be missing), headers, an empty line, the body up to `Content-Length` or to the end. Lines of the head end with LF or CRLF. Of the
 * output of `curl -v` the head is the lines with `>`, and the body what curl did not write.
 * Errors: Error with a sentence, where a line of the head is no header.
 */
export function readMessage(bytes: Uint8Array): ReadMessage {
  // One character a byte, so that the body comes out as it went in.
  const text = Buffer.from(bytes).toString("latin1");
  const isCurl = CURL_LINE.test(text.split("\n", 1)[0] ?? "");
  const { head, body } = isCurl ? splitCurl(text) : split(text);
  const lines = head.split(/\r?\n/).filter((line) => line !== "");
  const [, method = "POST", path = "/"] = REQUEST_LINE.exec(lines[0] ?? "") ?? [];
  const isNamed = REQUEST_LINE.test(lines[0] ?? "");
  const headers = lines.slice(isNamed ? 1 : 0).map((line, index): readonly [string, string] => {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new Error(
        `Line ${index + (isNamed ? 2 : 1)} of the request is no header: 'Name: value' was expected.`,
      );
    return [name, trimEnd(value.replace(/^[ \t]+/, ""), " \t")];
  });
  const message = { method, path, headers, body: Buffer.from(body, "latin1") };
  return { ...message, ...measured(message) };
}

function split(text: string): { readonly head: string; readonly body: string } {
  const end = /\r?\n\r?\n/.exec(text);
  if (end === null) return { head: text, body: "" };
  return { head: text.slice(0, end.index), body: text.slice(end.index + end[0].length) };
}

function splitCurl(text: string): { readonly head: string; readonly body: string } {
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

/** The body as long as the head says, and what was wrong with its length. */
function measured(message: HttpMessage): { readonly body: Uint8Array; readonly notes: readonly string[] } {
  const { body } = message;
  const announced = getHeader(message, "content-length");
  const length = announced !== undefined && /^\d{1,15}$/.test(announced) ? Number(announced) : body.length;
  if (length < body.length) {
    return {
      body: body.subarray(0, length),
      notes: [`The text goes on after the ${length} bytes that Content-Length announces; they were taken.`],
    };
  }
  return {
    body,
    notes:
      length === body.length
        ? []
        : [`The body has ${body.length} of the ${length} bytes that Content-Length announces.`],
  };
}

/** The request as the bytes of a file that {@link readMessage} reads. */
export function writeMessage({ method, path, headers, body }: HttpMessage): Uint8Array {
  const kept = headers.filter(([name]) => !/^(?:transfer-encoding|content-length)$/i.test(name));
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...[...kept, ["Content-Length", String(body.length)] as const].map(
      ([name, value]) => `${name}: ${value}`,
    ),
  ];
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body]);
}
