/** How paragraphs and the tags around them are put in order, by WordPress's rules. Pure. */

import { trimEnd } from "../../core/trim-end.js";

/** A tag of a block element, or the text and the inline tags between two of them. */
export interface Piece {
  text: string;
  isBlock: boolean;
}

export const OPEN: Piece = { text: "<p>", isBlock: true };
export const CLOSE: Piece = { text: "</p>", isBlock: true };
export const LINE_END: Piece = { text: "\n", isBlock: false };

/** Blanks of ASCII only: WordPress keeps no-break spaces. */
const BLANKS = " \t\n\v\f\r";

export const trimAsciiEnd = (text: string): string => trimEnd(text, BLANKS);
const isBlank = ({ text, isBlock }: Piece): boolean => !isBlock && trimAsciiEnd(text) === "";

/** Adds any number of pieces: a call takes at most some 100 000 arguments. */
export function addAll(pieces: Piece[], added: Piece[]): void {
  for (const piece of added) pieces.push(piece);
}

/**
 * Looks at the pieces from `at` on. Where it applies, it adds others instead to `out` and returns
 * how many it has replaced; otherwise it returns 0.
 */
export type ParagraphRule = (pieces: Piece[], at: number, out: Piece[]) => number;

/** Returns the first place from `at` on that is not blank. */
function skipBlanks(pieces: Piece[], at: number): number {
  let next = at;
  for (let piece = pieces[next]; piece !== undefined && isBlank(piece); piece = pieces[next]) next += 1;
  return next;
}

const isText = (piece: Piece | undefined, text: string): boolean => piece?.text === text;

/** `<p> </p>` is removed. */
const removeEmpty: ParagraphRule = (pieces, at) => {
  if (!isText(pieces[at], "<p>")) return 0;
  const end = skipBlanks(pieces, at + 1);
  return isText(pieces[end], "</p>") ? end + 1 - at : 0;
};

/** `<p>text</div>` gets the missing `</p>`. */
const closeInContainer: ParagraphRule = (pieces, at, out) => {
  if (!isText(pieces[at], "<p>")) return 0;
  let end = at + 1;
  while (pieces[end]?.isBlock === false && !pieces[end]?.text.includes("<")) end += 1;
  const container = pieces[end];
  if (end === at + 1 || container === undefined) return 0;
  if (!/^<\/(?:address|div|form)>$/.test(container.text)) return 0;
  addAll(out, pieces.slice(at, end));
  out.push(CLOSE, container);
  return end + 1 - at;
};

/** `<p> <div> </p>` is `<div>`. */
const unwrapLoneTag: ParagraphRule = (pieces, at, out) => {
  if (!isText(pieces[at], "<p>")) return 0;
  const tagAt = skipBlanks(pieces, at + 1);
  const tag = pieces[tagAt];
  const end = skipBlanks(pieces, tagAt + 1);
  if (tag?.isBlock !== true || !isText(pieces[end], "</p>")) return 0;
  out.push(tag);
  return end + 1 - at;
};

/** `<p><li>text</p>` on one line is `<li>text`. */
const unwrapItem: ParagraphRule = (pieces, at, out) => {
  if (!isText(pieces[at], "<p>") || pieces[at + 1]?.text.startsWith("<li") !== true) return 0;
  for (let end = at + 1; end < pieces.length; end += 1) {
    if (pieces[end]?.text.includes("\n")) return 0;
    if (!isText(pieces[end], "</p>")) continue;
    addAll(out, pieces.slice(at + 1, end));
    return end + 1 - at;
  }
  return 0;
};

/** The paragraph around a `<blockquote>` moves into it. */
const enterQuote: ParagraphRule = (pieces, at, out) => {
  const quote = pieces[at + 1];
  if (!isText(pieces[at], "<p>") || quote?.text.startsWith("<blockquote") !== true) return 0;
  out.push(quote, OPEN);
  return 2;
};

const leaveQuote: ParagraphRule = (pieces, at, out) => {
  const quote = pieces[at];
  if (quote?.text !== "</blockquote>" || !isText(pieces[at + 1], "</p>")) return 0;
  out.push(CLOSE, quote);
  return 2;
};

/** `<p> <div>` is `<div>`. */
const removeOpenBeforeTag: ParagraphRule = (pieces, at, out) => {
  if (!isText(pieces[at], "<p>")) return 0;
  const tagAt = skipBlanks(pieces, at + 1);
  const tag = pieces[tagAt];
  if (tag?.isBlock !== true) return 0;
  out.push(tag);
  return tagAt + 1 - at;
};

/** `</div> </p>` is `</div>`. */
const removeCloseAfterTag: ParagraphRule = (pieces, at, out) => {
  const tag = pieces[at];
  if (tag?.isBlock !== true) return 0;
  const end = skipBlanks(pieces, at + 1);
  if (!isText(pieces[end], "</p>")) return 0;
  out.push(tag);
  return end + 1 - at;
};

/** In the order in which WordPress applies them, each from the start to the end of the text. */
export const PARAGRAPH_RULES: ParagraphRule[] = [
  removeEmpty,
  closeInContainer,
  unwrapLoneTag,
  unwrapItem,
  enterQuote,
  leaveQuote,
  removeOpenBeforeTag,
  removeCloseAfterTag,
];
