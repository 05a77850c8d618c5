/**
 * Paragraphs and line breaks for HTML that is written without them, by WordPress's rules: a blank
 * line ends a paragraph, and a line end is a `<br />`. Elements such as `<div>` stand between
 * paragraphs. Adds and removes nothing but `<p>`, `</p>`, `<br />` and blanks.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { trimEnd } from "../../core/trim-end.js";
import { type HtmlToken, tokenGroups } from "./markup.js";
import {
  addAll,
  CLOSE,
  LINE_END,
  OPEN,
  PARAGRAPH_RULES,
  type ParagraphRule,
  type Piece,
  trimAsciiEnd,
} from "./paragraph-rules.js";

/** These begin a paragraph, and end one. */
const BREAKS_BEFORE =
  /^<(?:address|area|article|aside|blockquote|caption|col|colgroup|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hgroup|hr|legend|li|map|menu|nav|ol|p|pre|section|style|summary|table|tbody|td|tfoot|th|thead|tr|ul)[\s/>]/;
const BREAKS_AFTER =
  /^(?:<\/(?:address|area|article|aside|blockquote|caption|col|colgroup|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hgroup|hr|legend|li|map|menu|nav|ol|p|pre|section|style|summary|table|tbody|td|tfoot|th|thead|tr|ul)>|<hr\s*\/?>)$/;

/**
 * These stand outside of paragraphs. WordPress compares the beginning of the name only, so that
 * `<picture>` counts as a `<p>` here, and `<link>` as an `<li>`.
 */
const BLOCK_TAG =
  /^<\/?(?:address|area|article|aside|blockquote|caption|col|colgroup|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hgroup|hr|legend|li|map|menu|nav|ol|p|pre|section|style|summary|table|tbody|td|tfoot|th|thead|tr|ul)/;

/** No line break stands before these, as `<picture>` again. */
const BREAKLESS_TAG = /^<\/?(?:dd|div|dl|dt|li|ol|p|pre|td|th|ul)/;

/** Tags around which blanks are removed, in a text that has one of the `marks`. */
const TIGHT: { marks: string[]; before: RegExp; after: RegExp }[] = [
  { marks: ["<option"], before: /^<option/, after: /^<\/option>/ },
  {
    marks: ["</object>"],
    before: /^<(?:\/object>|\/?param|\/?embed)/,
    after: /^<(?:object|\/?param|\/?embed)/,
  },
  {
    marks: ["<source", "<track"],
    before: /^<(?:\/audio>|\/video>|source|track)/,
    after: /^<(?:audio|video|source|track)/,
  },
  { marks: ["<figcaption"], before: /^<figcaption/, after: /^<\/figcaption>/ },
];

/** Elements that stay as they are written, blank lines included, if they are closed. */
const VERBATIM = ["pre", "svg", "math"];

/**
 * Replaces a line end that begins no new line of text: inside a tag, a comment, a script or a
 * drawing. A noncharacter, which Unicode reserves for internal use.
 */
const KEPT_LINE_END = "\ufdd2";

const keepLineEnds = (text: string): string => text.replaceAll("\n", KEPT_LINE_END);
const trimBlanksStart = (text: string): string => text.replace(/^[ \t\n\v\f\r]+/, "");

/**
 * Returns the HTML with its paragraphs and line breaks, ended by a line end; empty for blanks
 * alone. Linear.
 */
export function* paragraphSteps(written: string): Steps<string> {
  const html = written.replaceAll(KEPT_LINE_END, "").replace(/\r\n?/g, "\n");
  if (trimAsciiEnd(html) === "") return "";
  const reader = new PieceReader(html);
  for (const group of tokenGroups(html)) {
    for (const token of group) reader.read(token);
    yield;
  }
  let pieces = yield* wrapParagraphs(reader.finish());
  for (const rule of PARAGRAPH_RULES) pieces = yield* rewrite(pieces, rule);
  return (yield* breakLines(pieces)).join("").replaceAll(KEPT_LINE_END, "\n");
}

/** Does the same at once. */
export const paragraphs = (html: string): string => runSteps(paragraphSteps(html));

/** Divides HTML into pieces, with a blank line where a block begins or ends a paragraph. */
class PieceReader {
  #pieces: Piece[] = [];
  /** The pieces since the last tag of a block. */
  #inline: string[] = [];
  /** True after a tag whose following blanks are removed. */
  #isTight = false;
  #tight: typeof TIGHT;
  /** The element that is being read as it is written. */
  #verbatim: { name: string; parts: string[] } | undefined;
  #at = 0;
  #ends: Map<string, number>;

  constructor(html: string) {
    this.#tight = TIGHT.filter(({ marks }) => marks.some((mark) => html.includes(mark)));
    this.#ends = new Map(VERBATIM.map((name) => [name, html.lastIndexOf(`</${name}>`)]));
  }

  read(token: HtmlToken): void {
    const { kind, text, name, isClosing } = token;
    this.#at += text.length;
    if (this.#verbatim !== undefined) {
      this.#verbatim.parts.push(text);
      if (text === `</${this.#verbatim.name}>`) this.#endVerbatim();
    } else if (kind === "text" || (kind === "raw" && name !== "script" && name !== "style")) {
      this.#add(text);
    } else if (kind !== "tag") this.#add(keepLineEnds(text));
    else if (!isClosing && (this.#ends.get(name) ?? -1) >= this.#at) {
      this.#verbatim = { name, parts: [text] };
    } else this.#readTag(keepLineEnds(text));
  }

  finish(): Piece[] {
    this.#endVerbatim();
    this.#add("\n");
    this.#endInline();
    return this.#pieces;
  }

  #endVerbatim(): void {
    if (this.#verbatim === undefined) return;
    const { name, parts } = this.#verbatim;
    this.#verbatim = undefined;
    const text = keepLineEnds(parts.join(""));
    if (name === "pre") {
      this.#add("\n\n");
      this.#addBlock(text);
      this.#add("\n\n");
    } else this.#add(text);
  }

  #readTag(text: string): void {
    if (BREAKS_BEFORE.test(text)) this.#add("\n\n");
    if (this.#tight.some(({ before }) => before.test(text))) this.#trim();
    this.#isTight = false;
    if (BLOCK_TAG.test(text)) this.#addBlock(text);
    else this.#add(text === "<br>" || text === "<br/>" ? "<br />" : text);
    this.#isTight = this.#tight.some(({ after }) => after.test(text));
    if (BREAKS_AFTER.test(text)) this.#add("\n\n");
  }

  #add(text: string): void {
    const added = this.#isTight ? trimBlanksStart(text) : text;
    if (added === "") return;
    this.#isTight = false;
    this.#inline.push(added);
  }

  #addBlock(text: string): void {
    this.#endInline();
    this.#isTight = false;
    this.#pieces.push({ text, isBlock: true });
  }

  /** Removes the blanks since the last tag. */
  #trim(): void {
    while (this.#inline.length > 0) {
      const last = trimAsciiEnd(this.#inline.pop() ?? "");
      if (last === "") continue;
      this.#inline.push(last);
      return;
    }
  }

  #endInline(): void {
    if (this.#inline.length === 0) return;
    const text = this.#inline.join("").replace(/<br\s*\/?>\s*<br\s*\/?>/g, "\n\n");
    this.#pieces.push({ text, isBlock: false });
    this.#inline = [];
  }
}

/** Pieces, and lines of a text, that are processed in one step: a few milliseconds. */
const PER_STEP = 8_192;

/** Puts `<p>` and `</p>` around whatever stands between blank lines. */
function* wrapParagraphs(pieces: Piece[]): Steps<Piece[]> {
  const wrapped: Piece[] = [];
  let paragraph: Piece[] = [];
  const end = (): void => {
    if (paragraph.length > 0) {
      wrapped.push(OPEN);
      addAll(wrapped, trimLineEnds(paragraph));
      wrapped.push(CLOSE, LINE_END);
    }
    paragraph = [];
  };
  let read = 0;
  for (const piece of pieces) {
    const texts = piece.isBlock ? [] : piece.text.split(/\n\s*\n/);
    if (piece.isBlock) paragraph.push(piece);
    for (const [at, text] of texts.entries()) {
      read += 1;
      if (read % PER_STEP === 0) yield;
      if (at > 0) end();
      if (text !== "") paragraph.push({ text, isBlock: false });
    }
  }
  end();
  return wrapped;
}

function trimLineEnds(paragraph: Piece[]): Piece[] {
  const last = paragraph.length - 1;
  return paragraph
    .map(({ text, isBlock }, at) => {
      const start = at === 0 && !isBlock ? text.replace(/^\n+/, "") : text;
      return { text: at === last && !isBlock ? trimEnd(start, "\n") : start, isBlock };
    })
    .filter(({ text }) => text !== "");
}

function* rewrite(pieces: Piece[], rule: ParagraphRule): Steps<Piece[]> {
  const out: Piece[] = [];
  for (let at = 0, steps = 1; at < pieces.length; steps += 1) {
    if (steps % PER_STEP === 0) yield;
    const replaced = rule(pieces, at, out);
    if (replaced === 0) out.push(pieces[at] ?? LINE_END);
    at += Math.max(1, replaced);
  }
  return out;
}

/** Ends lines of text by `<br />`, except beside tags that begin a new line themselves. */
function* breakLines(pieces: Piece[]): Steps<string[]> {
  const parts: string[] = [];
  for (let at = 0; at < pieces.length; ) {
    const start = at;
    while (pieces[at]?.isBlock === false) at += 1;
    if (at > start) {
      const text = yield* endLines(pieces.slice(start, at).map((piece) => piece.text));
      const after = start > 0 ? removeFirstBreak(text) : text;
      const isBreakless = BREAKLESS_TAG.test(pieces[at]?.text ?? "");
      parts.push(isBreakless ? removeLastBreak(after) : after);
    }
    const tag = pieces[at];
    if (tag !== undefined) parts.push(tag.text);
    at += 1;
    if (at % PER_STEP === 0) yield;
  }
  const last = parts.length - 3;
  const isCut = parts.at(-2) === "</p>" && parts.at(-1) === "\n" && parts[last]?.endsWith("\n");
  if (isCut) parts[last] = (parts[last] ?? "").slice(0, -1);
  return parts;
}

const BREAK = "<br />";

function* endLines(texts: string[]): Steps<string> {
  const text = texts.join("");
  if (!text.includes("\n")) return text;
  const lines = text.split("\n");
  const parts: string[] = [];
  for (const [at, line] of lines.entries()) {
    if (at % PER_STEP === PER_STEP - 1) yield;
    if (at === lines.length - 1) parts.push(line);
    else if (at === 0 || trimAsciiEnd(line) !== "") parts.push(endLine(line));
  }
  return parts.join("");
}

/** A line that has a break at its end gets no other one, unless a blank follows it. */
function endLine(line: string): string {
  const written = trimAsciiEnd(line);
  if (!written.endsWith(BREAK)) return `${written}${BREAK}\n`;
  return line === written ? `${line}\n` : `${line.slice(0, written.length + 1)}${BREAK}\n`;
}

function removeFirstBreak(text: string): string {
  const start = trimBlanksStart(text);
  return start.startsWith(BREAK) ? start.slice(BREAK.length) : text;
}

function removeLastBreak(text: string): string {
  const end = trimAsciiEnd(text);
  return end.endsWith(BREAK) ? end.slice(0, -BREAK.length) + text.slice(end.length) : text;
}
