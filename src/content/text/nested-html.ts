/**
 * Rewrites HTML so that its elements nest, and splits it into pieces that can be sanitised one
 * after the other. Does not make HTML safe: `sanitise-html.ts` does.
 */

import { type Handler, Parser } from "htmlparser2";
import type { Steps } from "../../core/next-turn.js";

/** An element that is open, with the tag that opens it. */
interface OpenElement {
  readonly name: string;
  readonly tag: string;
}

/** A part of the HTML that begins and ends between two tags. */
export interface HtmlPiece {
  /** The elements that are open at its start, from the outside. */
  readonly around: readonly OpenElement[];
  readonly html: string;
  /** The elements that are open at its end. */
  readonly open: readonly OpenElement[];
  /** The names of its elements and of those around it. */
  readonly names: ReadonlySet<string>;
}

export interface NestingRules {
  /** Returns an opening tag as it is to be written; `undefined` if the element is left out. */
  readonly writeTag: (name: string, attributes: Readonly<Record<string, string>>) => string | undefined;
  /** Returns a text as it is to be written. */
  readonly writeText: (text: string) => string;
}

/** Far more than a written document needs; parsers slow down with the depth. */
const MAX_OPEN_ELEMENTS = 512;

/** Tags of one piece: sanitising it takes a few milliseconds. */
const TAGS_PER_PIECE = 512;

/** Returns the tags that open these elements. */
export const openingTags = (elements: readonly OpenElement[]): string =>
  elements.map(({ tag }) => tag).join("");

/** Returns the tags that close these elements. */
export const closingTags = (elements: readonly OpenElement[]): string =>
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
export function* nestHtml(html: string, rules: NestingRules): Steps<readonly HtmlPiece[]> {
  const nested = yield* nestOnce(html, rules);
  if (!nested.isReduced) return nested.pieces;
  // Without the elements that were left out, the others may close each other in another way.
  const joined = nested.pieces.map((piece) => piece.html).join("");
  return (yield* nestOnce(joined, rules)).pieces;
}

function* nestOnce(
  html: string,
  { writeTag, writeText }: NestingRules,
): Steps<{ readonly pieces: readonly HtmlPiece[]; readonly isReduced: boolean }> {
  const pieces: HtmlPiece[] = [];
  const open: (OpenElement | undefined)[] = [];
  const listOpen = (): readonly OpenElement[] => open.filter((element) => element !== undefined);
  let around: readonly OpenElement[] = [];
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
  readonly parser: Pick<PublicParser, "startIndex" | "endIndex" | "isVoid">;
  /** Parses the whole of `html`. Yields after each step. To be called once. */
  readonly parse: (html: string) => Generator<void, void>;
}

/**
 * Creates a parser that calls `handler`. It pauses between two characters and goes on with the next
 * one: a text in parts could read differently where two parts meet.
 */
export function createSteppedParser({ ontext, onopentag, ...others }: Partial<ParseHandler>): SteppedParser {
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
