/**
 * Short codes, such as `[gallery ids="1,2"]` and `[caption]…[/caption]`: finds them in a text,
 * takes them out while its paragraphs and typographic signs are made, and reads their attributes.
 * Runs none.
 */

import type { Steps } from "../../core/next-turn.js";
import { tokenGroups } from "./markup.js";
import { escapeAmpersands } from "./typography.js";

/** One tag of a short code, as it was taken out of a text. */
interface ShortCodeTag {
  /** As it is written in the text. */
  written: string;
  /** As a content shows it if it is not run: `[gallery]` for `[[gallery]]`. */
  shown: string;
  /** Set for a tag that begins a short code of the site. */
  code?: ShortCode;
}

interface ShortCode {
  name: string;
  /** The text of the attributes, not parsed. */
  attributes: string;
  /** The number of the tag that ends it; `undefined` for a short code that encloses nothing. */
  end?: number;
  /** The text between its tags, if it belongs to this one: the URL of an embed. */
  enclosed?: string;
}

/** A text whose tags of short codes were taken out. */
export interface TakenText {
  /** The texts before, between and after the tags: one more than there are `numbers`. */
  texts: string[];
  /** The numbers of the tags between them, in order. */
  numbers: number[];
  tags: ShortCodeTag[];
}

/** True for the name of a short code that the site runs. */
export type IsShortCode = (name: string) => boolean;

const BUILT_IN: Set<string> = new Set([
  "audio",
  "caption",
  "embed",
  "gallery",
  "playlist",
  "video",
  "wp_caption",
]);

/** True for the short codes that WordPress has itself. */
export const isBuiltInShortCode: IsShortCode = (name) => BUILT_IN.has(name);

/** Further ones in one text are shown as written. */
const MAX_SHORT_CODES = 1_000;
const MAX_NESTING = 10;
const MAX_ATTRIBUTES = 8_192;

/**
 * A comment in place of a tag, which typography and paragraphs leave alone. The noncharacter, which
 * Unicode reserves for internal use, keeps texts from writing one themselves.
 */
const MARK = /<!--\ufdd7(\d+)-->/;
const toMark = (number: number): string => `<!--\ufdd7${number}-->`;

/** The opening bracket of a tag, a second one for an escaped tag, and the name. */
const HEAD = /\[(\[?)(\/?)([^\s<>&/[\]="'\0]{1,64})(?=[\s/\]])/y;

/** A named argument, or a quoted one at the start: what a short code has and plain text has not. */
const ARGUMENTS = /^\s*["']|(?:^|\s)[\w-]+=["'\w]/;

/**
 * Returns the text with a mark in place of each tag, and the tags. Tags of short codes that the
 * site does not know are taken out, too, so that they stay as they are written. Brackets inside
 * HTML tags, comments, scripts and style sheets begin no short code. Linear.
 */
export function* takeShortCodes(
  html: string,
  isKnown: IsShortCode,
): Steps<{ html: string; tags: ShortCodeTag[] }> {
  const clean = html.replaceAll("\ufdd7", "");
  if (!clean.includes("[")) return { html: clean, tags: [] };
  const finder = new TagFinder(clean, yield* hideBrackets(clean), isKnown);
  yield* finder.scan(0, clean.length, 0);
  return finder.finish();
}

/** Returns a text of the same length without the brackets that begin no short code. */
function* hideBrackets(html: string): Steps<string> {
  if (!html.includes("<")) return html;
  const parts: string[] = [];
  for (const group of tokenGroups(html)) {
    for (const { kind, text } of group) parts.push(kind === "text" ? text : text.replace(/[[\]]/g, " "));
    yield;
  }
  return parts.join("");
}

/** Brackets that are looked at in one step. */
const BRACKETS_PER_STEP = 2_048;

/**
 * Reads a text from its start to its end, into the content of each short code right after its tag.
 * So every search begins behind the one before, and what it found is remembered.
 */
class TagFinder {
  #html: string;
  /** As long as `#html`, without the brackets that begin no short code. */
  #text: string;
  #isKnown: IsShortCode;
  #parts: string[] = [];
  #tags: ShortCodeTag[] = [];
  #copied = 0;
  #codes = 0;
  #brackets = 0;
  #bracketEnd = 0;
  #closes = new Map<string, number>();

  constructor(html: string, text: string, isKnown: IsShortCode) {
    this.#html = html;
    this.#text = text;
    this.#isKnown = isKnown;
  }

  finish(): { html: string; tags: ShortCodeTag[] } {
    this.#parts.push(this.#html.slice(this.#copied));
    return { html: this.#parts.join(""), tags: this.#tags };
  }

  *scan(from: number, to: number, depth: number): Steps<void> {
    for (let at = this.#text.indexOf("[", from); at !== -1 && at < to; at = this.#text.indexOf("[", at)) {
      this.#brackets += 1;
      if (this.#brackets % BRACKETS_PER_STEP === 0) yield;
      HEAD.lastIndex = at;
      const head = HEAD.exec(this.#text);
      const end = head === null ? undefined : this.#findBracketEnd(HEAD.lastIndex);
      if (head === null) at += 1;
      else if (end === undefined || end > to) return;
      else at = yield* this.#read(head, { at, end, to, depth });
    }
  }

  /** Returns where the search goes on. */
  *#read(
    [opening, bracket = "", slash = "", name = ""]: RegExpExecArray,
    { at, end, to, depth }: { at: number; end: number; to: number; depth: number },
  ): Steps<number> {
    const attributes = this.#html.slice(at + opening.length, end - 1);
    if (slash !== "") return at + opening.length;
    if (!this.#isKnown(name) || attributes.length > MAX_ATTRIBUTES) {
      if (attributes.includes("[") || !ARGUMENTS.test(attributes)) return at + opening.length;
      this.#take(at, end);
      return end;
    }
    const isVoid = attributes.endsWith("/");
    const closeAt = isVoid ? undefined : this.#findClose(`[/${name}]`, end, to);
    const closeEnd = closeAt === undefined ? undefined : closeAt + `[/${name}]`.length;
    // The second bracket may begin another short code.
    if (bracket !== "") return this.#takeEscaped(at, end, closeEnd) ?? at + 1;
    if (this.#codes >= MAX_SHORT_CODES || depth >= MAX_NESTING) {
      this.#take(at, end);
      return end;
    }
    this.#codes += 1;
    const code = { name, attributes: isVoid ? attributes.slice(0, -1) : attributes };
    if (closeAt !== undefined && closeEnd !== undefined) {
      return yield* this.#readEnclosing(code, { at, end, closeAt, closeEnd, depth });
    }
    this.#take(at, end, code);
    return end;
  }

  *#readEnclosing(
    code: ShortCode,
    place: { at: number; end: number; closeAt: number; closeEnd: number; depth: number },
  ): Steps<number> {
    const { at, end, closeAt, closeEnd, depth } = place;
    const enclosed = this.#html.slice(end, closeAt);
    if (code.name === "embed" && !enclosed.includes("<")) {
      this.#take(at, closeEnd, { ...code, enclosed });
      return closeEnd;
    }
    const number = this.#take(at, end, code);
    yield* this.scan(end, closeAt, depth + 1);
    const last = this.#take(closeAt, closeEnd);
    const tag = this.#tags[number];
    if (tag !== undefined) this.#tags[number] = { ...tag, code: { ...code, end: last } };
    return closeEnd;
  }

  /** Takes out `[[name]]`, or both tags of `[[name]…[/name]]`. */
  #takeEscaped(at: number, end: number, closeEnd: number | undefined): number | undefined {
    if (this.#text[end] === "]") {
      this.#take(at, end + 1, undefined, this.#html.slice(at + 1, end));
      return end + 1;
    }
    if (closeEnd === undefined || this.#text[closeEnd] !== "]") return undefined;
    this.#take(at, end, undefined, this.#html.slice(at + 1, end));
    const closeAt = this.#text.lastIndexOf("[", closeEnd);
    this.#take(closeAt, closeEnd + 1, undefined, this.#html.slice(closeAt, closeEnd));
    return closeEnd + 1;
  }

  #take(from: number, to: number, code?: ShortCode, shown?: string): number {
    const written = this.#html.slice(from, to);
    const tag = { written, shown: shown ?? written };
    this.#tags.push(code === undefined ? tag : { ...tag, code });
    this.#parts.push(this.#html.slice(this.#copied, from), toMark(this.#tags.length - 1));
    this.#copied = to;
    return this.#tags.length - 1;
  }

  /** Returns the position after the next `]`. */
  #findBracketEnd(from: number): number | undefined {
    if (this.#bracketEnd !== -1 && this.#bracketEnd < from) this.#bracketEnd = this.#text.indexOf("]", from);
    return this.#bracketEnd === -1 ? undefined : this.#bracketEnd + 1;
  }

  #findClose(close: string, from: number, to: number): number | undefined {
    let found = this.#closes.get(close) ?? 0;
    if (found !== -1 && found < from) {
      found = this.#text.indexOf(close, from);
      this.#closes.set(close, found);
    }
    return found === -1 || found >= to ? undefined : found;
  }
}

/** True if the text has what may be a short code of the site. Faster than reading it. */
export function hasShortCode(html: string, isKnown: IsShortCode): boolean {
  // Reading them removes the character of the marks first.
  const text = html.includes("\ufdd7") ? html.replaceAll("\ufdd7", "") : html;
  for (let at = text.indexOf("["); at !== -1; at = text.indexOf("[", at + 1)) {
    HEAD.lastIndex = at;
    const [, , , name = ""] = HEAD.exec(text) ?? [];
    if (name !== "" && isKnown(name)) return true;
  }
  return false;
}

/** Splits a text at the marks of its tags. */
export function splitAtMarks(html: string, tags: ShortCodeTag[]): TakenText {
  const parts = html.split(MARK);
  const texts = parts.filter((_, at) => at % 2 === 0);
  const numbers = parts.filter((_, at) => at % 2 === 1).map(Number);
  return { texts, numbers, tags };
}

/**
 * Removes the paragraph around a short code that stands alone in it, as WordPress does, since most
 * short codes make blocks. An embed stays in its paragraph.
 */
export function unwrapShortCodes({ texts, numbers, tags }: TakenText): void {
  const places = new Map(numbers.map((number, at) => [number, at]));
  for (let at = 0; at < numbers.length; at += 1) {
    const code = tags[numbers[at] ?? -1]?.code;
    if (code === undefined || code.name === "embed") continue;
    const last = code.end === undefined ? at : (places.get(code.end) ?? at);
    const before = (texts[at] ?? "").trimEnd();
    const after = (texts[last + 1] ?? "").trimStart();
    if (!before.endsWith("<p>") || !after.startsWith("</p>")) continue;
    texts[at] = before.slice(0, -3);
    texts[last + 1] = after.slice(4);
    at = last;
  }
}

/**
 * Puts the tags back: as they are `written`, or as a content `shown` to readers has them, where
 * `[[gallery]]` is `[gallery]`.
 */
export function putShortCodesBack({ texts, numbers, tags }: TakenText, form: "written" | "shown"): string {
  const parts = [texts[0] ?? ""];
  for (const [at, number] of numbers.entries()) {
    parts.push(escapeAmpersands(tags[number]?.[form] ?? ""), texts[at + 1] ?? "");
  }
  return parts.join("");
}

/** Values by name in lower case; those without a name by their position: `0`, `1` … */
export interface ShortCodeAttributes {
  [name: string]: string;
}

const ATTRIBUTE =
  /([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s'"]+))(?=\s|$)|"([^"]*)"(?=\s|$)|'([^']*)'(?=\s|$)|(\S+)(?=\s|$)/g;

/** Reads attributes by WordPress's rules: `a="1" b='2' c=3 "4" 5`. */
export function parseShortCodeAttributes(text: string): ShortCodeAttributes {
  const attributes = new Map<string, string>();
  let position = 0;
  for (const [, name, ...values] of text.replace(/[\u00a0\u200b]+/g, " ").matchAll(ATTRIBUTE)) {
    const value = withoutSlashes(values.find((one) => one !== undefined) ?? "");
    attributes.set(name?.toLowerCase() ?? String(position), hasOpenTag(value) ? "" : value);
    if (name === undefined) position += 1;
  }
  return Object.fromEntries(attributes);
}

/** The value of an attribute must not open a tag that it does not end. */
const hasOpenTag = (value: string): boolean => value.lastIndexOf("<") > value.lastIndexOf(">");

const withoutSlashes = (value: string): string =>
  value.includes("\\") ? value.replace(/\\(.)/gs, "$1") : value;

/** Removes the short codes of the site, with what they enclose. */
export function* stripShortCodes(html: string, isKnown: IsShortCode): Steps<string> {
  const taken = yield* takeShortCodes(html, isKnown);
  const { texts, numbers, tags } = splitAtMarks(taken.html, taken.tags);
  const parts = [texts[0] ?? ""];
  let skippedTo: number | undefined;
  for (const [at, number] of numbers.entries()) {
    const { code, shown = "" } = tags[number] ?? {};
    const isCode = code !== undefined || number === skippedTo;
    if (number === skippedTo) skippedTo = undefined;
    else if (skippedTo === undefined && code?.end !== undefined) skippedTo = code.end;
    if (skippedTo === undefined) parts.push(isCode ? "" : shown, texts[at + 1] ?? "");
  }
  return parts.join("");
}
