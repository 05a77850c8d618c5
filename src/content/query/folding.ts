/** Folds texts, so that comparisons ignore case and accents as in WordPress. */

import { isAscii, normaliseBounded } from "../text/normalise.js";

/**
 * Returns the same text for all texts that differ only in case, accents and compatibility forms.
 * Linear.
 */
export const fold = (text: string): string =>
  isAscii(text)
    ? text.toLowerCase()
    : normaliseBounded(text, "NFKD").replace(/\p{M}/gu, "").toUpperCase().toLowerCase();
