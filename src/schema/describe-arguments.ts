/**
 * Describes arguments and schemas to clients, in the index and in the response to OPTIONS, and
 * checks schemas that a host wrote. Pure.
 */

import { copyJson } from "./json-limits.js";
import type { Arguments, Json, JsonObject, JsonType, Schema } from "./types.js";

/** Describes the arguments of an endpoint as plain data. `required` is always present. */
export function describeArguments(args: Arguments): JsonObject {
  const described = Object.entries(args).filter(([, { undescribed }]) => undescribed !== true);
  return mapValues(Object.fromEntries(described), (argument) => {
    const { context: _, readonly: __, ...keywords } = describeSchema(argument);
    return { ...keywords, required: argument.required === true };
  });
}

/** Describes a schema as plain data: its keywords at all levels, and nothing else. */
export function describeSchema(schema: Schema): JsonObject {
  const described: { [keyword: string]: Json } = {};
  for (const keyword of KEYWORDS) {
    const value = schema[keyword];
    if (value !== undefined) described[keyword] = value as Json;
  }
  const { items, itemLimit, properties, additionalProperties, oneOf, anyOf } = schema;
  if (itemLimit !== undefined) described["x-maxItems"] = itemLimit;
  if (items !== undefined) described["items"] = describeSchema(items);
  if (properties !== undefined) {
    const told = Object.entries(properties).filter(([, member]) => member.undescribed !== true);
    described["properties"] = mapValues(Object.fromEntries(told), describeSchema);
  }
  if (typeof additionalProperties === "object") {
    described["additionalProperties"] = describeSchema(additionalProperties);
  }
  if (oneOf !== undefined) described["oneOf"] = oneOf.map(describeSchema);
  if (anyOf !== undefined) described["anyOf"] = anyOf.map(describeSchema);
  return described;
}

const KEYWORDS = [
  "title",
  "description",
  "type",
  "format",
  "enum",
  "default",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "maxProperties",
  "additionalProperties",
  "required",
  "context",
  "readonly",
] as const satisfies (keyof Schema)[];

const mapValues = <T>(values: { [name: string]: T }, map: (value: T) => Json): JsonObject =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));

// Checks a schema that a host wrote: only keywords that values are checked against.

/** Levels of schemas within a schema. */
const MAX_LEVELS = 8;
/** Schemas within a schema, itself included. */
const MAX_SCHEMAS = 200;
const MAX_ITEMS = 10_000;
const MAX_LENGTH = 65_536;

/** The types that a schema may name. */
export const JSON_TYPES: unknown[] = [
  "string",
  "integer",
  "number",
  "boolean",
  "array",
  "object",
  "null",
] satisfies JsonType[];

const FORMATS: unknown[] = [
  "date-time",
  "uri",
  "email",
  "ip",
  "uuid",
  "hex-color",
] satisfies Schema["format"][];

interface KeywordCheck {
  accepts: (value: Json) => boolean;
  /** Ends the sentence "must be …". */
  what: string;
}

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);
const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const text: KeywordCheck = {
  accepts: (value) => typeof value === "string" && value.length <= 1_000,
  what: "a text of at most 1000 characters",
};
const number: KeywordCheck = { accepts: (value) => typeof value === "number", what: "a number" };
const flag: KeywordCheck = { accepts: (value) => typeof value === "boolean", what: "true or false" };
const count = (max: number): KeywordCheck => ({
  accepts: (value) => Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max,
  what: `a whole number from 0 to ${max}`,
});

const alternatives: KeywordCheck = {
  accepts: (value) => isList(value) && value.length > 0,
  what: "a list of schemas",
};

const KEYWORD_CHECKS: { [keyword: string]: KeywordCheck } = {
  title: text,
  description: text,
  type: {
    accepts: (value) => {
      const types = isList(value) ? value : [value];
      return (
        types.length > 0 &&
        types.length <= JSON_TYPES.length &&
        types.every((type) => JSON_TYPES.includes(type))
      );
    },
    what: "the name of a type, such as 'string', or a list of them",
  },
  format: { accepts: (value) => FORMATS.includes(value), what: `one of ${FORMATS.join(", ")}` },
  enum: {
    accepts: (value) =>
      isList(value) &&
      value.length > 0 &&
      value.every((choice) => typeof choice !== "object" || choice === null),
    what: "a list of texts, numbers and booleans",
  },
  minimum: number,
  maximum: number,
  exclusiveMinimum: flag,
  exclusiveMaximum: flag,
  minLength: count(MAX_LENGTH),
  maxLength: count(MAX_LENGTH),
  minItems: count(MAX_ITEMS),
  maxItems: count(MAX_ITEMS),
  uniqueItems: flag,
  maxProperties: count(MAX_ITEMS),
  required: {
    accepts: (value) =>
      typeof value === "boolean" || (isList(value) && value.every((name) => typeof name === "string")),
    what: "true, false or a list of names",
  },
  items: { accepts: isObject, what: "a schema" },
  properties: { accepts: isObject, what: "an object of schemas" },
  additionalProperties: {
    accepts: (value) => typeof value === "boolean" || isObject(value),
    what: "true, false or a schema",
  },
  anyOf: alternatives,
  oneOf: alternatives,
};

/** Why a schema is refused. */
export interface SchemaMistake {
  /** Where it is: `properties.unit.type`. */
  path: string;
  /** Follows the path: `must be a number`. */
  message: string;
}

/**
 * Reads the keywords that a host adds to a schema of this type, or returns the first mistake.
 *
 * Each schema needs a type, or alternatives; an array needs `items`, an object `properties` or
 * `additionalProperties`. There are at most 8 levels and 200 schemas. `pattern` is not accepted. An
 * object that does not state `additionalProperties` has no others, as in the meta fields of
 * WordPress.
 */
export function parseSchema(
  keywords: unknown,
  type: JsonType,
): { schema: Schema; mistake?: undefined } | { mistake: SchemaMistake } {
  const copy = copyJson(keywords, MAX_LENGTH);
  if (!isObject(copy)) {
    return { mistake: { path: "", message: "must be JSON of at most 2000 values and 40 levels" } };
  }
  const schema: JsonObject = { type, ...copy };
  if (schema["type"] !== type) {
    return { mistake: { path: "type", message: `must be '${type}' or absent: the key states it` } };
  }
  const mistake = findMistake(schema);
  return mistake === undefined ? { schema: closeObjects(schema as Schema) } : { mistake };
}

/** The depth and size of the JSON must have been checked. */
function findMistake(schema: JsonObject): SchemaMistake | undefined {
  let seen = 0;
  const find = (inner: Json | undefined, path: string, level: number): SchemaMistake | undefined => {
    seen += 1;
    if (level > MAX_LEVELS) return { path, message: `has more than ${MAX_LEVELS} levels` };
    if (seen > MAX_SCHEMAS) return { path, message: `is one of more than ${MAX_SCHEMAS} schemas` };
    if (!isObject(inner)) return { path, message: "must be a schema" };
    const found = findKeywordMistake(inner, path);
    if (found !== undefined) return found;
    for (const [name, member] of listInnerSchemas(inner)) {
      const mistake = find(member, joinPath(path, name), level + 1);
      if (mistake !== undefined) return mistake;
    }
    return undefined;
  };
  return find(schema, "", 1);
}

/** Joins two parts of a path; either may be empty. */
export const joinPath = (path: string, name: string): string =>
  (path === "" || name === "" ? path + name : `${path}.${name}`).slice(0, 300);

function findKeywordMistake(schema: JsonObject, path: string): SchemaMistake | undefined {
  for (const [keyword, value] of Object.entries(schema)) {
    const check = Object.hasOwn(KEYWORD_CHECKS, keyword) ? KEYWORD_CHECKS[keyword] : undefined;
    if (check === undefined) {
      const keywords = Object.keys(KEYWORD_CHECKS).join(", ");
      return { path: joinPath(path, keyword), message: `is not supported; the keywords are ${keywords}` };
    }
    if (!check.accepts(value)) return { path: joinPath(path, keyword), message: `must be ${check.what}` };
  }
  if (isObject(schema["properties"]) && Object.hasOwn(schema["properties"], "__proto__")) {
    return { path: joinPath(path, "properties"), message: "must not have the name __proto__" };
  }
  return findMissingKeyword(schema, path);
}

function findMissingKeyword(schema: JsonObject, path: string): SchemaMistake | undefined {
  const has = (...keywords: string[]): boolean => keywords.some((keyword) => schema[keyword] !== undefined);
  if (!has("type", "anyOf", "oneOf")) return { path: joinPath(path, "type"), message: "is missing" };
  const types = [schema["type"] as Json].flat();
  if (types.includes("array") && !has("items", "anyOf", "oneOf")) {
    return { path: joinPath(path, "items"), message: "is missing; it is the schema of the items" };
  }
  if (types.includes("object") && !has("properties", "additionalProperties", "anyOf", "oneOf")) {
    return { path: joinPath(path, "properties"), message: "is missing; it has the schemas of the members" };
  }
  return undefined;
}

function listInnerSchemas(schema: JsonObject): readonly (readonly [name: string, schema: Json])[] {
  const { items, properties, additionalProperties } = schema;
  return [
    ...(items === undefined ? [] : [["items", items] as const]),
    ...(isObject(properties)
      ? Object.entries(properties).map(([name, member]) => [`properties.${name}`, member] as const)
      : []),
    ...(isObject(additionalProperties) ? [["additionalProperties", additionalProperties] as const] : []),
    ...listAlternatives(schema, "anyOf"),
    ...listAlternatives(schema, "oneOf"),
  ];
}

function listAlternatives(schema: JsonObject, keyword: "anyOf" | "oneOf"): [name: string, schema: Json][] {
  const list = schema[keyword] ?? [];
  return isList(list) ? list.map((one, index) => [`${keyword}.${index}`, one]) : [];
}

function closeObjects(schema: Schema): Schema {
  const { type, items, properties, additionalProperties: more, anyOf, oneOf } = schema;
  return {
    ...schema,
    ...(items === undefined ? {} : { items: closeObjects(items) }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, member]) => [name, closeObjects(member)]),
          ),
        }),
    ...([type].flat().includes("object") && more === undefined ? { additionalProperties: false } : {}),
    ...(typeof more === "object" ? { additionalProperties: closeObjects(more) } : {}),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(closeObjects) }),
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map(closeObjects) }),
  };
}
