/**
 * Parses query strings and URL-encoded forms by PHP's rules, which WordPress clients rely on. Knows
 * no argument and no schema.
 */

import type { Json, JsonObject, SchemaProblem } from "./types.js";

/** The maximum number of parameters in one text. */
export const MAX_PARAMETERS = 1000;

/** The maximum number of brackets in one name. */
export const MAX_BRACKETS = 64;

export type QueryResult =
  /** The values have no prototype. */
  { ok: true; values: JsonObject } | { ok: false; problem: SchemaProblem };

/**
 * Returns the parameters of a query string (without its `?`) or of an
 * `application/x-www-form-urlencoded` body.
 *
 * If names repeat, the last one wins; `a[]=1&a[x][y]=2` nests. A list whose keys are 0, 1, 2 … in
 * this order becomes an array, any other list an object without a prototype. Leaves are strings.
 * Spaces and dots in a name become `_`. The text before the first bracket must not be empty. An
 * unclosed bracket becomes `_`, and text after a closing bracket is ignored unless it is another
 * bracket. `+` is a space; a `%` that starts no byte stays; bytes that are not UTF-8 become U+FFFD.
 *
 * Guarantee: linear time; `__proto__` and the like are ordinary names.
 *
 * The result is a problem, `rest_too_many_parameters` or `rest_nested_too_deep`, above {@link
 * MAX_PARAMETERS} or {@link MAX_BRACKETS}. PHP would drop the rest.
 */
export const parseQuery = (text: string): QueryResult => nestParameters(splitQuery(text));

/** Nests parameters that are already decoded, such as the fields of a multipart body. */
export function nestParameters(pairs: Iterable<[name: string, value: string]>): QueryResult {
  const root = newBranch();
  let count = 0;
  for (const [name, value] of pairs) {
    count += 1;
    if (count > MAX_PARAMETERS) return refused("rest_too_many_parameters", TOO_MANY);
    const path = pathOf(name);
    if (path.length > MAX_BRACKETS + 1) return refused("rest_nested_too_deep", TOO_DEEP);
    if (path.length > 0) put(root, path, value);
  }
  return { ok: true, values: toObject(root) };
}

function* splitQuery(text: string): Generator<[name: string, value: string]> {
  for (let start = 0; start < text.length; ) {
    const ampersand = text.indexOf("&", start);
    const end = ampersand === -1 ? text.length : ampersand;
    if (end > start) {
      const pair = text.slice(start, end);
      const equals = pair.indexOf("=");
      yield equals === -1
        ? [decode(pair), ""]
        : [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
    }
    start = end + 1;
  }
}

const TOO_MANY = `No more than ${MAX_PARAMETERS} parameters are accepted.`;
const TOO_DEEP = `No more than ${MAX_BRACKETS} brackets are accepted in the name of a parameter.`;

const refused = (code: string, message: string): QueryResult => ({ ok: false, problem: { code, message } });

/**
 * Decodes `+` and percent-encoded bytes. `decodeURIComponent` would reject malformed text, and is
 * slow if much is encoded.
 */
function decode(text: string): string {
  if (!/[+%]/.test(text)) return text;
  const bytes = Buffer.from(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    let byte = bytes[at] ?? 0;
    if (byte === PLUS) byte = BLANK;
    else if (byte === PERCENT) {
      const encoded = hexDigit(bytes[at + 1]) * 16 + hexDigit(bytes[at + 2]);
      if (!Number.isNaN(encoded)) {
        byte = encoded;
        at += 2;
      }
    }
    bytes[length] = byte;
    length += 1;
  }
  return bytes.toString("utf8", 0, length);
}

const BLANK = 0x20;
const PERCENT = 0x25;
const PLUS = 0x2b;

/** Returns NaN for a byte that is not a hexadecimal digit. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lowered = byte | 0x20;
  return lowered >= 0x61 && lowered <= 0x66 ? lowered - 0x57 : Number.NaN;
}

/**
 * Returns the keys from the outside in, `null` for an empty bracket; an empty list for a name that
 * PHP drops. Stops if there are too many.
 */
function pathOf(decoded: string): (string | null)[] {
  const name = decoded.replace(/^ +/, "");
  const bracket = name.indexOf("[");
  if (bracket === 0 || name === "") return [];
  if (bracket === -1 || !name.includes("]", bracket)) return [name.replace(/[ .[]/g, "_")];
  const path: (string | null)[] = [name.slice(0, bracket).replace(/[ .]/g, "_")];
  for (let open = bracket; name[open] === "[" && path.length <= MAX_BRACKETS + 1; ) {
    const close = name.indexOf("]", open);
    if (close === -1) break;
    const key = name.slice(open + 1, close);
    path.push(/^\s?$/.test(key) ? null : key);
    open = close + 1;
  }
  return path;
}

interface Branch {
  children: Map<string, string | Branch>;
  /** The key of the next `[]`. */
  next: number;
}

const newBranch = (): Branch => ({ children: new Map(), next: 0 });

function put(root: Branch, path: (string | null)[], value: string): void {
  let branch = root;
  for (const [depth, step] of path.entries()) {
    const key = step ?? String(branch.next);
    if (/^\d{1,15}$/.test(key) && String(Number(key)) === key) {
      branch.next = Math.max(branch.next, Number(key) + 1);
    }
    if (depth === path.length - 1) {
      branch.children.set(key, value);
      return;
    }
    let child = branch.children.get(key);
    if (child === undefined || typeof child === "string") {
      child = newBranch();
      branch.children.set(key, child);
    }
    branch = child;
  }
}

// Recursion is bounded by the brackets.
function toJson(node: string | Branch): Json {
  if (typeof node === "string") return node;
  let index = 0;
  for (const key of node.children.keys()) {
    if (key !== String(index)) return toObject(node);
    index += 1;
  }
  return Array.from(node.children.values(), toJson);
}

function toObject(branch: Branch): JsonObject {
  const object: { [name: string]: Json } = Object.create(null);
  for (const [key, child] of branch.children) object[key] = toJson(child);
  return object;
}
