/** Encodes texts, numbers and UUIDs as parts of records, keys and members. */

/** Texts that are stored unchanged: nearly every account, type and token. */
const PLAIN = /^[\w.*-]*$/;

/**
 * Any text as one without blanks, commas, slashes and line feeds, so that it can be part of a line,
 * a key or a member.
 */
export const encodeText = (text: string): string =>
  PLAIN.test(text) ? text : encodeURIComponent(JSON.stringify(text).slice(1, -1));
export const decodeText = (encoded: string): string =>
  PLAIN.test(encoded) ? encoded : (JSON.parse(`"${decodeURIComponent(encoded)}"`) as string);

export const decodeNumber = (text: string | undefined): number | null => (text ? Number(text) : null);

/**
 * Encodes a UUID in 22 characters instead of 36: every member that points at an event contains one.
 */
export const encodeUuid = (uuid: string): string =>
  Buffer.from(uuid.replaceAll("-", ""), "hex").toString("base64url");

export function decodeUuid(short: string): string {
  const hex = Buffer.from(short, "base64url").toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
