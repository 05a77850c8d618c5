/** Finds a search term in a stored text. Both must be folded. */

/**
 * The number of characters of a term that are compared. For longer ones, V8 needs time that grows
 * with the product of both lengths: a periodic text of 1 MB would take hundreds of milliseconds.
 */
export const MAX_COMPARED = 250;

/** True if `text` contains the first {@link MAX_COMPARED} characters of `term`. */
export const contains = (text: string, term: string): boolean => text.includes(term.slice(0, MAX_COMPARED));
