/**
 * Block delimiters, the comments `<!-- wp:name {"attributes"} -->` that hold an editor's content
 * together: found, taken out, judged by nobody.
 */

import { tokenise } from "./markup.js";

export interface BlockDelimiter {
  readonly kind: "open" | "close" | "void";
  /** With its namespace: `core/paragraph`. */
  readonly name: string;
  /** JSON of an object as it stands there, not checked; empty without one. */
  readonly attributes: string;
  /** The whole comment. */
  readonly text: string;
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
  readonly elements: ReadonlySet<string>;
  readonly className: string;
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
const ATTRIBUTE =
  /[\t\n\f\r /]*(([^\t\n\f\r />=]+)(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r >"'][^\t\n\f\r >]*)))?)/y;

/** Where the attribute stands in the HTML, with its name, and its value. */
interface ClassAttribute {
  readonly start: number;
  readonly end: number;
  readonly value: string;
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
  ATTRIBUTE.lastIndex = from;
  for (let match = ATTRIBUTE.exec(html); match !== null; match = ATTRIBUTE.exec(html)) {
    const [, attribute = "", name = "", ...values] = match;
    if (name.toLowerCase() !== "class") continue;
    const end = ATTRIBUTE.lastIndex;
    const value = values.find((one) => one !== undefined) ?? "";
    return { start: end - attribute.length, end, value };
  }
  return undefined;
}
