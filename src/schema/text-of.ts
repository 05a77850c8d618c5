/** Converts an argument to text. */

import type { Json } from "./types.js";

/** Returns a text unchanged, a number or boolean as text, and an empty text for anything else. */
export const toText = (value: Json | undefined): string =>
  typeof value === "string"
    ? value
    : typeof value === "number" || typeof value === "boolean"
      ? String(value)
      : "";
