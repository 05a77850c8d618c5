/** Encodes texts that may hold any character, for databases whose texts must not contain NUL. */

/** Marks an encoded text. JSON never begins with it. */
const MARK = "\u0001";

/**
 * Returns the text itself, unless a database could not store it, or could take it for an encoded
 * one.
 */
export const encodeStoredText = (text: string): string =>
  text.includes("\u0000") || text.startsWith(MARK) || /\p{Surrogate}/u.test(text)
    ? MARK + JSON.stringify(text)
    : text;

export const decodeStoredText = (stored: string): string =>
  stored.startsWith(MARK) ? (JSON.parse(stored.slice(1)) as string) : stored;
