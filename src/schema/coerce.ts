/** Makes of a value what a schema says it is, without judging it. */

import type { Json, JsonType, Schema } from "./types.js";
import { readValue } from "./validate.js";

/**
 * The value in the form that `schema` gives it, by the rules of `readValue`. One that does not fit stays as it is, but for `null`: where the schema has no
 * type `null` it becomes the empty value of its type, as the reference has it (`""`, `0`, `false`, `[]`, `{}`; of several types `null`).
 */
export function coerceValue(value: Json, schema: Schema): Json {
  const read = readValue(value, schema, "");
  if (read.problem === undefined) return read.value;
  return value === null && typeof schema.type === "string" ? EMPTY[schema.type] : value;
}

const EMPTY: { readonly [type in JsonType]: Json } = {
  string: "",
  integer: 0,
  number: 0,
  boolean: false,
  array: Object.freeze([]),
  object: Object.freeze(Object.create(null)),
  null: null,
};
