/**
 * Rewrites HTML so that its elements nest, splits it into pieces that can be sanitised one after
 * the other, and restores the spelling of its source. Does not make HTML safe: `sanitise-html.ts`
 * does.
 */

import { type Handler, Parser } from "htmlparser2";
import type { Steps } from "../../core/next-turn.js";

/** An element that is open, with the tag that opens it. */
interface OpenElement {
  name: string;
  tag: string;
}

/** A part of the HTML that begins and ends between two tags. */
export interface HtmlPiece {
  /** The elements that are open at its start, from the outside. */
  around: OpenElement[];
  html: string;
  /** The elements that are open at its end. */
  open: OpenElement[];
  /** The names of its elements and of those around it. */
  names: Set<string>;
}

export interface NestingRules {
  /** Returns an opening tag as it is to be written; `undefined` if the element is left out. */
  writeTag: (name: string, attributes: Record<string, string>) => string | undefined;
  /** Returns a text as it is to be written. */
  writeText: (text: string) => string;
}

/** Far more than a written document needs; parsers slow down with the depth. */
const MAX_OPEN_ELEMENTS = 512;

/** Tags of one piece: sanitising it takes a few milliseconds. */
const TAGS_PER_PIECE = 512;

/** Returns the tags that open these elements. */
export const openingTags = (elements: OpenElement[]): string => elements.map(({ tag }) => tag).join("");

/** Returns the tags that close these elements. */
export const closingTags = (elements: OpenElement[]): string =>
  elements
    .map(({ name }) => `</${name}>`)
    .reverse()
    .join("");

/**
 * Returns `html` in pieces: every element is closed and nests, comments are left out, and the
 * content of an element that is left out stays. A parser that reads the pieces joined, or one of
 * them behind the tags of the elements around it, finds the same elements in the same order.
 *
 * @throws RangeError if more than 512 elements are open at once
 */
export function* nestHtml(html: string, rules: NestingRules): Steps<HtmlPiece[]> {
  const nested = yield* nestOnce(html, rules);
  if (!nested.isReduced) return nested.pieces;
  // Without the elements that were left out, the others may close each other in another way.
  const joined = nested.pieces.map((piece) => piece.html).join("");
  return (yield* nestOnce(joined, rules)).pieces;
}

function* nestOnce(
  html: string,
  { writeTag, writeText }: NestingRules,
): Steps<{ pieces: HtmlPiece[]; isReduced: boolean }> {
  const pieces: HtmlPiece[] = [];
  const open: (OpenElement | undefined)[] = [];
  const listOpen = (): OpenElement[] => open.filter((element) => element !== undefined);
  let around: OpenElement[] = [];
  let names = new Set<string>();
  let written = "";
  let text = "";
  let tags = 0;
  let isReduced = false;
  const endPiece = (): void => {
    const now = listOpen();
    pieces.push({ around, html: written, open: now, names });
    around = now;
    names = new Set(now.map(({ name }) => name));
    written = "";
    tags = 0;
  };
  const endText = (): void => {
    if (text !== "") written += writeText(text);
    text = "";
  };
  const { parser, parse } = createSteppedParser({
    ontext(part) {
      text += part;
    },
    onopentag(name, attributes) {
      endText();
      if (open.length >= MAX_OPEN_ELEMENTS) throw new RangeError("too many open elements");
      const tag = writeTag(name, attributes);
      if (tag === undefined) isReduced = true;
      else {
        written += tag;
        names.add(name);
      }
      if (!parser.isVoid(name)) open.push(tag === undefined ? undefined : { name, tag });
      tags += 1;
      if (tags >= TAGS_PER_PIECE) endPiece();
    },
    onclosetag(name) {
      if (parser.isVoid(name)) return;
      endText();
      if (open.pop() !== undefined) written += `</${name}>`;
    },
  });
  yield* parse(html);
  endText();
  endPiece();
  return { pieces, isReduced };
}

/** Tags and texts that are parsed in one step: a few milliseconds, whatever is done with them. */
const EVENTS_PER_STEP = 1_024;

type ParseHandler = Pick<
  Handler,
  "ontext" | "onopentag" | "onclosetag" | "oncomment" | "onprocessinginstruction"
>;

class PublicParser extends Parser {
  /** True for an element such as `<br>`, which has no content and no end. */
  isVoid(name: string): boolean {
    return this.isVoidElement(name);
  }
}

interface SteppedParser {
  /** Says where the last event is in the text. */
  parser: Pick<PublicParser, "startIndex" | "endIndex" | "isVoid">;
  /** Parses the whole of `html`. Yields after each step. To be called once. */
  parse: (html: string) => Generator<void, void>;
}

/**
 * Creates a parser that calls `handler`. It pauses between two characters and goes on with the next
 * one: a text in parts could read differently where two parts meet.
 */
function createSteppedParser({ ontext, onopentag, ...others }: Partial<ParseHandler>): SteppedParser {
  let events = 0;
  let isOver = false;
  const count = (): void => {
    events += 1;
    if (events % EVENTS_PER_STEP === 0) parser.pause();
  };
  const parser = new PublicParser({
    ...others,
    ontext(text) {
      ontext?.(text);
      count();
    },
    onopentag(name, attributes, isImplied) {
      onopentag?.(name, attributes, isImplied);
      count();
    },
    onend() {
      isOver = true;
    },
  });
  function* parse(html: string): Generator<void, void> {
    parser.end(html);
    while (!isOver) {
      yield;
      parser.resume();
    }
  }
  return { parser, parse };
}

// Gives sanitised HTML the spelling of its source back: the sanitiser writes `<br>` as `<br />` and
// `&copy;` as `©`, and editors and authors expect their text unchanged.

/** A tag or a text between two tags. */
interface Token {
  kind: "text" | "open" | "close";
  /** The same for tokens of one kind that mean the same. */
  meaning: string;
  source: string;
}

/** An empty element may end with a slash; others must not. */
const EMPTY_ELEMENT = /^<(?:area|br|col|hr|img|track|wbr)(?![a-z0-9])/;

/** Spellings that all parsers read in the same way, as a token of that kind. */
const UNAMBIGUOUS: Record<Token["kind"], RegExp> = {
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
  const spellings = new Map<string, { sources: string[]; used: number }>();
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
function* splitTokens(html: string): Generator<Token[], void> {
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
