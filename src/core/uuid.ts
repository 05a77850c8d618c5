/** Recognises UUIDs, and computes name-based ones. */

import { hash } from "node:crypto";

export { randomUUID } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/**
 * True if `text` is a UUID in the canonical form 8-4-4-4-12, in either case, with the variant and a
 * version (1 to 8) of RFC 9562. False for the nil and the max UUID, which are placeholders and
 * identify nothing.
 */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** The hexadecimal digits that begin with the bits of the variant, 10. */
const VARIANTS = "89ab";

/**
 * Returns the name-based UUID (version 5, lower case) of `name` in `namespace`, itself a UUID. The
 * same pair always gives the same UUID.
 *
 * Source: RFC 9562 §5.5.
 */
export function nameUuid(namespace: string, name: string): string {
  const bytes = Buffer.concat([Buffer.from(namespace.replaceAll("-", ""), "hex"), Buffer.from(name)]);
  // A digest as bytes costs more than twice as much as one in hexadecimal.
  const hex = hash("sha1", bytes);
  const variant = VARIANTS.charAt(Number.parseInt(hex.charAt(16), 16) & 0b11);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
