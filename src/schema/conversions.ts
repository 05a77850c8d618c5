/** Converts values of a query to the types of a schema, and tells which types a value has. Pure. */

import { MAX_SCALAR_TEXT, splitList } from "./bounds.js";
import type { Json, JsonObject, JsonType, Schema } from "./types.js";

/** Returns the first of the types that the value has, and prefers the types of its own form. */
export function chooseType(value: Json, types: readonly JsonType[]): JsonType | undefined {
  const own = ownTypes(value);
  return (
    types.find((type) => own.includes(type) && HAS_TYPE[type](value)) ??
    types.find((type) => HAS_TYPE[type](value))
  );
}

/**
 * Returns the types of the value's own form. A text that is not empty has none: a query contains
 * only texts, so the order of the schema decides.
 */
function ownTypes(value: Json): readonly JsonType[] {
  if (Array.isArray(value)) return ["array"];
  if (typeof value === "number") return ["integer", "number"];
  if (typeof value === "boolean") return ["boolean"];
  return value === "" ? ["string"] : [];
}

const HAS_TYPE: { readonly [type in JsonType]: (value: Json) => boolean } = {
  null: (value) => value === null,
  boolean: (value) => toBoolean(value) !== undefined,
  number: (value) => toNumber(value) !== undefined,
  integer: (value) => Number.isSafeInteger(toNumber(value)),
  string: (value) => typeof value === "string",
  array: isListLike,
  object: (value) => toObject(value) !== undefined,
};

export function toBoolean(value: Json): boolean | undefined {
  if (typeof value === "boolean") return value;
  const text = typeof value === "string" && value.length <= MAX_SCALAR_TEXT ? value.toLowerCase() : value;
  if (text === "true" || text === "1" || text === 1) return true;
  return text === "false" || text === "0" || text === 0 ? false : undefined;
}

export function toNumber(value: Json): number | undefined {
  const isNumber =
    typeof value === "number" ||
    (typeof value === "string" && value.length <= MAX_SCALAR_TEXT && NUMERIC.test(value));
  // JSON has no negative zero.
  const number = isNumber ? Number(value) + 0 : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

const NUMERIC = /^[ \t\n\r\v\f]*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?[ \t\n\r\v\f]*$/i;

/** True if {@link toList} finds a list. Looks at most at the names of an object. */
function isListLike(value: Json): boolean {
  if (value === null || typeof value !== "object" || isList(value)) return value !== null;
  return Object.keys(value).every((name) => name.length <= MAX_INDEX && INDEX.test(name));
}

const INDEX = /^(?:0|-?[1-9]\d{0,14})$/;
const MAX_INDEX = 16;

/**
 * Returns the items of a value. Looks at no more than `most` + 1 items of an object or a text: the
 * caller rejects that many.
 */
export function toList(value: Json, most: number): readonly Json[] | undefined {
  if (value === null) return undefined;
  if (typeof value === "object") {
    if (isList(value)) return value;
    const names = Object.keys(value).slice(0, most + 1);
    if (!names.every((name) => name.length <= MAX_INDEX && INDEX.test(name))) return undefined;
    return names.map((name) => value[name] as Json);
  }
  if (typeof value === "boolean") return value ? ["1"] : [];
  return splitList(String(value), most);
}

export function toObject(value: Json): JsonObject | undefined {
  if (value === "") return {};
  if (typeof value !== "object" || value === null) return undefined;
  return isList(value) ? Object.fromEntries(value.entries()) : value;
}

export const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

export function isInBounds(number: number, schema: Schema): boolean {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  const isAbove = schema.exclusiveMinimum === true ? number > minimum : number >= minimum;
  const isBelow = schema.exclusiveMaximum === true ? number < maximum : number <= maximum;
  return isAbove && isBelow;
}
