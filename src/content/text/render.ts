/**
 * How titles, contents and excerpts are shown when the host renders nothing itself: in paragraphs,
 * with typographic signs. Knows no post but whether its author is trusted.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { trimEnd } from "../../core/trim-end.js";
import { hasBlocks, renderBlocks } from "./blocks.js";
import { paragraphSteps } from "./paragraphs.js";
import { sanitiseSteps, sanitiseTitleSteps } from "./sanitise-html.js";
import {
  type IsShortCode,
  isBuiltInShortCode,
  putShortCodesBack,
  splitAtMarks,
  type TakenText,
  takeShortCodes,
  unwrapShortCodes,
} from "./short-codes.js";
import { texturiseSteps } from "./typography.js";

export interface RenderOptions {
  /**
   * True if its author may write free HTML. The text of any other author is sanitised before it is
   * shown, even if it was sanitised before it was stored.
   */
  isTrusted: boolean;
  /** Sanitises a content or an excerpt. Default: {@link sanitiseSteps} without uploads. */
  sanitise?: (raw: string) => Steps<string>;
  /** Shows smilies in contents and excerpts as emoji. Default: `true`. */
  smilies?: boolean;
  /** Default: those of WordPress. */
  isShortCode?: IsShortCode;
}

/** The title with typographic signs, on one line of HTML. */
export function* titleSteps(raw: string, { isTrusted, isShortCode }: RenderOptions): Steps<string> {
  const safe = isTrusted ? raw : yield* sanitiseTitleSteps(raw);
  const taken = yield* takeShortCodes(safe, isShortCode ?? isBuiltInShortCode);
  const html = trimBlanks(yield* texturiseSteps(taken.html));
  return putShortCodesBack(splitAtMarks(html, taken.tags), "written");
}

/**
 * The content as HTML: with blocks, what they hold; without, in paragraphs. Typographic signs as
 * WordPress sets them. Short codes and blocks that a program fills are shown as they are written.
 */
export function* contentSteps(raw: string, options: RenderOptions): Steps<string> {
  const safe = yield* safeSteps(raw, options);
  const hasParagraphs = hasBlocks(safe);
  const html = hasParagraphs ? renderBlocks(safe) : safe;
  const taken = yield* typesetSteps(html, { ...options, hasParagraphs });
  return putShortCodesBack(taken, "shown");
}

/** The excerpt, written or made, as HTML in paragraphs. */
export function* renderedExcerptSteps(raw: string, options: RenderOptions): Steps<string> {
  return putShortCodesBack(yield* typesetSteps(yield* safeSteps(raw, options), options), "written");
}

/** The text, sanitised if its author is not trusted. */
export function* safeSteps(
  raw: string,
  { isTrusted, sanitise = sanitiseSteps }: RenderOptions,
): Steps<string> {
  return isTrusted ? raw : yield* sanitise(raw);
}

/**
 * Sets the typographic signs of safe HTML, and its paragraphs unless `hasParagraphs`. The short
 * codes are still to be run or put back.
 */
export function* typesetSteps(
  html: string,
  {
    smilies = true,
    isShortCode = isBuiltInShortCode,
    hasParagraphs = false,
  }: RenderOptions & { hasParagraphs?: boolean },
): Steps<TakenText> {
  const marked = yield* takeShortCodes(html, isShortCode);
  const signs = yield* texturiseSteps(marked.html, { smilies });
  const taken = splitAtMarks(hasParagraphs ? signs : yield* paragraphSteps(signs), marked.tags);
  unwrapShortCodes(taken);
  return taken;
}

const atOnce =
  (steps: typeof contentSteps) =>
  (raw: string, options: RenderOptions): string =>
    runSteps(steps(raw, options));

export const renderTitle = atOnce(titleSteps);
export const renderContent = atOnce(contentSteps);
export const renderExcerpt = atOnce(renderedExcerptSteps);

/** Blanks of ASCII only: WordPress keeps U+2028 and no-break spaces at the ends of a title. */
export const trimBlanks = (text: string): string =>
  trimEnd(text, " \t\n\v\f\r\0").replace(/^[ \t\n\v\f\r\0]+/, "");
