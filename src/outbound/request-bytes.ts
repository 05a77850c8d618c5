/** Writes an HTTP/1.1 request (RFC 9112) as bytes. Pure. */

import { allocateBriefly } from "../core/byte-pool.js";
import type { AllowedTarget } from "./address-policy.js";
import type { OutboundRequest } from "./types.js";

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** What the client says itself. Said twice, it could make one request into two for the endpoint. */
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
 * Everything up to the body, a byte per character. `common`: see {@link commonHeaders}.
 * `undefined` where a header has a name or a value that HTTP cannot carry, or a name that is not the caller's to set.
 */
export function requestHead(
  { method, headers, body }: OutboundRequest,
  path: string,
  common: string,
): string | undefined {
  let head = `${method} ${path} HTTP/1.1\r\n${common}`;
  for (const name in headers) {
    const value = headers[name] as string;
    if (!NAME.test(name) || !VALUE.test(value) || RESERVED_HEADERS.has(name.toLowerCase())) return undefined;
    head += `${name}: ${value}\r\n`;
  }
  if (body !== null || method === "POST") head += `content-length: ${body?.length ?? 0}\r\n`;
  return `${head}\r\n`;
}

/** Head and body as one, so that they leave in one write. */
export function requestBytes(head: string, body: Uint8Array | null): Buffer {
  const bytes = allocateBriefly(head.length + (body?.length ?? 0));
  bytes.write(head, "latin1");
  if (body !== null) bytes.set(body, head.length);
  return bytes;
}
