/**
 * Sanitises the HTML of authors who may not write free HTML. Removes everything that is not known
 * to be harmless.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { type AttributesByTag, POST_GLOBALS, POST_TAGS, TITLE_TAGS } from "./allowed-tags.js";
import { createDelimiterFilter, splitBlocks } from "./blocks.js";
import { escapeText, stripTags } from "./markup.js";
import { type HtmlAttributes, type HtmlRules, rewriteHtml } from "./rewrite-html.js";
import { cleanStyle } from "./style-attribute.js";
import { isSafeUrl, isSitePdf } from "./urls.js";

interface SanitiseOptions {
  /**
   * The URL under which the site's uploads are, such as `https://example.org/uploads`. Its PDF files
   * may be shown by `<object>`, as the File block does. Without it, `<object>` is removed.
   */
  uploads?: string | undefined;
}

/**
 * Sanitises the HTML of a post: keeps WordPress's tags and attributes for posts. Removes scripts
 * (their content stays as text), event handlers, forms and frames. Styles may only change looks,
 * and URLs need a harmless scheme. The result's tags are closed and nested.
 *
 * Harmless tags, references, white space and comments keep their spelling, byte for byte. In block
 * delimiters, strings of the attributes are sanitised like the text. Conditional comments and
 * directives of servers are removed.
 *
 * Sanitising the result again changes nothing. HTML that nests deeper than 512 elements, or that
 * the parser fails on, is escaped as a whole and shown as text. Time is linear.
 */
export const sanitiseHtml = (raw: string, options: SanitiseOptions = {}): string =>
  runSteps(sanitiseSteps(raw, options));

/** Does the same in steps. */
export function* sanitiseSteps(raw: string, { uploads }: SanitiseOptions = {}): Steps<string> {
  const html = withoutNul(raw);
  const filterElement: HtmlRules["filterElement"] = (name, attributes) => {
    const element = filterPost(name, attributes);
    return name === "object" && !isPdfObject(element, uploads) ? undefined : element;
  };
  const filterDelimiter = createDelimiterFilter({
    withoutNul,
    sanitise: (text) => sanitise(text, { filterElement, writeComment: removeComment }),
    isAllowedTag: (name) => Object.hasOwn(POST_TAGS, name),
  });
  const delimiters = new Map<number, { text: string; filtered: string }>();
  let start = 0;
  for (const part of splitBlocks(html)) {
    const text = typeof part === "string" ? part : part.text;
    if (typeof part !== "string") delimiters.set(start, { text, filtered: yield* filterDelimiter(part) });
    start += text.length;
  }
  const writeComment: HtmlRules["writeComment"] = (comment, at) => {
    const delimiter = delimiters.get(at);
    if (delimiter?.text === comment) return delimiter.filtered;
    return HARMLESS_COMMENT.test(comment) ? comment : "";
  };
  return yield* sanitise(html, { filterElement, writeComment });
}

/** Sanitises a title: keeps WordPress's few tags for titles, and no comments. */
export const sanitiseTitle = (raw: string): string => runSteps(sanitiseTitleSteps(raw));

/** Does the same in steps. */
export const sanitiseTitleSteps = (raw: string): Steps<string> =>
  sanitise(withoutNul(raw), { filterElement: filterTitle, writeComment: removeComment });

/**
 * Notes with markup that are sanitised in one text. Further ones, which no author writes, lose
 * their tags, because each call of the sanitiser takes a fraction of a millisecond.
 */
const MAX_HTML_NOTES = 500;

/**
 * Sanitises the footnotes of a post in steps, which are a JSON list of notes: keeps the id and the
 * sanitised content of each. Returns an empty text for anything else. Source: WordPress 7.1.
 */
export function* footnoteSteps(text: string, options: SanitiseOptions = {}): Steps<string> {
  let budget = MAX_HTML_NOTES;
  const sanitised: Note[] = [];
  const notes = readNotes(text);
  for (const { id, content } of notes ?? []) {
    if (isPlain(content)) {
      sanitised.push({ id, content: yield* sanitiseSteps(content, options) });
      continue;
    }
    budget -= 1;
    sanitised.push({ id, content: budget < 0 ? stripTags(content) : yield* sanitiseSteps(content, options) });
    yield;
  }
  return notes === undefined ? "" : JSON.stringify(sanitised);
}

interface Note {
  id: string;
  content: string;
}

/** The notes that have an id and a content; `undefined` if it is no list. */
function readNotes(json: string): readonly Note[] | undefined {
  let notes: unknown;
  try {
    notes = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (!Array.isArray(notes)) return undefined;
  return notes.flatMap((note: { id?: unknown; content?: unknown } | null) => {
    const { id, content } = note ?? {};
    if (typeof id !== "string" || typeof content !== "string" || id === "" || content === "") return [];
    return [{ id: id.toLowerCase().replace(/[^a-z0-9_-]/g, ""), content }];
  });
}

const withoutNul = (text: string): string => text.replaceAll("\0", "");

/**
 * Comments that no browser ends early, no server reads as a directive, and no editor as the
 * beginning of a block: for its parser, a delimiter may go on after a `-->` in a string.
 */
const HARMLESS_COMMENT = /^<!--(?!\s*(?:#|esi\b|\/?wp:))(?:[^<>-]|-(?!-))+-->$/i;

const removeComment = (): string => "";

const URL_ATTRIBUTES: ReadonlySet<string> = new Set([
  "cite",
  "data",
  "href",
  "longdesc",
  "poster",
  "src",
  "usemap",
]);

const split = (names: string): string[] => names.split(" ").filter((name) => name !== "");

const filterPost = createFilter(POST_TAGS, POST_GLOBALS);
const filterTitle = createFilter(TITLE_TAGS, "");

/** `globals`: attributes of every element; `aria-*` stands for all that begin with `aria-`. */
function createFilter(attributesByTag: AttributesByTag, globals: string): HtmlRules["filterElement"] {
  const names = split(globals);
  const prefixes = names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  const allowed = new Map(
    Object.entries(attributesByTag).map(([tag, attributes]) => [
      tag,
      new Set([...split(attributes), ...names]),
    ]),
  );
  return (tag, attributes) => {
    const allowedHere = allowed.get(tag);
    if (allowedHere === undefined) return undefined;
    const kept: Record<string, string> = Object.create(null);
    let isChanged = false;
    for (const [name, value] of Object.entries(attributes)) {
      const isAllowed = allowedHere.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
      const clean = isAllowed ? cleanAttribute(name, value) : undefined;
      if (clean !== value) isChanged = true;
      if (clean !== undefined) kept[name] = clean;
    }
    return isChanged ? kept : attributes;
  };
}

function isPdfObject({ data, type }: HtmlAttributes = {}, uploads?: string): boolean {
  return (
    uploads !== undefined && type === "application/pdf" && data !== undefined && isSitePdf(data, uploads)
  );
}

/** `data-wp-*` are directives of a script that browsers may run. */
const ATTRIBUTE_NAME = /^(?!data-wp-)[a-z][a-z0-9_-]*$|^xml:lang$/;

/** Returns the value that an allowed attribute keeps, or `undefined` without a harmless one. */
function cleanAttribute(name: string, value: string): string | undefined {
  if (!ATTRIBUTE_NAME.test(name)) return undefined;
  // No address holds a bracket.
  if (URL_ATTRIBUTES.has(name) && (value.includes("<") || !isSafeUrl(value))) return undefined;
  return name === "style" ? cleanStyle(value) || undefined : value;
}

function* sanitise(html: string, rules: HtmlRules): Steps<string> {
  if (isPlain(html)) return html;
  try {
    return yield* rewriteHtml(html, rules);
  } catch {
    // Nested too deep, or the parser failed: the text may be unsafe, so it is escaped.
    return escapeText(html);
  }
}

/** True if the text holds nothing to sanitise. */
const isPlain = (text: string): boolean => !/[<>&\u00a0]/.test(text);
