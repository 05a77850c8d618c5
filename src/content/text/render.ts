/**
 * How titles, contents and excerpts are shown when the host renders nothing itself: in paragraphs,
 * with typographic signs. Knows no post but whether its author is trusted.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { trimEnd } from "../../core/trim-end.js";
import { hasBlocks, renderBlocks } from "./blocks.js";
import { BLOCK_ELEMENTS, type HtmlToken, tokenGroups } from "./markup.js";
import { sanitiseSteps, sanitiseTitleSteps } from "./sanitise-html.js";
import {
  type IsShortCode,
  isBuiltInShortCode,
  putShortCodesBack,
  splitAtMarks,
  type TakenText,
  takeShortCodes,
  unwrapShortCodes,
} from "./short-codes.js";
import { texturiseSteps } from "./typography.js";

export interface RenderOptions {
  /**
   * True if its author may write free HTML. The text of any other author is sanitised before it is
   * shown, even if it was sanitised before it was stored.
   */
  isTrusted: boolean;
  /** Sanitises a content or an excerpt. Default: {@link sanitiseSteps} without uploads. */
  sanitise?: (raw: string) => Steps<string>;
  /** Shows smilies in contents and excerpts as emoji. Default: `true`. */
  smilies?: boolean;
  /** Default: those of WordPress. */
  isShortCode?: IsShortCode;
}

/** The title with typographic signs, on one line of HTML. */
export function* titleSteps(raw: string, { isTrusted, isShortCode }: RenderOptions): Steps<string> {
  const safe = isTrusted ? raw : yield* sanitiseTitleSteps(raw);
  const taken = yield* takeShortCodes(safe, isShortCode ?? isBuiltInShortCode);
  const html = trimBlanks(yield* texturiseSteps(taken.html));
  return putShortCodesBack(splitAtMarks(html, taken.tags), "written");
}

/**
 * The content as HTML: with blocks, what they hold; without, in paragraphs. Typographic signs as
 * WordPress sets them. Short codes and blocks that a program fills are shown as they are written.
 */
export function* contentSteps(raw: string, options: RenderOptions): Steps<string> {
  const safe = yield* safeSteps(raw, options);
  const hasParagraphs = hasBlocks(safe);
  const html = hasParagraphs ? renderBlocks(safe) : safe;
  const taken = yield* typesetSteps(html, { ...options, hasParagraphs });
  return putShortCodesBack(taken, "shown");
}

/** The excerpt, written or made, as HTML in paragraphs. */
export function* renderedExcerptSteps(raw: string, options: RenderOptions): Steps<string> {
  return putShortCodesBack(yield* typesetSteps(yield* safeSteps(raw, options), options), "written");
}

/** The text, sanitised if its author is not trusted. */
export function* safeSteps(
  raw: string,
  { isTrusted, sanitise = sanitiseSteps }: RenderOptions,
): Steps<string> {
  return isTrusted ? raw : yield* sanitise(raw);
}

/**
 * Sets the typographic signs of safe HTML, and its paragraphs unless `hasParagraphs`. The short
 * codes are still to be run or put back.
 */
export function* typesetSteps(
  html: string,
  {
    smilies = true,
    isShortCode = isBuiltInShortCode,
    hasParagraphs = false,
  }: Pick<RenderOptions, "smilies" | "isShortCode"> & { hasParagraphs?: boolean },
): Steps<TakenText> {
  const marked = yield* takeShortCodes(html, isShortCode);
  const signs = yield* texturiseSteps(marked.html, { smilies });
  const taken = splitAtMarks(hasParagraphs ? signs : yield* paragraphSteps(signs), marked.tags);
  unwrapShortCodes(taken);
  return taken;
}

const atOnce =
  (steps: typeof contentSteps) =>
  (raw: string, options: RenderOptions): string =>
    runSteps(steps(raw, options));

export const renderTitle = atOnce(titleSteps);
export const renderContent = atOnce(contentSteps);
export const renderExcerpt = atOnce(renderedExcerptSteps);

/** Blanks of ASCII only: WordPress keeps U+2028 and no-break spaces at the ends of a title. */
export const trimBlanks = (text: string): string =>
  trimEnd(text, " \t\n\v\f\r\0").replace(/^[ \t\n\v\f\r\0]+/, "");

// Paragraphs and line breaks for text written without them: a blank line ends a paragraph, a line
// end is a `<br />`.

/** Where text of several paragraphs may stand; of a single one it stays as it is. */
const HOLDS_PARAGRAPHS: Set<string> = new Set(
  "article aside dd details div fieldset figure footer form header li main nav section td th".split(" "),
);

const VOID: Set<string> = new Set(["area", "col", "hr"]);

/** Elements that stand directly beside their neighbours: no line ends are added around them. */
const BESIDE: Set<string> = new Set(["figcaption"]);

/** Elements in which line ends are not text, and whether blanks in them are removed. */
const EMBEDDED: Map<string, { isTight: boolean }> = new Map([
  ["audio", { isTight: true }],
  ["math", { isTight: false }],
  ["object", { isTight: true }],
  ["picture", { isTight: true }],
  ["select", { isTight: true }],
  ["svg", { isTight: false }],
  ["video", { isTight: true }],
]);

/**
 * Replaces a line end inside a tag, a script or an embedded element, which begins no new line of
 * text. A noncharacter, which Unicode reserves for internal use.
 */
const KEPT_LINE_END = "\ufdd2";

const keepLineEnds = (text: string): string => text.replaceAll("\n", KEPT_LINE_END);

/**
 * The HTML with `<p>` around text that stands alone or in a `<blockquote>`, and `<br />` at
 * its line ends; elements on lines of their own get them. Not within `<pre>`, tags, comments,
 * scripts, `<svg>` and other embedded elements. The rule of WordPress for content without blocks.
 * Ends with a line end; empty for blanks alone. Linear.
 */
export const paragraphs = (html: string): string => runSteps(paragraphSteps(html));

/** Does the same in steps. */
function* paragraphSteps(html: string): Steps<string> {
  const open = openElements();
  const embedded = embeddedElement();
  // In parts: looking at the end of a text that grows copies it each time.
  const parts: string[] = [];
  let inline: string[] = [];
  let isPre = false;
  /** With `isLast`, no line end follows the text: its element ends here. */
  function* flush(isLast = false): Steps<void> {
    if (inline.length === 0) return;
    const container = open.innermost();
    const written = inline.join("");
    inline = [];
    const chunks = yield* wrapped(written, container);
    if (chunks.length === 0) return;
    if (startsParagraph(written, container)) endLine();
    for (const chunk of chunks) parts.push(chunk.replaceAll(KEPT_LINE_END, "\n"));
    if (isLast && chunks.at(-1)?.endsWith("</p>\n")) parts.push((parts.pop() ?? "").slice(0, -1));
  }
  const endLine = (): void => {
    if (parts.at(-1)?.endsWith("\n") === false) parts.push("\n");
  };
  function* enter(name: string, tag: string): Steps<void> {
    yield* flush();
    if (!BESIDE.has(name)) endLine();
    parts.push(tag);
    if (VOID.has(name)) parts.push("\n");
    else open.enter(name);
    isPre = name === "pre";
  }
  function* leave(name: string, tag: string): Steps<void> {
    if (!isPre) yield* flush(name === "blockquote");
    isPre = false;
    open.leave(name);
    parts.push(tag);
    if (!BESIDE.has(name)) parts.push("\n");
  }
  for (const group of tokenGroups(html.replace(/\r\n?/g, "\n"))) {
    for (const token of group) {
      const { kind, text, name, isClosing } = token;
      const isBlock = kind === "tag" && BLOCK_ELEMENTS.has(name);
      if (isPre && !(isClosing && name === "pre")) parts.push(text);
      else if (!isBlock) inline.push(embedded.read(token));
      else {
        embedded.end();
        yield* isClosing ? leave(name, text) : enter(name, text);
      }
    }
    yield;
  }
  yield* flush();
  endLine();
  return parts.join("");
}

/** Follows the embedded elements of a text, and returns its inline tokens as they are kept. */
function embeddedElement() {
  let name = "";
  let depth = 0;
  function follow(tag: HtmlToken): void {
    if (depth > 0) {
      if (tag.name === name) depth += tag.isClosing ? -1 : 1;
    } else if (!tag.isClosing && EMBEDDED.has(tag.name) && !tag.text.endsWith("/>")) {
      [name, depth] = [tag.name, 1];
    }
  }
  return {
    end: (): void => {
      depth = 0;
    },
    read(token: HtmlToken): string {
      const { kind, text } = token;
      if (kind === "text" && depth === 0) return text;
      if (kind === "text" && text.trim() === "" && EMBEDDED.get(name)?.isTight) return "";
      if (kind === "tag") follow(token);
      return depth === 0 && LINE_BREAK.test(text) ? "<br />" : keepLineEnds(text);
    },
  };
}

/** Never matches text: tokens that begin with a whole tag are tags. */
const LINE_BREAK = /^<br\s*\/?>$/i;

interface OpenElements {
  innermost: () => string | undefined;
  enter: (name: string) => void;
  /** Also what was left open in it; nothing where it is not open. */
  leave: (name: string) => void;
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
function* wrapped(inline: string, container: string | undefined): Steps<string[]> {
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
    (chunks.length > 1 && HOLDS_PARAGRAPHS.has(container)) ||
    startsParagraph(inline, container);
  if (chunks.length === 0) return [];
  if (isWrapped) return chunks.map((chunk) => `<p>${withoutOuterBreaks(chunk)}</p>\n`);
  return [chunks.join(container === "p" ? "</p>\n<p>" : "\n")];
}

/** A paragraph neither begins nor ends with a line break. */
const withoutOuterBreaks = (chunk: string): string =>
  chunk.replace(/^\s*<br \/>/, "").replace(/<br \/>$/, "");

/** True for text after a blank line in an element that may hold paragraphs. */
const startsParagraph = (inline: string, container: string | undefined): boolean =>
  container !== undefined && HOLDS_PARAGRAPHS.has(container) && /^[ \t]*\n[ \t]*\n/.test(inline);

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
