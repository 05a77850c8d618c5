/**
 * Decodes the bytes of a WXR file, and repairs what WordPress's importer accepts although XML does
 * not: control characters, a `&` or `<` that begins nothing, and text around the rss element.
 */

import { isUtf8 } from "node:buffer";

type Fail = (message: string) => Error;
type Warn = (line: number, message: string) => void;

/** PHP may print messages before the rss element, which is looked for in so many characters. */
const MAX_PREFACE = 65_536;

/** Control characters and noncharacters, except those that XML 1.0 allows. */
const INVALID = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]/gu;
/** No tag contains a `<`, so one whose quote is missing is text up to the next tag. */
const UNESCAPED = /&(?!#?\w{1,32};)|<(?![A-Za-z_:/](?:[^<>"']|"[^<"]*"|'[^<']*')*>)/g;
const ROOT_END = /<\/rss\s*>/;
/** The end that the next piece of the file may complete to markup, or to the end of a section. */
const INCOMPLETE = /(?:&#?\w{0,32}|<[^<>]*)$/;
const INCOMPLETE_END = /(?:\]{1,2}|-{1,2})$/;
const MAX_INCOMPLETE = 4_096;

/**
 * Creates a function that converts the bytes of one file to XML with the same lines. The bytes come
 * in order, split anywhere; `null` is the end. `warn` is called once for each line and kind of
 * repair.
 *
 * The function throws the error that `fail` returns for UTF-16, for a file without an rss element,
 * and for a document type or an encoding other than UTF-8 before that element.
 */
export function createWxrText(fail: Fail, warn: Warn): (bytes: Uint8Array | null) => string {
  const decode = createDecoder(fail);
  /** The text before the rss element; `undefined` once that was found. */
  let preface: string | undefined = "";
  /** Line on which the next text begins. */
  let line = 1;
  let incomplete = "";
  /** Ends the section that is open: in a section, `&` and `<` are text. */
  let sectionEnd: "]]>" | "-->" | undefined;
  let isOver = false;
  const warned = new Map<string, number>();

  function warnOnce(at: number, message: string): void {
    if (warned.get(message) === at) return;
    warned.set(message, at);
    warn(at, message);
  }

  /** Removes characters that XML does not allow. */
  function clean(text: string, hasInvalidBytes: boolean): string {
    const first = line + countLines(preface ?? "");
    if (hasInvalidBytes) {
      const lineAt = createLineCounter(text, first);
      for (const { index } of text.matchAll(/\ufffd/g))
        warnOnce(lineAt(index), "Bytes that are not UTF-8 were replaced by U+FFFD.");
    }
    const lineAt = createLineCounter(text, first);
    return text.replace(INVALID, (_, index: number) => {
      warnOnce(lineAt(index), "Control characters were removed: XML does not allow them.");
      return "";
    });
  }

  /** Returns what was read of the rss element, after as many line feeds as came before it. */
  function skipPreface(text: string, isEnd: boolean): string {
    const searched = Math.max((preface ?? "").length - 4, 0);
    const whole = (preface ?? "") + text;
    const found = whole.slice(searched).search(/<rss[\s>]/);
    if (found < 0) {
      preface = whole;
      if (!isEnd && whole.length <= MAX_PREFACE) return "";
      throw fail(`it is not a WXR file: it ${whole.trim() === "" ? "is empty" : "has no rss element"}`);
    }
    preface = undefined;
    const before = whole.slice(0, searched + found);
    const stray = blankProlog(before, fail).search(/\S/);
    if (stray >= 0)
      warnOnce(createLineCounter(before, 1)(stray), "The text before the rss element was ignored.");
    return before.replace(/[^\n]/g, "") + whole.slice(before.length);
  }

  /** Repairs a text outside of sections, and finds the end of the rss element. */
  function repairMarkup(text: string, isCut: boolean): string {
    const end = ROOT_END.exec(text);
    const inside = end === null ? text : text.slice(0, end.index + end[0].length);
    isOver = end !== null;
    const lineAt = createLineCounter(inside, line);
    line += countLines(inside);
    // A tag at the end of this piece may be completed by the next one.
    const cutTag =
      isCut && /^<[A-Za-z_:/]/.test(inside.slice(inside.lastIndexOf("<"))) ? inside.lastIndexOf("<") : -1;
    const repaired = inside.replace(UNESCAPED, (sign, index: number) => {
      if (index === cutTag) return sign;
      warnOnce(lineAt(index), "A & or < that begins no markup was taken as text.");
      return sign === "&" ? "&amp;" : "&lt;";
    });
    if (isOver) skipRest(text.slice(inside.length));
    return repaired;
  }

  function skipRest(text: string): void {
    const stray = text.search(/\S/);
    const message = "The text after the rss element was ignored.";
    if (stray >= 0 && !warned.has(message)) warnOnce(createLineCounter(text, line)(stray), message);
    line += countLines(text);
  }

  /** Returns the text up to the next section or the end of the open one, and where it goes on. */
  function takeOne(text: string, at: number, isEnd: boolean): [taken: string, next: number] {
    const found = sectionEnd === undefined ? findSection(text, at) : find(text, sectionEnd, at);
    const isMarkup = sectionEnd === undefined;
    let stop = found?.index ?? text.length;
    if (found === undefined && !isEnd) {
      const tail = text.slice(Math.max(at, text.length - MAX_INCOMPLETE));
      incomplete = (isMarkup ? INCOMPLETE : INCOMPLETE_END).exec(tail)?.[0] ?? "";
      stop -= incomplete.length;
    }
    const mark = found?.mark ?? "";
    const part = text.slice(at, stop);
    const next = stop + mark.length + incomplete.length;
    if (found !== undefined) sectionEnd = isMarkup ? (mark === "<!--" ? "-->" : "]]>") : undefined;
    if (isMarkup) return [repairMarkup(part, found === undefined) + (isOver ? "" : mark), next];
    line += countLines(part);
    return [part + mark, next];
  }

  return (bytes) => {
    const isEnd = bytes === null;
    const decoded = decode(bytes);
    const cleaned = clean(decoded.text, decoded.hasInvalidBytes);
    const text = incomplete + (preface === undefined ? cleaned : skipPreface(cleaned, isEnd));
    incomplete = "";
    let result = "";
    let at = 0;
    while (at < text.length && !isOver) {
      const [taken, next] = takeOne(text, at, isEnd);
      result += taken;
      at = next;
    }
    if (isOver) skipRest(text.slice(at));
    return result;
  };
}

function findSection(text: string, from: number) {
  const sections = /<!(?:\[CDATA\[|--)/g;
  sections.lastIndex = from;
  const found = sections.exec(text);
  return found === null ? undefined : { index: found.index, mark: found[0] };
}

function find(text: string, mark: string, from: number) {
  const index = text.indexOf(mark, from);
  return index < 0 ? undefined : { index, mark };
}

/**
 * Replaces comments and processing instructions by blanks. A document type could declare entities,
 * which can expand to any size.
 */
function blankProlog(text: string, fail: Fail): string {
  const markup = blankBetween(text, "<!--", "-->");
  if (/<!DOCTYPE/i.test(markup)) throw fail("it has a document type, which no WXR file needs");
  const start = markup.indexOf("<?xml");
  const declaration = start < 0 ? "" : markup.slice(start, markup.indexOf("?>", start));
  const [, encoding] = /\bencoding\s*=\s*["']([^"']*)/.exec(declaration) ?? [];
  if (encoding !== undefined && !/^utf-?8$/i.test(encoding))
    throw fail("it declares an encoding other than UTF-8");
  return blankBetween(markup, "<?", "?>");
}

/** Replaces what stands between the two marks by blanks, and keeps the lines. */
function blankBetween(text: string, opening: string, closing: string): string {
  let result = "";
  let at = 0;
  for (;;) {
    const start = text.indexOf(opening, at);
    const end = start < 0 ? -1 : text.indexOf(closing, start);
    if (end < 0) return result + text.slice(at);
    const next = end + closing.length;
    result += text.slice(at, start) + text.slice(start, next).replace(/[^\n]/g, " ");
    at = next;
  }
}

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** Returns the line of a place of `text`, whose first line is `first`. The places must ascend. */
function createLineCounter(text: string, first: number): (index: number) => number {
  let [line, at] = [first, 0];
  return (index) => {
    line += countLines(text.slice(at, index));
    at = index;
    return line;
  };
}

/**
 * Creates a decoder. It takes the bytes in order, split anywhere; `null` is the end. A byte order
 * mark is removed.
 *
 * @throws the error that `fail` returns, for UTF-16.
 */
function createDecoder(fail: Fail) {
  let held: Buffer = Buffer.alloc(0);
  let isStarted = false;

  return (bytes: Uint8Array | null): { text: string; hasInvalidBytes: boolean } => {
    const all = bytes === null ? held : Buffer.concat([held, bytes]);
    if (!isStarted && bytes !== null && all.length < 4) {
      held = all;
      return { text: "", hasInvalidBytes: false };
    }
    if (!isStarted && isUtf16(all)) throw fail("it is UTF-16; save it as UTF-8");
    const whole = bytes === null ? all : all.subarray(0, all.length - countIncomplete(all));
    held = all.subarray(whole.length);
    const text = whole.toString("utf8");
    const hasMark = !isStarted && text.startsWith("\ufeff");
    isStarted = true;
    return { text: hasMark ? text.slice(1) : text, hasInvalidBytes: !isUtf8(whole) };
  };
}

/** Number of bytes at the end that begin a character, which the next bytes may complete. */
function countIncomplete(bytes: Buffer): number {
  for (let count = 1; count <= Math.min(3, bytes.length); count += 1) {
    const byte = bytes[bytes.length - count] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > count ? count : 0;
  }
  return 0;
}

/**
 * Checks for a byte order mark, and for a zero next to the first character, which is ASCII in every
 * XML file.
 */
const isUtf16 = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) ||
  (first === 0xfe && second === 0xff) ||
  (first === 0 && second !== 0 && second !== undefined) ||
  (first !== 0 && second === 0);
