/** Bounds parsed JSON before anything walks it recursively. Knows no schema. */

import type { SchemaProblem } from "./types.js";

export interface JsonLimits {
  /** Arrays and objects inside one another; a value that is neither has none. Default 64. */
  readonly levels?: number;
  /** Values of any kind, containers included. Default {@link MAX_JSON_VALUES}. */
  readonly nodes?: number;
  /** Characters of a member's name. Default 256. */
  readonly nameLength?: number;
}

/**
 * Values in one JSON body. A batch of 25 posts with fifty fields and a hundred meta fields each has fewer than 4 000; ten thousand are parsed and
 * walked in a few milliseconds.
 */
export const MAX_JSON_VALUES = 10_000;

const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b;

/**
 * Whether JSON text in UTF-8 may hold more than `most` values, by one pass over its bytes and before a parser makes anything of it: each value but the
 * first stands after a comma or an opening bracket.
 */
export function hasMoreValues(json: Uint8Array, most: number): boolean {
  let seen = 1;
  let isInText = false;
  for (let at = 0; at < json.length && seen <= most; at += 1) {
    const byte = json[at] ?? 0;
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (byte === COMMA || isOpening(byte)) seen += 1;
  }
  return seen > most;
}

export const tooManyValues = (most: number): SchemaProblem => ({
  code: "rest_too_many_values",
  message: `No more than ${most} values are accepted.`,
});

/**
 * Whether a parsed JSON value is flat and small enough for recursive walks. Code of the problem: `rest_nested_too_deep`, `rest_too_many_values` or
 * `rest_name_too_long`.
 *
 * Guarantee: never recurses; looks at no more than `nodes` values and ends on cyclic ones too.
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
