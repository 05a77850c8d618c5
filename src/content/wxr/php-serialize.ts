/**
 * Reads and writes PHP's serialized values. WordPress stores lists of CSS classes and the metadata
 * of images in this form. Reads data only: objects are refused.
 */

import type { Json } from "../../schema/types.js";

export type PhpValue = string | number | boolean | null | PhpArray;
/** Keys are texts, in their order. */
export type PhpArray = Map<string, PhpValue>;

const MAX_DEPTH = 16;
/** Longest number, in characters. */
const MAX_NUMBER = 40;

/**
 * Reads serialized bytes from front to back. Its functions throw `SyntaxError` on anything else.
 */
interface PhpCursor {
  /** Returns the two characters that begin a value, such as `i:`. */
  readType: () => string;
  /** Returns the text before the next `end`, and skips `end`. */
  readUntil: (end: string) => string;
  readWhole: (end: string) => number;
  readString: () => string;
  expect: (text: string) => void;
  isAtEnd: () => boolean;
}

function createPhpCursor(text: string): PhpCursor {
  const bytes = Buffer.from(text);
  let at = 0;

  function readUntil(end: string): string {
    const to = bytes.indexOf(end, at);
    if (to === -1 || to - at > MAX_NUMBER) throw new SyntaxError();
    const found = bytes.toString("latin1", at, to);
    at = to + 1;
    return found;
  }

  function readWhole(end: string): number {
    const digits = readUntil(end);
    if (!/^-?\d{1,16}$/.test(digits)) throw new SyntaxError();
    return Number(digits);
  }

  function expect(text: string): void {
    if (bytes.toString("latin1", at, at + text.length) !== text) throw new SyntaxError();
    at += text.length;
  }

  return {
    readType() {
      at += 2;
      return bytes.toString("latin1", at - 2, at);
    },
    readUntil,
    readWhole,
    readString() {
      const length = readWhole(":");
      if (length < 0 || at + length + 3 > bytes.length) throw new SyntaxError();
      expect('"');
      const value = bytes.toString("utf8", at, at + length);
      at += length;
      expect('";');
      return value;
    },
    expect,
    isAtEnd: () => at === bytes.length,
  };
}

function readValue(cursor: PhpCursor, depth: number): PhpValue {
  if (depth > MAX_DEPTH) throw new SyntaxError();
  const type = cursor.readType();
  if (type === "N;") return null;
  if (type === "i:") return cursor.readWhole(";");
  if (type === "b:") return cursor.readWhole(";") === 1;
  if (type === "d:") return Number(cursor.readUntil(";"));
  if (type === "s:") return cursor.readString();
  if (type === "a:") return readArray(cursor, depth);
  throw new SyntaxError();
}

function readArray(cursor: PhpCursor, depth: number): PhpArray {
  const count = cursor.readWhole(":");
  cursor.expect("{");
  const entries = new Map<string, PhpValue>();
  for (let n = 0; n < count; n += 1) {
    const key = readValue(cursor, depth + 1);
    if (typeof key !== "string" && typeof key !== "number") throw new SyntaxError();
    entries.set(String(key), readValue(cursor, depth + 1));
  }
  cursor.expect("}");
  return entries;
}

/** Returns `undefined` if the text is not exactly one such value. Takes linear time. */
export function unserializePhp(text: string): PhpValue | undefined {
  const cursor = createPhpCursor(text);
  try {
    const value = readValue(cursor, 0);
    return cursor.isAtEnd() ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/**
 * The inverse of {@link unserializePhp}. Plain objects and lists become arrays of PHP.
 *
 * @param clean removes what the file cannot hold from each text, which is stored with its length
 */
export function serializePhp(value: unknown, clean: (text: string) => string = (text) => text): string {
  if (value === null || value === undefined) return "N;";
  if (typeof value === "boolean") return `b:${value ? 1 : 0};`;
  if (typeof value === "number") return Number.isSafeInteger(value) ? `i:${value};` : `d:${value};`;
  if (typeof value === "string") {
    const text = clean(value);
    return `s:${Buffer.byteLength(text)}:"${text}";`;
  }
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  const written = entries.map(([key, entry]) => serializePhp(key, clean) + serializePhp(entry, clean));
  return `a:${entries.length}:{${written.join("")}}`;
}

// A meta value as WordPress stores it: a scalar as text, an array serialized.

/** A text that could be taken for a serialized value is serialized once more, as in WordPress. */
export function toMetaText(value: Json, clean: (text: string) => string): string {
  if (typeof value === "boolean") return value ? "1" : "";
  if (typeof value === "number") return String(value);
  if (typeof value === "string" && unserializePhp(value) === undefined) return clean(value);
  return serializePhp(value, clean);
}

/** The inverse of {@link toMetaText}, without the types of scalars. */
export function fromMetaText(text: string): Json {
  const value = unserializePhp(text);
  return value === undefined ? text : toJson(value);
}

/** An array whose keys are 0, 1, 2 … is a list. */
function toJson(value: PhpValue): Json {
  if (value === null || typeof value !== "object") return value;
  const entries = [...value];
  const isList = entries.every(([key], index) => key === String(index));
  if (isList) return entries.map(([, entry]) => toJson(entry));
  return Object.fromEntries(entries.map(([key, entry]) => [key, toJson(entry)]));
}
