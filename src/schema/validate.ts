/**
 * Validates a value against a schema and converts it: texts become numbers, lists and so on. Knows
 * no argument and no request.
 */

import {
  checkBounds,
  checkItemCount,
  checkTextLength,
  countCharacters,
  countNoun,
  getMaxItems,
  getMaxListText,
  MAX_SCALAR_TEXT,
  splitList,
} from "./bounds.js";
import { checkFormat, cleanUri } from "./formats.js";
import type { Json, JsonObject, JsonType, Schema, SchemaProblem } from "./types.js";

export type ReadResult = { value: Json; problem?: undefined } | Failed;

/**
 * Returns the problem of a value that does not fit `schema`. `name` is the parameter, for the
 * message. The rules are those of {@link readValue}.
 */
export function validateValue(value: Json, schema: Schema, name: string): SchemaProblem | undefined {
  return readValue(value, schema, name).problem;
}

/**
 * Returns the converted value, or the problem if it does not fit `schema`.
 *
 * The rules are WordPress's. `"1"` and `"1.0"` are integers; `"true"`, `"0"` and `1` are booleans.
 * A scalar is a list, split at commas and white space. An empty text is an empty object. An object
 * whose names are all integers is a list, and a list is an object whose names are its indices. Of
 * several types, the first that fits counts. An alternative of `anyOf` or `oneOf` without a type
 * takes the outer type. Lengths count code points. Items of a list differ if they do after
 * coercion.
 *
 * Unlike WordPress, integers must be safe integers and numbers finite. Of several types, a list, a
 * number and a boolean stay what they are, as an empty text does in WordPress.
 *
 * Lengths and counts are checked first: no regular expression, split or format sees a value that is
 * too large.
 *
 * Guarantee: the result fits too, and reading it again does not change it, if exactly one
 * alternative of `anyOf` or `oneOf` fits and a `uri` has no limits of length. New objects have no
 * prototype. Recursion follows the schema; with `uniqueItems` it follows the value, so the depth of
 * the value must be limited.
 */
export function readValue(value: Json, schema: Schema, name: string): ReadResult {
  const tooLarge = checkBounds(value, schema, shorten(name));
  if (tooLarge !== undefined) return { problem: tooLarge };
  let current = value;
  let types = schema.type;
  for (const combination of ["anyOf", "oneOf"] as const) {
    const alternatives = schema[combination];
    if (alternatives === undefined) continue;
    const match = findMatch(value, withType(alternatives, schema.type), combination, name);
    if ("problem" in match) return match;
    current = match.value;
    types ??= match.type;
  }

  const type = typeof types === "object" ? chooseType(current, types) : types;
  if (type === undefined && types !== undefined) return wrongType(types, name);
  const read = type === undefined ? readUntyped(current, schema, name) : READERS[type](current, schema, name);
  if (read.problem !== undefined || schema.enum === undefined) return read;
  return schema.enum.some((choice) => choice === read.value) ? read : notInEnum(schema.enum, name);
}

type Reader = (value: Json, schema: Schema, name: string) => ReadResult;

const readUntyped: Reader = (value, schema, name) =>
  typeof value === "string" ? readText(value, schema, name) : { value };

function readText(value: string, { format }: Schema, name: string): ReadResult {
  if (format === undefined) return { value };
  if (format === "uri") return { value: cleanUri(value) };
  const problem = checkFormat(value, format, name);
  return problem === undefined ? { value } : { problem };
}

const READERS: { [type in JsonType]: Reader } = {
  null: (value, _, name) => (value === null ? { value } : wrongType("null", name)),

  boolean: (value, _, name) => {
    const boolean = toBoolean(value);
    return boolean === undefined ? wrongType("boolean", name) : { value: boolean };
  },

  number: (value, schema, name) => {
    const number = toNumber(value);
    if (number === undefined) return wrongType("number", name);
    return isInBounds(number, schema) ? { value: number } : outOfBounds(schema, name);
  },

  integer: (value, schema, name) => {
    const number = toNumber(value);
    if (number === undefined) return wrongType("integer", name);
    if (!isInBounds(number, schema)) return outOfBounds(schema, name);
    return Number.isSafeInteger(number) ? { value: number } : wrongType("integer", name);
  },

  string: (value, schema, name) => {
    if (typeof value !== "string") return wrongType("string", name);
    const { minLength = 0 } = schema;
    if (value.length < 2 * minLength && countCharacters(value) < minLength) {
      return failed("rest_too_short", name, `must have at least ${countNoun(minLength, "character")}.`);
    }
    return readText(value, schema, name);
  },

  array: (value, schema, name) => {
    const tooLong =
      typeof value === "string"
        ? checkTextLength(value, { maxLength: getMaxListText(schema) }, shorten(name))
        : undefined;
    if (tooLong !== undefined) return { problem: tooLong };
    const list = toList(value, getMaxItems(schema));
    if (list === undefined) return wrongType("array", name);
    const tooMany = checkItemCount(list.length, schema, shorten(name));
    if (tooMany !== undefined) return { problem: tooMany };
    const items: Json[] = [];
    for (const [index, item] of list.entries()) {
      const read =
        schema.items === undefined ? { value: item } : readValue(item, schema.items, `${name}[${index}]`);
      if (read.problem !== undefined) return read;
      items.push(read.value);
    }
    const { minItems = 0 } = schema;
    if (items.length < minItems) {
      return failed("rest_too_few_items", name, `must have at least ${countNoun(minItems, "item")}.`);
    }
    if (schema.uniqueItems === true && new Set(items.map(stableText)).size < items.length) {
      return failed("rest_duplicate_items", name, "has an item more than once.");
    }
    return { value: items };
  },

  object: (value, schema, name) => {
    const members = toObject(value);
    if (members === undefined) return wrongType("object", name);
    const { properties = {}, additionalProperties = true } = schema;
    const missing = requiredNames(schema).find((property) => !Object.hasOwn(members, property));
    if (missing !== undefined) {
      return failed("rest_property_required", name, `must have the property ${shorten(missing)}.`);
    }
    const object: { [property: string]: Json } = Object.create(null);
    for (const [property, member] of Object.entries(members)) {
      const inner = Object.hasOwn(properties, property) ? properties[property] : additionalProperties;
      if (inner === false) {
        const code = "rest_additional_properties_forbidden";
        return failed(code, name, `must not have the property ${shorten(property)}.`);
      }
      const read =
        typeof inner === "object"
          ? readValue(member, inner, `${name}[${shorten(property)}]`)
          : { value: member };
      if (read.problem !== undefined) return read;
      object[property] = read.value;
    }
    return { value: object };
  },
};

function requiredNames({ required, properties = {} }: Schema): readonly string[] {
  if (typeof required === "object") return required;
  return Object.keys(properties).filter((property) => properties[property]?.required === true);
}

/** One text for values that are equal, whatever the order of their members. */
function stableText(value: Json): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isList(value)) return `[${value.map(stableText).join(",")}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${stableText(member)}`,
  );
  return `{${members.sort().join(",")}}`;
}

function withType(alternatives: readonly Schema[], type: Schema["type"]): readonly Schema[] {
  return type === undefined ? alternatives : alternatives.map((schema) => ({ type, ...schema }));
}

function findMatch(
  value: Json,
  alternatives: readonly Schema[],
  combination: "anyOf" | "oneOf",
  name: string,
): { value: Json; type: Schema["type"] } | Failed {
  const matches: { value: Json; type: Schema["type"] }[] = [];
  let reason = "";
  for (const schema of alternatives) {
    const read = readValue(value, schema, name);
    if (read.problem !== undefined) {
      reason = read.problem.message;
      continue;
    }
    matches.push({ value: read.value, type: schema.type });
    if (combination === "anyOf") break;
  }
  const [match, another] = matches;
  if (another !== undefined) {
    return failed("rest_one_of_multiple_matches", name, "has more than one of the forms it may have.");
  }
  if (match !== undefined) return match;
  const why = alternatives.length === 1 ? `is not valid: ${reason}` : "has none of the forms it may have.";
  return failed("rest_no_matching_schema", name, why);
}

/** A value that does not fit its schema. */
interface Failed {
  problem: SchemaProblem;
}

const MAX_QUOTE = 100;

const shorten = (text: string): string =>
  text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE - 1)}…` : text;

function failed(code: string, name: string, what: string): Failed {
  return { problem: { code, message: `${shorten(name)} ${what}` } };
}

function wrongType(types: NonNullable<Schema["type"]>, name: string): Failed {
  const { problem } = failed("rest_invalid_type", name, `is not of type ${[types].flat().join(" or ")}.`);
  return { problem: { ...problem, param: shorten(name) } };
}

function notInEnum(choices: NonNullable<Schema["enum"]>, name: string): Failed {
  const listed = choices.map((choice) => (choice === "" ? '""' : String(choice)));
  return failed("rest_not_in_enum", name, `is not one of ${listed.join(", ")}.`);
}

function outOfBounds(schema: Schema, name: string): Failed {
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

/** Returns the first of the types that the value has, and prefers the types of its form. */
function chooseType(value: Json, types: readonly JsonType[]): JsonType | undefined {
  const itemTypes = ownTypes(value);
  return (
    types.find((type) => itemTypes.includes(type) && HAS_TYPE[type](value)) ??
    types.find((type) => HAS_TYPE[type](value))
  );
}

/**
 * Returns the types of the value's form. A text that is not empty has none: a query contains
 * only texts, so the order of the schema decides.
 */
function ownTypes(value: Json): JsonType[] {
  if (Array.isArray(value)) return ["array"];
  if (typeof value === "number") return ["integer", "number"];
  if (typeof value === "boolean") return ["boolean"];
  return value === "" ? ["string"] : [];
}

const HAS_TYPE: { [type in JsonType]: (value: Json) => boolean } = {
  null: (value) => value === null,
  boolean: (value) => toBoolean(value) !== undefined,
  number: (value) => toNumber(value) !== undefined,
  integer: (value) => Number.isSafeInteger(toNumber(value)),
  string: (value) => typeof value === "string",
  array: isListLike,
  object: (value) => toObject(value) !== undefined,
};

function toBoolean(value: Json): boolean | undefined {
  if (typeof value === "boolean") return value;
  const text = typeof value === "string" && value.length <= MAX_SCALAR_TEXT ? value.toLowerCase() : value;
  if (text === "true" || text === "1" || text === 1) return true;
  return text === "false" || text === "0" || text === 0 ? false : undefined;
}

function toNumber(value: Json): number | undefined {
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
 * Returns the items of a value. Looks at no more than `max` + 1 items of an object or a text: the
 * caller rejects that many.
 */
function toList(value: Json, max: number): readonly Json[] | undefined {
  if (value === null) return undefined;
  if (typeof value === "object") {
    if (isList(value)) return value;
    const names = Object.keys(value).slice(0, max + 1);
    if (!names.every((name) => name.length <= MAX_INDEX && INDEX.test(name))) return undefined;
    return names.map((name) => value[name] as Json);
  }
  if (typeof value === "boolean") return value ? ["1"] : [];
  return splitList(String(value), max);
}

function toObject(value: Json): JsonObject | undefined {
  if (value === "") return {};
  if (typeof value !== "object" || value === null) return undefined;
  return isList(value) ? Object.fromEntries(value.entries()) : value;
}

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

function isInBounds(number: number, schema: Schema): boolean {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  const isAbove = schema.exclusiveMinimum === true ? number > minimum : number >= minimum;
  const isBelow = schema.exclusiveMaximum === true ? number < maximum : number <= maximum;
  return isAbove && isBelow;
}
