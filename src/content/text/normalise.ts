/** Normalises texts and compares them as WordPress does, in time that grows with the text alone. */

/**
 * Marks that may follow each other. No writing system needs more; UAX #15 ("Stream-Safe Text
 * Format") allows as many.
 */
const MAX_MARKS = 30;

/**
 * Marks, and the two letters without a mark's category that decompose into one: halfwidth katakana
 * sound marks.
 */
const MARKS = /[\p{M}\uff9e\uff9f]+/gu;

/**
 * `text` in the normalisation form `form`. Only the first 30 of marks that follow each other are
 * kept, because putting a run of marks into canonical order takes time that grows with the square
 * of its length.
 */
export const normaliseBounded = (text: string, form: "NFC" | "NFD" | "NFKD"): string =>
  isAscii(text) ? text : text.replace(MARKS, firstMarks).normalize(form);

/** True for a text that is its own normal form, whatever the form. */
const isAscii = (text: string): boolean => !/[\u0080-\uffff]/.test(text);

const firstMarks = (marks: string): string =>
  marks.length <= MAX_MARKS
    ? marks
    : Array.from(marks.slice(0, 2 * MAX_MARKS))
        .slice(0, MAX_MARKS)
        .join("");

// Folds texts, so that comparisons ignore case and accents as in WordPress.

/**
 * Returns the same text for all texts that differ only in case, accents and compatibility forms.
 * Linear.
 */
export const fold = (text: string): string =>
  isAscii(text)
    ? text.toLowerCase()
    : normaliseBounded(text, "NFKD").replace(/\p{M}/gu, "").toUpperCase().toLowerCase();

// Finds a search term in a stored text. Both must be folded.

/**
 * The number of characters of a term that are compared. For longer ones, V8 needs time that grows
 * with the product of both lengths: a periodic text of 1 MB would take hundreds of milliseconds.
 */
const MAX_COMPARED = 250;

/** True if `text` contains the first {@link MAX_COMPARED} characters of `term`. */
export const contains = (text: string, term: string): boolean => text.includes(term.slice(0, MAX_COMPARED));
