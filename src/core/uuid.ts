/** UUIDs: what counts as one, and names that always give the same one. */

import { createHash } from "node:crypto";

export { randomUUID } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/**
 * Whether `text` is a UUID in its canonical form 8-4-4-4-12, in either case: the variant and the versions 1 to 8 of RFC 9562.
 * The nil and the max UUID are none: they are placeholders and identify nothing.
 */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Hexadecimal digits that begin with the bits of the variant, 10. */
const VARIANTS = "89ab";

/**
 * The name-based UUID (version 5, lower case) of `name` in `namespace`, which is a UUID itself: the same pair always gives the same one.
 *
 * Source: RFC 9562 §5.5.
 */
export function nameUuid(namespace: string, name: string): string {
  // As text at once: a digest as bytes costs more than twice as much.
  const hex = createHash("sha1")
    .update(Buffer.from(namespace.replaceAll("-", ""), "hex"))
    .update(name)
    .digest("hex");
  const variant = VARIANTS.charAt(Number.parseInt(hex.charAt(16), 16) & 0b11);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
