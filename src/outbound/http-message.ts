/**
 * The messages of HTTP/1.1 (RFC 9112): writes requests, parses the heads of responses, and holds
 * one exchange, a request with what was received of its response.
 */

import { allocateBriefly } from "../core/bytes.js";
import type { Deadline } from "../core/clock.js";
import type { AllowedTarget } from "./address-policy.js";
import type { OutboundRequest, OutboundResponse, OutboundResult, ResponseReceiver } from "./types.js";

/** A token of RFC 9110. */
export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Headers that the client sets itself. If they were sent twice, one request could become two for
 * the endpoint.
 */
export const RESERVED_HEADERS: Set<string> = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers of all requests to a target. */
export const commonHeaders = ({ origin }: AllowedTarget): string =>
  `host: ${origin.slice(origin.indexOf("//") + 2)}\r\nconnection: keep-alive\r\naccept-encoding: identity\r\n`;

/**
 * Returns the request up to its body (RFC 9112), one byte per character. Returns `undefined` if a
 * header has a name or a value that HTTP cannot carry, or a name that is reserved.
 *
 * @param common see {@link commonHeaders}.
 */
export function requestHead(
  { method, headers, body }: OutboundRequest,
  path: string,
  common: string,
): string | undefined {
  let head = `${method} ${path} HTTP/1.1\r\n${common}`;
  // `for … in` allocates nothing, but also visits what other libraries add to `Object.prototype`.
  for (const name in headers) {
    if (!Object.hasOwn(headers, name)) continue;
    const value = headers[name] as string;
    if (!HEADER_NAME.test(name) || !VALUE.test(value) || RESERVED_HEADERS.has(name.toLowerCase()))
      return undefined;
    head += `${name}: ${value}\r\n`;
  }
  if (body !== null || method === "POST") head += `content-length: ${body?.length ?? 0}\r\n`;
  return `${head}\r\n`;
}

/** Joins head and body, so that they are sent in one write. */
export function requestBytes(head: string, body: Uint8Array | null): Buffer {
  const bytes = allocateBriefly(head.length + (body?.length ?? 0));
  bytes.write(head, "latin1");
  if (body !== null) bytes.set(body, head.length);
  return bytes;
}

/**
 * How the end of a body is found (RFC 9112 §6.3): by its length in bytes, by its chunks, or by the
 * end of the connection.
 */
export type Framing = number | "chunked" | "close";

export interface ResponseHead {
  status: number;
  /** The raw header lines, each with its line break. {@link parseHeaders} parses them. */
  headerLines: string;
  framing: Framing;
  /** True if the endpoint keeps the connection open for another request. */
  isKeptAlive: boolean;
  /** The seconds for which the endpoint keeps an idle connection open, as it says. */
  keepAliveSeconds: number | undefined;
}

/**
 * A status line and header lines, and nothing else: no folded lines, no bare line feed, no control
 * characters, no space before a colon. Parsers are known to read those differently.
 */
const HEAD =
  /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?\r\n((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n$/;

/** Fifteen digits stay exact as a number. */
const LENGTH = /^[0-9]{1,15}$/;
const KEEP_ALIVE_TIMEOUT = /(?:^|[,;\s])timeout=([0-9]{1,6})/i;

/** The headers that decide about the connection. */
interface Fields {
  length: string | undefined;
  coding: string | undefined;
  connection: string;
  keepAlive: string | undefined;
}

/**
 * Removes surrounding spaces and tabs. Not `trim`, which also removes bytes that belong to a value
 * in HTTP, such as 0xA0.
 */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && (text[start] === " " || text[start] === "\t")) start += 1;
  while (end > start && (text[end - 1] === " " || text[end - 1] === "\t")) end -= 1;
  return text.slice(start, end);
}

/** Calls `visit` for each line, with the raw name and everything after the colon. */
function eachHeader(lines: string, visit: (name: string, rest: string) => void): void {
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf("\r\n", start);
    const colon = lines.indexOf(":", start);
    visit(lines.slice(start, colon), lines.slice(colon + 1, end));
    start = end + 2;
  }
}

/** True if parsers can disagree whether a tab belongs to the value. */
const hasUnclearTab = (rest: string, value: string): boolean => rest.includes("\t", rest.indexOf(value));

/**
 * Returns the headers that decide about the connection. Returns `undefined` if two lines, or two
 * parsers, can disagree on the length of the body.
 */
function fieldsOf(lines: string): Fields | undefined {
  const fields: Fields = { length: undefined, coding: undefined, connection: "", keepAlive: undefined };
  let isClear = true;
  eachHeader(lines, (name, rest) => {
    // Most headers do not matter here, and the length of their names shows it.
    if (name.length !== 10 && name.length !== 14 && name.length !== 17) return;
    const key = name.toLowerCase();
    const value = trimBlanks(rest);
    if (key === "connection")
      fields.connection =
        fields.connection === "" ? value.toLowerCase() : `${fields.connection},${value.toLowerCase()}`;
    else if (key === "keep-alive") fields.keepAlive = value;
    else if (key === "content-length") {
      isClear &&= fields.length === undefined && !hasUnclearTab(rest, value);
      fields.length = value;
    } else if (key === "transfer-encoding") {
      isClear &&= !hasUnclearTab(rest, value);
      fields.coding = fields.coding === undefined ? value : `${fields.coding},${value}`;
    }
  });
  return isClear && (fields.length === undefined || fields.coding === undefined) ? fields : undefined;
}

const tokensOf = (list: string): string[] => list.split(",").map(trimBlanks);

/**
 * Returns `undefined` if the length is not a number, or a coding is empty: after `chunked,` some
 * parsers expect chunks and some do not.
 */
function framingOf(status: number, { length, coding }: Fields): Framing | undefined {
  if (length !== undefined && !LENGTH.test(length)) return undefined;
  const codings = coding === undefined ? [] : tokensOf(coding);
  if (codings.includes("")) return undefined;
  if (status < 200 || status === 204 || status === 304) return 0;
  const last = codings.at(-1);
  if (last !== undefined) return last.toLowerCase() === "chunked" ? "chunked" : "close";
  return length === undefined ? "close" : Number(length);
}

/**
 * HTTP/1.0 has no transfer codings: a connection that used one is not reused (RFC 9112 section
 * 6.1).
 */
function keepsAlive(isNewer: boolean, framing: Framing, connection: string): boolean {
  // The common cases.
  if (isNewer && (connection === "" || connection === "keep-alive")) return true;
  const options = tokensOf(connection);
  return !options.includes("close") && (isNewer || (framing !== "chunked" && options.includes("keep-alive")));
}

/**
 * Parses a head: the text up to the empty line and its line break, one character per byte. Returns
 * `undefined` for any other text.
 */
export function parseHead(text: string): ResponseHead | undefined {
  const match = HEAD.exec(text);
  if (match === null) return undefined;
  const status = Number(match[2]);
  const headerLines = match[3] ?? "";
  const fields = fieldsOf(headerLines);
  const framing = fields && framingOf(status, fields);
  if (fields === undefined || framing === undefined) return undefined;
  const { connection, keepAlive } = fields;
  const timeout = keepAlive === undefined ? undefined : KEEP_ALIVE_TIMEOUT.exec(keepAlive)?.[1];
  return {
    status,
    headerLines,
    framing,
    isKeptAlive: framing !== "close" && keepsAlive(match[1] === "1", framing, connection),
    keepAliveSeconds: timeout === undefined ? undefined : Number(timeout),
  };
}

/** Names in lower case; several values of one name are joined by `, `. */
export function parseHeaders(lines: string): Record<string, string> {
  // No prototype: the endpoint chooses the names.
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  eachHeader(lines, (name, rest) => {
    const key = name.toLowerCase();
    const value = trimBlanks(rest);
    const earlier = headers[key];
    headers[key] = earlier === undefined ? value : `${earlier}, ${value}`;
  });
  return headers;
}

export interface HttpExchange {
  /** The request up to its body, one byte per character. */
  requestHead: string;
  request: OutboundRequest;
  receiver: ResponseReceiver | undefined;
  resolve: (result: OutboundResult) => void;
  deadline: Deadline | undefined;
  /** True if the request was written to the present connection. */
  isWritten: boolean;
  /** True once a byte of the response has arrived: then the request is never repeated. */
  isAnswered: boolean;
  response: ResponseHead | undefined;
  /**
   * The first `receivedLength` bytes are the body of the response. Empty if a receiver takes it.
   */
  received: Buffer;
  receivedLength: number;
}

const NO_BODY = Buffer.alloc(0);

export const createHttpExchange = (
  head: string,
  request: OutboundRequest,
  receiver: ResponseReceiver | undefined,
  resolve: (result: OutboundResult) => void,
): HttpExchange => ({
  requestHead: head,
  request,
  receiver,
  resolve,
  deadline: undefined,
  isWritten: false,
  isAnswered: false,
  response: undefined,
  received: NO_BODY,
  receivedLength: 0,
});

/** Appends a part of the body. */
export function keepPart(exchange: HttpExchange, part: Buffer): void {
  const { received, receivedLength } = exchange;
  const length = receivedLength + part.length;
  if (receivedLength === 0) exchange.received = part;
  else if (length <= received.length) part.copy(received, receivedLength);
  else {
    const grown = Buffer.allocUnsafe(Math.max(2 * received.length, length));
    received.copy(grown, 0, 0, receivedLength);
    part.copy(grown, receivedLength);
    exchange.received = grown;
  }
}

/**
 * A class, because an accessor in an object literal costs microseconds of garbage collection each
 * time.
 */
class Response implements OutboundResponse {
  readonly kind = "response";
  status: number;
  body: Uint8Array;
  complete: boolean;
  #headerLines: string;

  constructor({ status, headerLines }: ResponseHead, body: Uint8Array, complete: boolean) {
    this.status = status;
    this.body = body;
    this.complete = complete;
    this.#headerLines = headerLines;
  }

  /** Parsed only when they are read: the status alone decides about most responses. */
  get headers(): Record<string, string> {
    return parseHeaders(this.#headerLines);
  }
}

/** Returns the received part of the response. `complete`: it was received to its end. */
export function toResponse(
  { received, receivedLength }: HttpExchange,
  head: ResponseHead,
  complete: boolean,
): OutboundResponse {
  const body = receivedLength === received.length ? received : received.subarray(0, receivedLength);
  return new Response(head, body, complete);
}
