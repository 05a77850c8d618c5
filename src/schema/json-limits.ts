/** Bounds parsed JSON before anything walks it recursively. Knows no schema. */

import type { SchemaProblem } from "./types.js";

export interface JsonLimits {
  /** Arrays and objects inside one another; a value that is neither has none. Default 64. */
  readonly levels?: number;
  /** Values of any kind, containers included. Default 100 000. */
  readonly nodes?: number;
}

/**
 * Whether a parsed JSON value is flat and small enough for recursive walks. Code of the problem: `rest_nested_too_deep` or `rest_too_many_values`.
 *
 * Guarantee: never recurses; looks at no more than `nodes` values and ends on cyclic ones too.
 */
export function checkJsonLimits(
  value: unknown,
  { levels = 64, nodes = 100_000 }: JsonLimits = {},
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
        return { code: "rest_too_many_values", message: `No more than ${nodes} values are accepted.` };
      }
      for (const child of children) if (isContainer(child)) below.push(child);
    }
    current = below;
  }
  return undefined;
}

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;
