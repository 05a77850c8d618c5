/** The texts of the page in its language. The table is a file of the page: only one is loaded. */

import type { english } from "../texts/en.js";
import { createTexts, type TextsOf } from "../texts/table.js";

export type PageTexts = TextsOf<typeof english>;

/**
 * The texts of the page. They are set before anything is rendered, so use them while rendering and
 * not when a module is loaded.
 *
 * @example
 * texts.page.signedInAs({ name: "Ada" })
 */
export let texts: PageTexts;

/** The BCP 47 tag by which dates and numbers are written. */
export let locale: string;

/** Sets the texts of the page. `language`: a BCP 47 tag. English has British dates: `22 Nov`. */
export function chooseTexts(language: string, table: typeof english): void {
  locale = language === "en" ? "en-GB" : language;
  texts = createTexts(locale, table);
}
