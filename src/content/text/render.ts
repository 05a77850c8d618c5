/**
 * How titles, contents and excerpts are shown when the host renders nothing itself: in paragraphs,
 * with typographic signs. Knows no post but whether its author is trusted.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { hasBlocks, renderBlocks } from "./blocks.js";
import { BLOCK_ELEMENTS, tokenGroups } from "./markup.js";
import { sanitiseSteps, sanitiseTitleSteps } from "./sanitise-html.js";

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

// Paragraphs and line breaks for text written without them: a blank line ends a paragraph, a line
// end is a `<br />`.

/** Where text of several paragraphs may stand; of a single one it stays as it is. */
const HOLDS_PARAGRAPHS: ReadonlySet<string> = new Set(
  "article aside dd details div fieldset figure footer form header li main nav section td th".split(" "),
);

const VOID: ReadonlySet<string> = new Set(["area", "col", "hr"]);

/**
 * Replaces a line end inside a tag or a script, which begins no new line of text. A noncharacter,
 * which Unicode reserves for internal use.
 */
const KEPT_LINE_END = "\ufdd2";

/**
 * The HTML with `<p>` around text that stands on its own or in a `<blockquote>`, and `<br />` at
 * its line ends; elements on lines of their own get them. Not within `<pre>`, tags, comments,
 * scripts. The rule of WordPress for content without blocks. Ends with a line end; empty for blanks
 * alone. Linear.
 */
export const paragraphs = (html: string): string => runSteps(paragraphSteps(html));

/** Does the same in steps. */
function* paragraphSteps(html: string): Steps<string> {
  const open = openElements();
  // In parts: looking at the end of a text that grows copies it each time.
  const parts: string[] = [];
  let inline: string[] = [];
  let isPre = false;
  function* flush(): Steps<void> {
    if (inline.length === 0) return;
    const chunks = yield* wrapped(inline.join(""), open.innermost());
    for (const chunk of chunks) parts.push(chunk.replaceAll(KEPT_LINE_END, "\n"));
    inline = [];
  }
  const endLine = (): void => {
    if (parts.at(-1)?.endsWith("\n") === false) parts.push("\n");
  };
  for (const group of tokenGroups(html.replace(/\r\n?/g, "\n"))) {
    for (const { kind, text, name, isClosing } of group) {
      const isBlock = kind === "tag" && BLOCK_ELEMENTS.has(name);
      if (isPre && !(isClosing && name === "pre")) parts.push(text);
      else if (!isBlock) inline.push(kind === "text" ? text : text.replaceAll("\n", KEPT_LINE_END));
      else if (isClosing) {
        if (!isPre) yield* flush();
        isPre = false;
        open.leave(name);
        parts.push(text, "\n");
      } else {
        yield* flush();
        endLine();
        parts.push(text);
        if (VOID.has(name)) parts.push("\n");
        else open.enter(name);
        isPre = name === "pre";
      }
    }
    yield;
  }
  yield* flush();
  endLine();
  return parts.join("");
}

interface OpenElements {
  readonly innermost: () => string | undefined;
  readonly enter: (name: string) => void;
  /** Also what was left open in it; nothing where it is not open. */
  readonly leave: (name: string) => void;
}

function openElements(): OpenElements {
  const names: string[] = [];
  const counts = new Map<string, number>();
  const pop = (): string | undefined => {
    const name = names.pop();
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) - 1);
    return name;
  };
  return {
    innermost: () => names.at(-1),
    enter: (name) => {
      if (names.at(-1) === "p") pop();
      names.push(name);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    },
    leave: (name) => {
      if ((counts.get(name) ?? 0) === 0) return;
      while (pop() !== name);
    },
  };
}

/** Chunks of text that are wrapped in one step. */
const CHUNKS_PER_STEP = 512;

/** The texts that joined are `inline` as it stands in `container`. */
function* wrapped(inline: string, container: string | undefined): Steps<readonly string[]> {
  const chunks: string[] = [];
  const written = inline.replace(/<br\s*\/?>\s*<br\s*\/?>/gi, "\n\n").split(/\n\s*\n/);
  for (const [at, chunk] of written.entries()) {
    if (at % CHUNKS_PER_STEP === CHUNKS_PER_STEP - 1) yield;
    const text = chunk.trimEnd().replace(/^\n+/, "");
    if (text !== "") chunks.push(yield* withLineBreaks(text));
  }
  const isWrapped =
    container === undefined ||
    container === "blockquote" ||
    (chunks.length > 1 && HOLDS_PARAGRAPHS.has(container));
  if (isWrapped) return chunks.map((chunk) => `<p>${chunk}</p>\n`);
  return [chunks.join(container === "p" ? "</p>\n<p>" : "\n")];
}

/** Lines that are ended in one step. */
const LINES_PER_STEP = 4_096;

function* withLineBreaks(chunk: string): Steps<string> {
  if (!chunk.includes("\n")) return chunk;
  const lines = chunk.split("\n");
  for (const [at, written] of lines.entries()) {
    if (at % LINES_PER_STEP === LINES_PER_STEP - 1) yield;
    const line = written.trimEnd();
    const isEnded = at === lines.length - 1 || /<br\s*\/?>$/i.test(line.slice(-8));
    lines[at] = isEnded ? line : `${line}<br />`;
  }
  return lines.join("\n");
}

// Typography: replaces straight quotes, hyphens and dots by typographic signs, with WordPress's
// rules for English.

/** Elements whose text is shown as written. */
const VERBATIM: ReadonlySet<string> = new Set(["pre", "code", "kbd", "style", "script", "tt"]);

const AMPERSAND = /&(?!#\d{1,8};|#x[\da-f]{1,7};|[a-z][a-z1-4]{0,31};)/gi;

/**
 * Replaces quotes, dashes and ellipses by numeric references. Tags, comments and verbatim elements
 * stay as they are. An `&` that begins no reference becomes `&#038;`. Inserts references only, so
 * safe HTML stays safe. Linear.
 */
export const texturise = (html: string): string => runSteps(texturiseSteps(html));

/** Does the same in steps. */
function* texturiseSteps(html: string): Steps<string> {
  let verbatim = 0;
  const parts: string[] = [];
  for (const group of tokenGroups(html)) {
    for (const { kind, text, name, isClosing } of group) {
      if (kind === "tag" && VERBATIM.has(name)) verbatim = Math.max(0, verbatim + (isClosing ? -1 : 1));
      if (kind === "comment" || kind === "raw") parts.push(text);
      else if (kind === "text" && verbatim === 0) parts.push(yield* replaceSigns(text));
      else parts.push(escapeAmpersands(text));
    }
    yield;
  }
  return parts.join("");
}

const escapeAmpersands = (text: string): string =>
  text.includes("&") ? text.replace(AMPERSAND, "&#038;") : text;

const OPENING_DOUBLE = "&#8220;";
const CLOSING_DOUBLE = "&#8221;";
const OPENING_SINGLE = "&#8216;";
const APOSTROPHE = "&#8217;";
const PRIME = "&#8242;";
const DOUBLE_PRIME = "&#8243;";
const EN_DASH = "&#8211;";
const EM_DASH = "&#8212;";

/** Signs that are always replaced in the same way. */
const FIXED_SIGNS: ReadonlyMap<string, string> = new Map([
  ["...", "&#8230;"],
  ["``", OPENING_DOUBLE],
  ["''", CLOSING_DOUBLE],
  [" (tm)", " &#8482;"],
]);

/** The quotations open in a text. Outside of one, a quote after a digit is a unit: 6'2". */
interface OpenQuotes {
  isDouble: boolean;
  isSingle: boolean;
}

const SIGN = /\.\.\.|``|''|["']|-+| \(tm\)/g;

/** Characters whose signs are replaced in one step. */
const CHARACTERS_PER_STEP = 16_384;

function* replaceSigns(text: string): Steps<string> {
  const open: OpenQuotes = { isDouble: false, isSingle: false };
  let result = "";
  for (let from = 0; from < text.length; ) {
    const start = from;
    from = findBreak(text, start);
    const part = text.slice(start, from);
    result += escapeAmpersands(
      part.replace(SIGN, (sign: string, at: number) => replaceSign(sign, text, start + at, open)),
    );
    if (from < text.length) yield;
  }
  return result;
}

/** Longer than any reference that {@link AMPERSAND} knows. */
const REFERENCE_LENGTH = 40;

/** Returns the end of the part that begins at `start`. No sign and no reference crosses it. */
function findBreak(text: string, start: number): number {
  let end = start + CHARACTERS_PER_STEP;
  if (end >= text.length) return text.length;
  const before = end - REFERENCE_LENGTH;
  const reference = text.slice(before, end).lastIndexOf("&");
  if (reference !== -1) return before + reference;
  const mark = text.slice(before, end + 4).lastIndexOf(" (tm)");
  if (mark !== -1) return before + mark;
  while (end < text.length && text[end] !== '"' && text[end] === text[end - 1]) end += 1;
  return end;
}

function replaceSign(sign: string, text: string, at: number, open: OpenQuotes): string {
  const fixed = FIXED_SIGNS.get(sign);
  if (fixed !== undefined) return fixed;
  const before = text.slice(Math.max(0, at - 6), at);
  const after = text.slice(at + sign.length, at + sign.length + 6);
  if (sign.startsWith("-")) return replaceDashes(sign.length, before, after);
  return sign === '"' ? replaceDouble(open, before, after) : replaceSingle(open, before, after);
}

function replaceDouble(open: OpenQuotes, before: string, after: string): string {
  if (opensAfter(before) && !isBlankStart(after)) {
    open.isDouble = true;
    return OPENING_DOUBLE;
  }
  if (/\d$/.test(before) && !open.isDouble) return DOUBLE_PRIME;
  open.isDouble = false;
  return CLOSING_DOUBLE;
}

function replaceSingle(open: OpenQuotes, before: string, after: string): string {
  // '99 is a year.
  if (/^\d\d(?:$|[^%\d])/.test(after) && !open.isSingle) return APOSTROPHE;
  if (opensAfter(before)) {
    open.isSingle = true;
    return OPENING_SINGLE;
  }
  const closes = after === "" || isBlankStart(after) || /^(?:[.,:;!?"'(){}[\]-]|&[lg]t;)/.test(after);
  if (closes && /\d$/.test(before) && !open.isSingle) return PRIME;
  if (closes) open.isSingle = false;
  return APOSTROPHE;
}

const opensAfter = (before: string): boolean => before === "" || /(?:[([{"\s-]|&lt;|&nbsp;)$/.test(before);
const isBlankStart = (after: string): boolean => /^(?:\s|&nbsp;)/.test(after);

function replaceDashes(count: number, before: string, after: string): string {
  const isApart = (before === "" || /(?:\s|&nbsp;)$/.test(before)) && (after === "" || isBlankStart(after));
  if (count === 1) return isApart ? EN_DASH : "-";
  if (count === 2) return before.endsWith("xn") ? "--" : isApart ? EM_DASH : EN_DASH;
  return EM_DASH.repeat(Math.floor(count / 3)) + ["", "-", EN_DASH][count % 3];
}
