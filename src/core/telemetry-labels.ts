/** Builds labels and attributes for telemetry that cannot reveal a secret. Pure. */

import type { SpanAttributes } from "./telemetry.js";

const WORD = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
/**
 * Returns a code of a host's function if it is a short word that is safe as a label, else
 * `fallback`.
 */
export const toLabel = (text: unknown, fallback: string): string =>
  typeof text === "string" && WORD.test(text) ? text : fallback;

/** Returns the attributes of a destination, without the parts of its URL that may be secret. */
export function getServerAttributes(url: string): SpanAttributes {
  const { hostname, port, protocol } = new URL(url);
  const scheme = protocol.slice(0, -1);
  return {
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (scheme === "http" ? 80 : 443) : Number(port),
    "url.scheme": scheme,
  };
}
