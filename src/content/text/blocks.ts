/**
 * Block delimiters, the comments `<!-- wp:name {"attributes"} -->` that hold an editor's content
 * together: found, taken out, judged by nobody.
 */

import { addBlockClass } from "./block-classes.js";

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
