/** Limits parsed JSON before anything walks it recursively. Knows no schema. */

import type { Json, SchemaProblem } from "./types.js";

export interface JsonLimits {
  /** The maximum nesting of arrays and objects. Default 64. */
  levels?: number;
  /**
   * The maximum number of values of any kind, containers included. Default {@link MAX_JSON_VALUES}.
   */
  nodes?: number;
  /** The maximum length of a property name. Default 256. */
  nameLength?: number;
}

/**
 * The maximum number of values in one JSON body. A batch of 25 posts with fifty fields and a
 * hundred meta fields each has fewer than 4 000. Ten thousand are parsed and walked in a few
 * milliseconds.
 */
export const MAX_JSON_VALUES = 10_000;

const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b;

/**
 * True if JSON text in UTF-8 may hold more than `max` values. Takes one pass over the bytes,
 * before parsing: each value but the first follows a comma or an opening bracket.
 */
export function hasMoreValues(json: Uint8Array, max: number): boolean {
  let seen = 1;
  let isInText = false;
  for (let at = 0; at < json.length && seen <= max; at += 1) {
    const byte = json[at] ?? 0;
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (byte === COMMA || isOpening(byte)) seen += 1;
  }
  return seen > max;
}

export const tooManyValues = (max: number): SchemaProblem => ({
  code: "rest_too_many_values",
  message: `No more than ${max} values are accepted.`,
});

/**
 * Checks that a parsed JSON value is flat and small enough for recursive walks. The codes of the
 * problem are `rest_nested_too_deep`, `rest_too_many_values` and `rest_name_too_long`.
 *
 * Guarantee: never recurses, looks at no more than `nodes` values, and also ends on cyclic values.
 */
export function checkJsonLimits(
  value: unknown,
  { levels = 64, nodes = MAX_JSON_VALUES, nameLength = 256 }: JsonLimits = {},
): SchemaProblem | undefined {
  let seen = 1;
  let current = isContainer(value) ? [value] : [];
  for (let level = 1; current.length > 0; level += 1) {
    if (level > levels) {
      return { code: "rest_nested_too_deep", message: `No more than ${levels} levels are accepted.` };
    }
    const below: object[] = [];
    for (const container of current) {
      const children: unknown[] = Array.isArray(container) ? container : Object.values(container);
      seen += children.length;
      if (seen > nodes) {
        return tooManyValues(nodes);
      }
      if (!Array.isArray(container) && Object.keys(container).some((name) => name.length > nameLength)) {
        const message = `The name of a member has at most ${nameLength} characters.`;
        return { code: "rest_name_too_long", message };
      }
      for (const child of children) if (isContainer(child)) below.push(child);
    }
    current = below;
  }
  return undefined;
}

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * Returns a copy of a value that a host wrote, as JSON stores it. `undefined` if it is not JSON,
 * has more than 2 000 values or 40 levels, or more than `max` characters.
 */
export function copyJson(value: unknown, max: number): Json | undefined {
  if (checkJsonLimits(value, { levels: 40, nodes: 2_000 }) !== undefined) return undefined;
  try {
    // Not of a bigint.
    const text: string | undefined = JSON.stringify(value);
    return text === undefined || text.length > max ? undefined : (JSON.parse(text) as Json);
  } catch {
    return undefined;
  }
}
