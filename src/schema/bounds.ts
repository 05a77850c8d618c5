/**
 * Checks the size of a value before anything reads it: no regular expression, split, normalisation
 * or URL parser sees a text that is too long.
 */

import type { Json, Schema, SchemaProblem } from "./types.js";

/**
 * The maximum length of a text that represents a number, a boolean or a date. Valid ones are far
 * shorter.
 */
export const MAX_SCALAR_TEXT = 64;

/**
 * The maximum number of items if the schema states no bound. Every argument of a route states one.
 */
const DEFAULT_ITEMS = 1_000;

/** Characters between two items of a list that is written as one text: a comma and a space. */
const SEPARATORS = 2;

/**
 * The maximum length of an item whose schema states no length. A list within a list counts as such
 * a text.
 */
const DEFAULT_ITEM_TEXT = 256;

export const getMaxItems = ({ maxItems, itemLimit }: Schema): number =>
  maxItems ?? itemLimit ?? DEFAULT_ITEMS;

/**
 * Returns the maximum length of a text that represents a list: every item at its maximum, plus
 * separators.
 */
export function getMaxListText(schema: Schema): number {
  const { items = {} } = schema;
  return getMaxItems(schema) * (getMaxItemText(items) + SEPARATORS);
}

function getMaxItemText({ type, maxLength, enum: choices }: Schema): number {
  if (maxLength !== undefined) return maxLength;
  if (choices !== undefined) return Math.max(...choices.map((choice) => String(choice).length));
  return type === "string" ? DEFAULT_ITEM_TEXT : MAX_SCALAR_TEXT;
}

/**
 * Returns the problem of a value that is larger than `schema` allows. Checks only lengths and
 * counts, and no more members than the bounds allow.
 *
 * A value of another type than the schema's passes: the reader of the type rejects it.
 */
export function checkBounds(value: Json, schema: Schema, name: string): SchemaProblem | undefined {
  if (typeof value === "string") return checkTextLength(value, schema, name);
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    if (schema.items === undefined && schema.type !== "array") return undefined;
    return checkItemCount(value.length, schema, name);
  }
  return checkMembers(value as { [name: string]: Json }, schema, name);
}

function checkMembers(
  value: { [name: string]: Json },
  schema: Schema,
  name: string,
): SchemaProblem | undefined {
  const { properties = {}, maxProperties = Number.POSITIVE_INFINITY } = schema;
  if (maxProperties < Number.POSITIVE_INFINITY && Object.keys(value).length > maxProperties) {
    return {
      code: "rest_too_many_properties",
      message: `${name} must have at most ${maxProperties} properties.`,
    };
  }
  for (const [property, member] of Object.entries(properties)) {
    const inner = Object.hasOwn(value, property) ? value[property] : undefined;
    if (inner === undefined) continue;
    const problem = checkBounds(inner, member, `${name}[${property}]`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Compares UTF-16 units first, so that only texts which may fit are counted in code points. */
export function checkTextLength(text: string, schema: Schema, name: string): SchemaProblem | undefined {
  const { maxLength } = schema;
  if (maxLength === undefined || text.length <= maxLength) return undefined;
  if (text.length <= 2 * maxLength && countCharacters(text) <= maxLength) return undefined;
  return {
    code: "rest_too_long",
    message: `${name} must have at most ${countNoun(maxLength, "character")}.`,
  };
}

export function checkItemCount(count: number, schema: Schema, name: string): SchemaProblem | undefined {
  const max = getMaxItems(schema);
  if (count <= max) return undefined;
  return { code: "rest_too_many_items", message: `${name} must have at most ${countNoun(max, "item")}.` };
}

/** Returns the number of code points, without a copy of the text. */
export function countCharacters(text: string): number {
  let count = text.length;
  for (let at = 0; at + 1 < text.length; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
      count -= 1;
      at += 1;
    }
  }
  return count;
}

export const countNoun = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

const isSeparator = (code: number): boolean =>
  code === 0x2c || code === 0x20 || (code >= 0x09 && code <= 0x0d);

/**
 * Splits a text at commas and white space. Stops after `most` + 1 parts, so that the caller sees
 * that there are too many.
 */
export function splitList(text: string, max: number): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at <= text.length && parts.length <= max; at += 1) {
    if (at < text.length && !isSeparator(text.charCodeAt(at))) continue;
    if (at > start) parts.push(text.slice(start, at));
    start = at + 1;
  }
  return parts;
}
