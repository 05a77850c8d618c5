/** Texts as the reference compares them: without regard to case and accents. */

import { isAscii, normaliseBounded } from "../text/normalise.js";

/** The same for all texts that differ in case, accents and compatibility forms only. Linear. */
export const fold = (text: string): string =>
  isAscii(text)
    ? text.toLowerCase()
    : normaliseBounded(text, "NFKD").replace(/\p{M}/gu, "").toUpperCase().toLowerCase();
