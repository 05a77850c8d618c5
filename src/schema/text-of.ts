/** Reads a value that was found to be a text, or may be none. */

import type { Json } from "./types.js";

/** A text as it is, a number or boolean in its digits or letters; anything else is none. */
export const toText = (value: Json | undefined): string =>
  typeof value === "string"
    ? value
    : typeof value === "number" || typeof value === "boolean"
      ? String(value)
      : "";
