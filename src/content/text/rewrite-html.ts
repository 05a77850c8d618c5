/**
 * Rewrites HTML by the rules of the caller: parses it once and writes every element, text and
 * comment that stays. Knows no allow-list: `sanitise-html.ts` has it.
 */

import { Parser } from "htmlparser2";
import type { Steps } from "../../core/next-turn.js";
import { escapeText } from "./markup.js";
import { normaliseReferences } from "./references.js";

export type HtmlAttributes = Readonly<Record<string, string>>;

export interface HtmlRules {
  /**
   * Returns the attributes that an element keeps, the same object if it keeps all as they are, or
   * `undefined` if the element is left out. Its content stays.
   */
  filterElement: (name: string, attributes: HtmlAttributes) => HtmlAttributes | undefined;
  /** Returns a comment as it is written, or an empty text. `start`: its place in the HTML. */
  writeComment: (comment: string, start: number) => string;
}

/** Far more than a written document needs; parsers slow down with the depth. */
const MAX_OPEN_ELEMENTS = 512;

/** Tags, texts and comments in one step: a few milliseconds. */
const EVENTS_PER_STEP = 1_024;

/** Elements that have no content and no closing tag. */
const VOID_ELEMENTS: ReadonlySet<string> = new Set(["area", "br", "col", "hr", "img", "track", "wbr"]);

/**
 * Returns HTML whose elements are closed and nest. It holds nothing but texts without brackets,
 * tags in lower case with quoted attributes, and the comments that the rules return. All parsers
 * read these alike, so a browser sees what was checked here.
 *
 * A tag that nothing was removed from keeps its spelling, if that has one meaning only. So do the
 * references of texts; an `&` that begins none that WordPress knows is `&amp;`.
 * Rewriting the result changes nothing. Time is linear.
 *
 * @throws RangeError if more than 512 elements are open at once
 */
export function* rewriteHtml(html: string, rules: HtmlRules): Steps<string> {
  const { written, isReduced } = yield* rewriteOnce(html, rules);
  if (!isReduced) return written;
  // Without the elements that were left out, the others may close each other in another way.
  const again = yield* rewriteOnce(written, { ...rules, writeComment: (comment) => comment });
  return again.written;
}

function* rewriteOnce(
  html: string,
  { filterElement, writeComment }: HtmlRules,
): Steps<{ written: string; isReduced: boolean }> {
  const open: { name: string; isKept: boolean }[] = [];
  let written = "";
  let text = "";
  let textFrom = 0;
  let isReduced = false;
  let events = 0;
  let isOver = false;

  /** Ends a text where something else begins in the HTML, and goes on behind that. */
  const endText = (start: number, next: number): void => {
    if (text !== "") {
      const source = html.slice(textFrom, start);
      written += source.includes("<")
        ? escapeText(text)
        : normaliseReferences(source).replaceAll(">", "&gt;");
    }
    text = "";
    textFrom = Math.max(textFrom, next);
    countEvent();
  };
  const countEvent = (): void => {
    events += 1;
    // It goes on with the next character: a text in parts could read differently where two meet.
    if (events % EVENTS_PER_STEP === 0) parser.pause();
  };
  const endComment = (): void => {
    const { startIndex, endIndex } = parser;
    endText(startIndex, endIndex + 1);
    written += writeComment(html.slice(startIndex, endIndex + 1), startIndex);
  };

  const parser = new Parser({
    ontext(part) {
      text += part;
      countEvent();
    },
    onopentag(name, attributes) {
      const { startIndex, endIndex } = parser;
      endText(startIndex, endIndex + 1);
      if (open.length >= MAX_OPEN_ELEMENTS) throw new RangeError("too many open elements");
      const element = filterElement(name, attributes);
      open.push({ name, isKept: element !== undefined });
      if (element === undefined) {
        isReduced = true;
        return;
      }
      const source = html.slice(startIndex, endIndex + 1);
      written +=
        element === attributes && isPlainTag(source) ? normaliseReferences(source) : writeTag(name, element);
    },
    onclosetag(name, isImplied) {
      const { startIndex, endIndex } = parser;
      endText(startIndex, isImplied ? startIndex : endIndex + 1);
      // The end of the HTML also closes a tag that is not complete, which was never opened.
      if (open.at(-1)?.name !== name) return;
      if (open.pop()?.isKept && !VOID_ELEMENTS.has(name)) written += `</${name}>`;
    },
    oncomment: endComment,
    onprocessinginstruction: endComment,
    onend() {
      isOver = true;
    },
  });
  parser.end(html);
  while (!isOver) {
    yield;
    parser.resume();
  }
  endText(html.length, html.length);
  return { written, isReduced };
}

function writeTag(name: string, attributes: HtmlAttributes): string {
  const written = Object.entries(attributes).map(writeAttribute).join("");
  return `<${name}${written}${VOID_ELEMENTS.has(name) ? " />" : ">"}`;
}

function writeAttribute([name, value]: [string, string]): string {
  if (value !== "") return ` ${name}="${escapeValue(value)}"`;
  return name === "alt" ? ' alt=""' : name === "class" ? "" : ` ${name}`;
}

const escapeValue = (value: string): string =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

// Spellings that all parsers read in the same way: lower case, quoted values, complete references,
// no angle brackets, no attribute twice. Editors and authors expect such texts unchanged.

const PLAIN_TAG =
  /^<[a-z][a-z0-9]*(?:[ \t\n\r]+[a-z][a-z0-9_:-]*(?:="(?:[^"<>&]|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)*"|='(?:[^'<>&]|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)*')?)*[ \t\n\r]*\/?>$/;

/** Only an element without content may end with a slash. */
const PLAIN_VOID_TAG = /^<(?:area|br|col|hr|img|track|wbr)(?![a-z0-9])/;

const isPlainTag = (tag: string): boolean =>
  PLAIN_TAG.test(tag) && (!tag.endsWith("/>") || PLAIN_VOID_TAG.test(tag)) && !hasRepeatedName(tag);

/** Of a repeated attribute, browsers take the first value, and other parsers the last. */
function hasRepeatedName(tag: string): boolean {
  const names = tag.replace(/"[^"]*"|'[^']*'/g, "").match(/[a-z][a-z0-9_:-]*/g) ?? [];
  return new Set(names.slice(1)).size < names.length - 1;
}
