/** Fields that hold no markup: alternative texts, attributes and class names of menu items. */

import { stripTags } from "./markup.js";

/**
 * One line of text without tags, percent-encoded octets and control characters, blanks collapsed:
 * WordPress's rule for text fields. A `<` that begins no tag is `&lt;`.
 *
 * Guarantee: no `<` is left, and doing it again changes nothing. Linear.
 */
export function stripAll(raw: string): string {
  const text = stripTags(raw.replace(/[\p{Cc}\p{Cs}]/gu, (character) => (/\s/.test(character) ? " " : "")));
  return withoutOctets(text).replace(/\s+/g, " ").trim();
}

/** Also those that come about when others are taken out. */
function withoutOctets(text: string): string {
  if (!text.includes("%")) return text;
  const kept: string[] = [];
  for (const character of text) {
    kept.push(character);
    if (/^%[\da-f]{2}$/i.test(kept.slice(-3).join(""))) kept.length -= 3;
  }
  return kept.join("");
}

/**
 * Class names, or relations of a link, with nothing but letters, digits, `-` and `_`; a name that
 * holds blanks is one name. As in WordPress an empty list comes back as `[""]`.
 */
export function cleanClasses(classes: readonly string[]): string[] {
  if (classes.length === 0) return [""];
  return classes.map((name) => name.replace(/%[\da-f]{2}/gi, "").replace(/[^\w-]/g, ""));
}
