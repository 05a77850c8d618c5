/**
 * How titles, contents and excerpts are shown when the host renders nothing itself. Knows no post
 * but whether its author is trusted.
 */

import { hasBlocks, renderBlocks } from "./blocks.js";
import { paragraphs } from "./paragraphs.js";
import { sanitiseHtml, sanitiseTitle } from "./sanitise-html.js";
import { texturise } from "./texturise.js";

export interface RenderOptions {
  /**
   * True if its author may write free HTML. The text of any other author is sanitised before it is
   * shown, even if it was sanitised before it was stored.
   */
  readonly isTrusted: boolean;
  /** The URL under which the site's uploads are. Default: none. */
  readonly uploads?: string | undefined;
}

/** The title with typographic signs, on one line of HTML. */
export const renderTitle = (raw: string, { isTrusted }: RenderOptions): string =>
  texturise(isTrusted ? raw : sanitiseTitle(raw)).trim();

/**
 * The content as HTML: with blocks, what they hold; without, in paragraphs. Typographic signs as
 * WordPress sets them. Short codes, smilies and blocks that a program fills are shown as they are
 * written.
 */
export function renderContent(raw: string, options: RenderOptions): string {
  const safe = safeHtml(raw, options);
  return hasBlocks(safe) ? texturise(renderBlocks(safe)) : paragraphs(texturise(safe));
}

/** The excerpt, written or made, as HTML in paragraphs. */
export const renderExcerpt = (raw: string, options: RenderOptions): string =>
  paragraphs(texturise(safeHtml(raw, options)));

const safeHtml = (raw: string, { isTrusted, uploads }: RenderOptions): string =>
  isTrusted ? raw : sanitiseHtml(raw, { uploads });
