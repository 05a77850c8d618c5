/** Writes an HTTP/1.1 request (RFC 9112) as bytes. Pure. */

import { allocateBriefly } from "../core/byte-pool.js";
import type { AllowedTarget } from "./address-policy.js";
import type { OutboundRequest } from "./types.js";

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
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
 * Returns the request up to its body, one byte per character. Returns `undefined` if a header has a
 * name or a value that HTTP cannot carry, or a name that is reserved.
 *
 * @param common see {@link commonHeaders}.
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

/** Joins head and body, so that they are sent in one write. */
export function requestBytes(head: string, body: Uint8Array | null): Buffer {
  const bytes = allocateBriefly(head.length + (body?.length ?? 0));
  bytes.write(head, "latin1");
  if (body !== null) bytes.set(body, head.length);
  return bytes;
}
