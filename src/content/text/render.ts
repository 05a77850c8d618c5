/**
 * How titles, contents and excerpts are shown when the host renders nothing itself. Knows no post
 * but whether its author is trusted.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { hasBlocks, renderBlocks } from "./blocks.js";
import { paragraphSteps } from "./paragraphs.js";
import { sanitiseSteps, sanitiseTitleSteps } from "./sanitise-html.js";
import { texturiseSteps } from "./texturise.js";

interface RenderOptions {
  /**
   * True if its author may write free HTML. The text of any other author is sanitised before it is
   * shown, even if it was sanitised before it was stored.
   */
  readonly isTrusted: boolean;
  /** Sanitises a content or an excerpt. Default: {@link sanitiseSteps} without uploads. */
  readonly sanitise?: (raw: string) => Steps<string>;
}

/** The title with typographic signs, on one line of HTML. */
export function* titleSteps(raw: string, { isTrusted }: RenderOptions): Steps<string> {
  return (yield* texturiseSteps(isTrusted ? raw : yield* sanitiseTitleSteps(raw))).trim();
}

/**
 * The content as HTML: with blocks, what they hold; without, in paragraphs. Typographic signs as
 * WordPress sets them. Short codes, smilies and blocks that a program fills are shown as they are
 * written.
 */
export function* contentSteps(raw: string, options: RenderOptions): Steps<string> {
  const safe = yield* safeHtml(raw, options);
  if (hasBlocks(safe)) return yield* texturiseSteps(renderBlocks(safe));
  return yield* paragraphSteps(yield* texturiseSteps(safe));
}

/** The excerpt, written or made, as HTML in paragraphs. */
export function* renderedExcerptSteps(raw: string, options: RenderOptions): Steps<string> {
  return yield* paragraphSteps(yield* texturiseSteps(yield* safeHtml(raw, options)));
}

function* safeHtml(raw: string, { isTrusted, sanitise = sanitiseSteps }: RenderOptions): Steps<string> {
  return isTrusted ? raw : yield* sanitise(raw);
}

const atOnce =
  (steps: typeof contentSteps) =>
  (raw: string, options: RenderOptions): string =>
    runSteps(steps(raw, options));

export const renderTitle = atOnce(titleSteps);
export const renderContent = atOnce(contentSteps);
export const renderExcerpt = atOnce(renderedExcerptSteps);
