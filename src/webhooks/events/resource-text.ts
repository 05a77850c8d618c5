/** Serialises a resource once, and finds its type, its id and its references in that text. */

import { isResourceTypeName } from "../event-types/catalogue.js";

/**
 * A `"reference":"…"` in a text: its value, and the position between the quotes in UTF-16 units,
 * end excluded.
 */
export interface ReferenceSite {
  reference: string;
  start: number;
  end: number;
}

export interface ResourceText {
  text: string;
  resourceType: string;
  id: string | undefined;
  references: ReferenceSite[];
}

/**
 * Why a value is not a resource. `element` is the element at fault, `cause` the error that
 * serialising threw.
 */
export interface ResourceProblem {
  problem: string;
  element?: "id" | "resourceType" | undefined;
  cause?: unknown;
}

/** The deepest nesting. Many parsers refuse deep JSON (.NET at 64); no real resource comes near. */
const MAX_DEPTH = 200;

/**
 * Serialises a resource once and reads what it needs from that text, so getters and `toJSON` cannot
 * return something else the second time.
 *
 * Takes time linear in the length of the text, and does not recurse. Never throws.
 */
export function serialiseResource(value: unknown): ResourceText | ResourceProblem {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    return { problem: "cannot be serialised as JSON: it is cyclic, too deep or holds a BigInt", cause };
  }
  if (text === undefined || !text.startsWith("{")) return { problem: "must be an object" };
  const found = scan(text);
  if (found === undefined) return { problem: `must not nest deeper than ${MAX_DEPTH} levels` };
  const { resourceType, id, references } = found;
  if (typeof resourceType !== "string" || !isResourceTypeName(resourceType)) {
    return { problem: "must name a resource type", element: "resourceType" };
  }
  if (id === null || id === "") return { problem: "must be a string that is not empty", element: "id" };
  return { text, resourceType, id, references };
}

/** Serialises the data of a plain event once: any value of JSON. Never throws. */
export function serialiseData(value: unknown): { text: string } | ResourceProblem {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    return { problem: "cannot be serialised as JSON: it is cyclic, too deep or holds a BigInt", cause };
  }
  if (text === undefined) return { problem: "must be a value that JSON can hold" };
  if (scan(text) === undefined) return { problem: `must not nest deeper than ${MAX_DEPTH} levels` };
  return { text };
}

interface Scan {
  /** `null` if the value is not a string. */
  resourceType: string | null | undefined;
  id: string | null | undefined;
  references: ReferenceSite[];
}

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/**
 * Scans the output of JSON.stringify: it has no blanks, and a quote inside a string always follows
 * a backslash. Returns `undefined` if it nests too deep.
 */
function scan(text: string): Scan | undefined {
  const found: Scan = { resourceType: undefined, id: undefined, references: [] };
  let depth = 0;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = findStringEnd(text, at);
      const isKey = text.charCodeAt(end + 1) === COLON;
      const name = isKey ? readKey(text, at + 1, end, depth) : undefined;
      if (name !== undefined) recordValue(name, text, end + 2, found);
      at = isKey ? end + 2 : end + 1;
      continue;
    }
    // `[` and `{`, `]` and `}` differ in one bit only.
    if ((code | 0x20) === 0x7b) {
      depth += 1;
      if (depth > MAX_DEPTH) return undefined;
    } else if ((code | 0x20) === 0x7d) {
      depth -= 1;
    }
    at += 1;
  }
  return found;
}

type ScannedKey = "reference" | "resourceType" | "id";

/** Returns the key from `start` to `end`, if it matters at this depth. */
function readKey(text: string, start: number, end: number, depth: number): ScannedKey | undefined {
  const isName = (name: ScannedKey): boolean => end - start === name.length && text.startsWith(name, start);
  if (isName("reference")) return "reference";
  if (depth !== 1) return undefined;
  return isName("id") ? "id" : isName("resourceType") ? "resourceType" : undefined;
}

/** Records the value that begins at `at`. */
function recordValue(name: ScannedKey, text: string, at: number, found: Scan): void {
  if (text.charCodeAt(at) !== QUOTE) {
    if (name !== "reference") found[name] = null;
    return;
  }
  const start = at + 1;
  const end = findStringEnd(text, at);
  const value = parseString(text, start, end);
  if (name === "reference") found.references.push({ reference: value, start, end });
  else found[name] = value;
}

/** Returns the position of the quote that closes the string opened at `open`. */
function findStringEnd(text: string, open: number): number {
  let end = text.indexOf('"', open + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text.charCodeAt(start - 1) === BACKSLASH) start -= 1;
  return (at - start) % 2 === 1;
}

function parseString(text: string, start: number, end: number): string {
  const raw = text.slice(start, end);
  return raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
}

const RELATIVE = /^([A-Za-z][A-Za-z0-9]*\/[^/?#]+)(?:\/_history\/[^/?#]+)?$/;

/** True for a target of the form `Type/id`. */
export const isRelative = (target: string): boolean => RELATIVE.test(target);

/**
 * Returns the target of a reference: `Type/id` without its version, a lower-case `urn:uuid:`, or
 * else the text as it is. `undefined` for `#contained` and the empty string, which point to no
 * other resource.
 */
export function toTarget(reference: string): string | undefined {
  if (reference === "" || reference.startsWith("#")) return undefined;
  if (reference.startsWith("urn:uuid:")) return reference.toLowerCase();
  return RELATIVE.exec(reference)?.[1] ?? reference;
}

/**
 * Returns the targets that mean this resource, its identity first. Empty for a resource without an
 * id.
 */
export function listTargets({ resourceType, id }: ResourceText): string[] {
  return id === undefined ? [] : [`${resourceType}/${id}`, `urn:uuid:${id.toLowerCase()}`];
}
