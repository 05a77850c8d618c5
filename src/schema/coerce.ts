/** Converts a value to the type of its schema, without validating it. */

import type { Json, JsonType, Schema } from "./types.js";
import { readValue } from "./validate.js";

/**
 * Returns the value in the form of `schema`, by the rules of `readValue`. A value that does not fit
 * stays as it is. The exception is `null`: if the schema has a single type other than `null`, it
 * becomes the empty value of this type, as in WordPress (`""`, `0`, `false`, `[]`, `{}`).
 */
export function coerceValue(value: Json, schema: Schema): Json {
  const read = readValue(value, schema, "");
  if (read.problem === undefined) return read.value;
  return value === null && typeof schema.type === "string" ? EMPTY[schema.type] : value;
}

const EMPTY: { [type in JsonType]: Json } = {
  string: "",
  integer: 0,
  number: 0,
  boolean: false,
  array: Object.freeze([]),
  object: Object.freeze(Object.create(null)),
  null: null,
};

/** Returns a text unchanged, a number or boolean as text, and an empty text for anything else. */
export const toText = (value: Json | undefined): string =>
  typeof value === "string"
    ? value
    : typeof value === "number" || typeof value === "boolean"
      ? String(value)
      : "";
