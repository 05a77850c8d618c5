/** One request and its response: the bytes that are written, and what has been read so far. */

import { allocateBriefly } from "../core/bytes.js";
import type { Deadline } from "../core/deadlines.js";
import type { AllowedTarget } from "./address-policy.js";
import { parseHeaders, type ResponseHead } from "./response-head.js";
import type { OutboundRequest, OutboundResponse, OutboundResult, ResponseReceiver } from "./types.js";

/** A token of RFC 9110. */
export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Headers that the client sets itself. If they were sent twice, one request could become two for
 * the endpoint.
 */
export const RESERVED_HEADERS: ReadonlySet<string> = new Set([
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

export interface HttpExchange {
  /** The request up to its body, one byte per character. */
  readonly requestHead: string;
  readonly request: OutboundRequest;
  readonly receiver: ResponseReceiver | undefined;
  readonly resolve: (result: OutboundResult) => void;
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
  given: Pick<HttpExchange, "requestHead" | "request" | "receiver" | "resolve">,
): HttpExchange => ({
  requestHead: given.requestHead,
  request: given.request,
  receiver: given.receiver,
  resolve: given.resolve,
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
  readonly status: number;
  readonly body: Uint8Array;
  readonly complete: boolean;
  readonly #headerLines: string;

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
