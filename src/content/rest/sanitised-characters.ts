/** Limits the texts that one request may have sanitised, those of a batch together. */

import type { Caller } from "../auth/caller.js";
import { RestError } from "./error.js";
import type { RestRequest } from "./types.js";

/** Texts of the largest size that one request may have sanitised. */
const TEXTS_PER_REQUEST = 4;

/**
 * Counts the characters of a text that is about to be sanitised. Call it before anything is stored.
 * Users with `unfiltered_html` have no limit. `longest`: `limits.filteredCharacters`.
 *
 * @throws RestError 413 `rest_text_too_large` or `rest_too_much_text`, naming the limit
 */
export function countSanitised(
  { length }: string,
  { caller, sanitised }: { sanitised: RestRequest["sanitised"]; caller: { has: Caller["has"] } },
  longest: number,
): void {
  if (caller.has("unfiltered_html")) return;
  if (length > longest) {
    throw new RestError(
      413,
      "rest_text_too_large",
      `A text of somebody who may not write unfiltered HTML has at most ${longest} characters (got ${length}).`,
    );
  }
  const maxCharacters = TEXTS_PER_REQUEST * longest;
  const characters = sanitised.characters + length;
  if (characters > maxCharacters) {
    throw new RestError(
      413,
      "rest_too_much_text",
      `The texts in one request of somebody who may not write unfiltered HTML have at most ${maxCharacters} characters together, those of a batch included (got ${characters}). Send them in several requests.`,
    );
  }
  sanitised.characters = characters;
}
