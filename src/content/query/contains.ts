/** Looks for a search term in a stored text. Both are folded. */

/**
 * So many characters of a term are compared. V8 searches for a longer one in time that grows with the
 * product of both lengths: a periodic text of 1 MB would take hundreds of milliseconds.
 */
export const MAX_COMPARED = 250;

/** Returns whether `text` contains the first {@link MAX_COMPARED} characters of `term`. */
export const contains = (text: string, term: string): boolean => text.includes(term.slice(0, MAX_COMPARED));
