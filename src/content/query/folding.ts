/** Texts as the reference compares them: without regard to case and accents. */

/** Any ASCII text is its own decomposition. */
const isAscii = (text: string): boolean => !/[\u0080-\uffff]/.test(text);

/** The same for all texts that differ in case, accents and compatibility forms only. */
export const fold = (text: string): string =>
  isAscii(text)
    ? text.toLowerCase()
    : text.normalize("NFKD").replace(/\p{M}/gu, "").toUpperCase().toLowerCase();
