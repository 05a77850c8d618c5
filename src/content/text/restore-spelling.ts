/**
 * Gives sanitised HTML the spelling of its source back: the sanitiser writes `<br>` as `<br />` and
 * `&copy;` as `©`, and editors and authors expect their text unchanged.
 */

import type { Steps } from "../../core/next-turn.js";
import { createSteppedParser } from "./nested-html.js";

/** A tag or a text between two tags. */
interface Token {
  readonly kind: "text" | "open" | "close";
  /** The same for tokens of one kind that mean the same. */
  readonly meaning: string;
  readonly source: string;
}

/** An empty element may end with a slash; others must not. */
const EMPTY_ELEMENT = /^<(?:area|br|col|hr|img|track|wbr)(?![a-z0-9])/;

/** Spellings that all parsers read in the same way, as a token of that kind. */
const UNAMBIGUOUS: Readonly<Record<Token["kind"], RegExp>> = {
  text: /^(?:[^<>&]|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)*$/,
  open: /^<[a-z][a-z0-9]*(?:[ \t\n\r]+[a-z][a-z0-9_:-]*(?:="(?:[^"<>&]|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)*"|='(?:[^'<>&]|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)*')?)*[ \t\n\r]*\/?>$/,
  close: /^<\/[a-z][a-z0-9]*>$/,
};

/** Of a repeated attribute, browsers take the first value, and other parsers the last. */
const hasRepeatedName = (tag: string): boolean => {
  const names = tag.replace(/"[^"]*"|'[^']*'/g, "").match(/[a-z][a-z0-9_:-]*/g) ?? [];
  return new Set(names.slice(1)).size < names.length - 1;
};

const isUnambiguous = ({ kind, source }: Token): boolean =>
  UNAMBIGUOUS[kind].test(source) &&
  (!source.endsWith("/>") || EMPTY_ELEMENT.test(source)) &&
  !(kind === "open" && hasRepeatedName(source));

/**
 * Writes each tag and text of `sanitised` as `raw` spells it. A spelling is taken only for a token
 * of the same meaning, and only if all parsers agree on it: lower case, quoted values, complete
 * references, no angle brackets, no attribute twice. So the result means the same as `sanitised`.
 * Linear.
 */
export function* restoreSpelling(raw: string, sanitised: string): Steps<string> {
  if (raw === sanitised) return sanitised;
  const spellings = new Map<string, { readonly sources: string[]; used: number }>();
  for (const tokens of splitTokens(raw)) {
    for (const { kind, meaning, source } of tokens.filter(isUnambiguous)) {
      const spelling = spellings.get(kind + meaning);
      if (spelling === undefined) spellings.set(kind + meaning, { sources: [source], used: 0 });
      else spelling.sources.push(source);
    }
    yield;
  }
  let restored = "";
  for (const tokens of splitTokens(sanitised)) {
    for (const { kind, meaning, source } of tokens) {
      const spelling = spellings.get(kind + meaning);
      restored += spelling?.sources[spelling.used] ?? source;
      if (spelling !== undefined) spelling.used += 1;
    }
    yield;
  }
  return restored;
}

/**
 * Yields the tags and texts in order, in groups of one step each. Of sanitised HTML, their sources
 * joined are `html`.
 */
function* splitTokens(html: string): Generator<readonly Token[], void> {
  let tokens: Token[] = [];
  let text = "";
  let textFrom = 0;
  const endText = (end: number, next: number): void => {
    if (end > textFrom) tokens.push({ kind: "text", meaning: text, source: html.slice(textFrom, end) });
    text = "";
    textFrom = next;
  };
  const pushTag = (kind: "open" | "close", meaning: string): void => {
    const end = parser.endIndex + 1;
    endText(parser.startIndex, end);
    tokens.push({ kind, meaning, source: html.slice(parser.startIndex, end) });
  };
  const endComment = (): void => endText(parser.startIndex, parser.endIndex + 1);
  const { parser, parse } = createSteppedParser({
    ontext: (part) => {
      text += part;
    },
    onopentag: (name, attributes, isImplied) => {
      if (isImplied) return;
      // The sanitiser removes an empty class.
      const { class: classes, ...others } = attributes;
      pushTag("open", JSON.stringify([name, others, classes || undefined]));
    },
    onclosetag: (name, isImplied) => {
      if (!isImplied) pushTag("close", name);
    },
    oncomment: endComment,
    onprocessinginstruction: endComment,
  });
  for (const _ of parse(html)) {
    yield tokens;
    tokens = [];
  }
  endText(html.length, html.length);
  yield tokens;
}
