/**
 * Block delimiters, the comments `<!-- wp:name {"attributes"} -->` that hold an editor's content
 * together: found, taken out, checked by nobody.
 */

import type { Steps } from "../../core/next-turn.js";
import { stripTags, tokenise } from "./markup.js";
import { isScriptUrl } from "./urls.js";

export interface BlockDelimiter {
  kind: "open" | "close" | "void";
  /** With its namespace: `core/paragraph`. */
  name: string;
  /** JSON of an object as it stands there, not checked; empty without one. */
  attributes: string;
  /** The whole comment. */
  text: string;
}

/** As WordPress decides it: `block_version` is 1 then. */
export const hasBlocks = (raw: string): boolean => raw.includes("<!-- wp:");

const HEAD = /^\s+(\/?)wp:((?:[a-z][a-z0-9_-]*\/)?[a-z][a-z0-9_-]*)\s/;

/**
 * The text between the delimiters and the delimiters, in order. A comment ends at its first `-->`,
 * as it does for a browser; one that is no delimiter is text. Linear.
 */
export function splitBlocks(raw: string): (string | BlockDelimiter)[] {
  const parts: (string | BlockDelimiter)[] = [];
  let textFrom = 0;
  let start = raw.indexOf("<!--");
  while (start !== -1) {
    const end = raw.indexOf("-->", start + 4);
    if (end === -1) break;
    const delimiter = delimiterOf(raw.slice(start, end + 3));
    if (delimiter !== undefined) {
      if (start > textFrom) parts.push(raw.slice(textFrom, start));
      parts.push(delimiter);
      textFrom = end + 3;
    }
    start = raw.indexOf("<!--", end + 3);
  }
  if (textFrom < raw.length) parts.push(raw.slice(textFrom));
  return parts;
}

function delimiterOf(comment: string): BlockDelimiter | undefined {
  const inner = comment.slice(4, -3);
  const [head, slash, name] = HEAD.exec(inner) ?? [];
  if (head === undefined || name === undefined) return undefined;
  const rest = inner.slice(head.length).trim();
  const isVoid = rest.endsWith("/");
  const attributes = isVoid ? rest.slice(0, -1).trim() : rest;
  if (attributes !== "" && !(attributes.startsWith("{") && attributes.endsWith("}"))) return undefined;
  return {
    kind: slash === "/" ? "close" : isVoid ? "void" : "open",
    name: name.includes("/") ? name : `core/${name}`,
    attributes,
    text: comment,
  };
}

/**
 * Removes the block delimiters and keeps the content of the blocks, with the class names that
 * WordPress adds to some of them.
 */
export function renderBlocks(raw: string): string {
  let opened: string | undefined;
  let html = "";
  for (const part of splitBlocks(raw)) {
    if (typeof part === "string") {
      html += opened === undefined ? part : addBlockClass(opened, part);
      opened = undefined;
    } else {
      opened = part.kind === "open" ? part.name : undefined;
    }
  }
  return html;
}

// Adds the class names that WordPress adds to paragraphs, headings and lists when it renders their
// blocks. The stored content does not need to have them.

interface GeneratedClass {
  elements: ReadonlySet<string>;
  className: string;
}

const GENERATED: ReadonlyMap<string, GeneratedClass> = new Map([
  ["core/paragraph", { elements: new Set(["p"]), className: "wp-block-paragraph" }],
  [
    "core/heading",
    { elements: new Set(["h1", "h2", "h3", "h4", "h5", "h6"]), className: "wp-block-heading" },
  ],
  ["core/list", { elements: new Set(["ul", "ol"]), className: "wp-block-list" }],
]);

/**
 * One attribute with the blanks before it, by the rules of HTML: a value ends where a browser ends
 * it. So a text inside the value of another attribute is never taken for a class.
 */
export const TAG_ATTRIBUTE =
  /[\t\n\f\r /]*(([^\t\n\f\r />=]+)(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r >"'][^\t\n\f\r >]*)))?)/y;

/** Where the attribute stands in the HTML, with its name, and its value. */
interface ClassAttribute {
  start: number;
  end: number;
  value: string;
}

/**
 * Returns the text that follows the opening delimiter of a block, with the class in the first tag
 * of the block's element. Other text is returned as it is. Linear.
 *
 * @param block the name of the block, such as `core/paragraph`
 */
export function addBlockClass(block: string, html: string): string {
  const generated = GENERATED.get(block);
  if (generated === undefined) return html;
  let start = 0;
  for (const { kind, name, text, isClosing } of tokenise(html)) {
    if (kind === "tag" && !isClosing && generated.elements.has(name)) {
      return withClass(html, start + 1 + name.length, generated.className);
    }
    start += text.length;
  }
  return html;
}

/** `at`: the end of the tag's name. */
function withClass(html: string, at: number, className: string): string {
  const found = findClass(html, at);
  if (found === undefined) return `${html.slice(0, at)} class="${className}"${html.slice(at)}`;
  const names = found.value.split(/[\t\n\f\r ]+/).filter((name) => name !== "");
  if (names.includes(className)) return html;
  const value = [...names, className].join(" ").replaceAll('"', "&quot;");
  return `${html.slice(0, found.start)}class="${value}"${html.slice(found.end)}`;
}

function findClass(html: string, from: number): ClassAttribute | undefined {
  TAG_ATTRIBUTE.lastIndex = from;
  for (let match = TAG_ATTRIBUTE.exec(html); match !== null; match = TAG_ATTRIBUTE.exec(html)) {
    const [, attribute = "", name = "", ...values] = match;
    if (name.toLowerCase() !== "class") continue;
    const end = TAG_ATTRIBUTE.lastIndex;
    const value = values.find((one) => one !== undefined) ?? "";
    return { start: end - attribute.length, end, value };
  }
  return undefined;
}

// The attributes in block delimiters of an author who may not write free HTML. They reach pages
// when a block is rendered, so the HTML in them is sanitised, too.

interface AttributeRules {
  /** Removes NUL characters, which JSON can spell, from any string. */
  withoutNul: (text: string) => string;
  /** Sanitises the HTML of one string. */
  sanitise: (html: string) => Steps<string>;
  isAllowedTag: (name: string) => boolean;
}

/**
 * Strings with tags that are sanitised in one text. Further ones, which no editor writes, lose
 * their tags, because each call of the sanitiser takes a fraction of a millisecond.
 */
const MAX_HTML_STRINGS = 200;

/** Strings with tags in one step. */
const STRINGS_PER_STEP = 16;

/** At the end, a `<` could begin a tag with what a page puts after the text. */
const TAG_START = /<(?:[a-z!?/]|$)/i;

/** Signs that begin neither a tag nor a reference. */
const escapeLoneSigns = (text: string): string =>
  text.replace(/<(?=[^a-z!?/])/gi, "&lt;").replace(/&(?!(?:[a-z][a-z\d]*|#\d+|#x[\da-f]+);)/gi, "&amp;");

/**
 * Returns a function that makes the delimiters of one text harmless. A delimiter that is harmless
 * stays as it is, byte for byte. Another one is written as WordPress's serialiser would. One whose
 * attributes are no JSON loses them.
 */
export function createDelimiterFilter(rules: AttributeRules): (delimiter: BlockDelimiter) => Steps<string> {
  let budget = MAX_HTML_STRINGS;
  function* harmless(raw: string): Steps<string> {
    const text = rules.withoutNul(raw);
    if (!TAG_START.test(text)) return isScriptUrl(text) ? "" : text;
    budget -= 1;
    const written = escapeLoneSigns(text);
    const clean = budget >= 0 ? yield* rules.sanitise(written) : stripTags(text);
    if (budget % STRINGS_PER_STEP === 0) yield;
    if (isScriptUrl(stripTags(clean))) return "";
    return clean === written ? text : clean;
  }
  return (delimiter) => filterDelimiter(delimiter, harmless, rules);
}

function* filterDelimiter(
  { kind, name, attributes, text }: BlockDelimiter,
  harmless: (text: string) => Steps<string>,
  { isAllowedTag }: AttributeRules,
): Steps<string> {
  if (attributes === "") return text;
  const slash = kind === "close" ? "/" : "";
  const end = kind === "void" ? "/" : "";
  let json = "";
  try {
    const clean = new Map<string, string>();
    for (const written of listStrings(attributes)) clean.set(written, yield* harmless(written));
    let isChanged = /--|[<>]/.test(attributes);
    const value: unknown = JSON.parse(attributes, (key, item: unknown) => {
      const filtered = filterValue(item, (written) => clean.get(written) ?? "");
      const isRefused =
        name === "core/template-part" &&
        key === "tagName" &&
        !(typeof item === "string" && (item === "" || isAllowedTag(item)));
      isChanged ||= isRefused || filtered !== item;
      return isRefused ? "" : filtered;
    });
    if (!isChanged) return text;
    json = `${escapeJson(JSON.stringify(value))} `;
  } catch {
    // No JSON, or deeper than the parser goes: the block stays, its attributes do not.
  }
  return `<!-- ${slash}wp:${name.replace(/^core\//, "")} ${json}${end}-->`;
}

/** The texts and names of the JSON, each once. */
function listStrings(json: string): ReadonlySet<string> {
  const strings = new Set<string>();
  JSON.parse(json, (_, value: unknown) => {
    if (typeof value === "string") strings.add(value);
    else if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      for (const name of Object.keys(value)) strings.add(name);
    }
    return value;
  });
  return strings;
}

/** The value itself if it is harmless. Its members are filtered already. */
function filterValue(value: unknown, harmless: (text: string) => string): unknown {
  if (typeof value === "string") return harmless(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, member]) => [harmless(key), member] as const);
  const names = Object.keys(value);
  const isUnchanged = entries.every(([key], at) => key === names[at]);
  return isUnchanged ? value : Object.fromEntries(entries);
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["\\\\", "\\u005c"],
  ['\\"', "\\u0022"],
  ["--", "\\u002d\\u002d"],
  ["<", "\\u003c"],
  [">", "\\u003e"],
  ["&", "\\u0026"],
]);

/** So that no attribute can end the comment, and as editors write it. */
const escapeJson = (json: string): string =>
  json.replace(/\\\\|\\"|--|[<>&]/g, (part) => ESCAPES.get(part) ?? part);
