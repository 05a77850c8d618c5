/**
 * Encodes texts that may hold any character, for backends that take no NUL, or that store lone
 * surrogates as U+FFFD, so that two names become one.
 */

/** Marks an encoded text. JSON never begins with it. */
const MARK = "\u0001";

/**
 * Returns the text itself, unless a database could not store it, or could take it for an encoded
 * one.
 */
export const encodeStoredText = (text: string): string =>
  text.includes("\u0000") || text.startsWith(MARK) || !text.isWellFormed()
    ? MARK + JSON.stringify(text)
    : text;

export const decodeStoredText = (stored: string): string =>
  stored.startsWith(MARK) ? (JSON.parse(stored.slice(1)) as string) : stored;

/** Returns a value with its account as it is stored. */
export const encodeAccount = <T extends { account: string }>(value: T): T => ({
  ...value,
  account: encodeStoredText(value.account),
});
