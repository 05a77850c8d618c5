/** The problems that values of arguments can have, in WordPress's codes and words. Pure. */

import type { Schema, SchemaProblem } from "./types.js";

/** A value that does not fit its schema. */
export interface Failed {
  readonly problem: SchemaProblem;
}

const MAX_QUOTE = 100;

export const shorten = (text: string): string =>
  text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE - 1)}…` : text;

export function failed(code: string, name: string, what: string): Failed {
  return { problem: { code, message: `${shorten(name)} ${what}` } };
}

export function wrongType(types: NonNullable<Schema["type"]>, name: string): Failed {
  const { problem } = failed("rest_invalid_type", name, `is not of type ${[types].flat().join(" or ")}.`);
  return { problem: { ...problem, param: shorten(name) } };
}

export function notInEnum(choices: NonNullable<Schema["enum"]>, name: string): Failed {
  const listed = choices.map((choice) => (choice === "" ? '""' : String(choice)));
  return failed("rest_not_in_enum", name, `is not one of ${listed.join(", ")}.`);
}

export function outOfBounds(schema: Schema, name: string): Failed {
  const { minimum, maximum } = schema;
  const bounds: string[] = [];
  if (minimum !== undefined) {
    bounds.push(`${schema.exclusiveMinimum === true ? "greater than" : "at least"} ${minimum}`);
  }
  if (maximum !== undefined) {
    bounds.push(`${schema.exclusiveMaximum === true ? "less than" : "at most"} ${maximum}`);
  }
  return failed("rest_out_of_bounds", name, `must be ${bounds.join(" and ")}.`);
}
