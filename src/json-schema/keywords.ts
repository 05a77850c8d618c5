/** The keywords of JSON Schema (draft 2020-12 and draft 7) that the schemas of hosts may have. */

import { findNearest } from "../core/known-names.js";
import type { Json, JsonObject } from "../schema/types.js";
import { Pattern, PatternError } from "./pattern.js";

const TYPES: unknown[] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/** Returns what the value of a keyword must be, or `undefined` if it is that. */
type ValueCheck = (value: Json) => string | undefined;

export const isJsonObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isNames = (value: Json | undefined): boolean =>
  Array.isArray(value) && value.every((name) => typeof name === "string");

const must =
  (what: string, accepts: (value: Json) => boolean): ValueCheck =>
  (value) =>
    accepts(value) ? undefined : `must be ${what}`;

const number = must("a number", (value) => typeof value === "number");
const text = must("a text", (value) => typeof value === "string");
const flag = must("true or false", (value) => typeof value === "boolean");
const count = must("a whole number from 0", (value) => Number.isSafeInteger(value) && Number(value) >= 0);
const names = must("a list of names", isNames);
const anything: ValueCheck = () => undefined;

const pattern: ValueCheck = (value) => {
  if (typeof value !== "string") return "must be a text";
  try {
    new Pattern(value);
    return undefined;
  } catch (error) {
    if (error instanceof PatternError) return error.message;
    throw error;
  }
};

const type = must("the name of a type, such as 'string', or a list of them", (value) => {
  const list = Array.isArray(value) ? value : [value];
  return list.length > 0 && list.every((one) => TYPES.includes(one));
});

const VALUES: { [keyword: string]: ValueCheck } = {
  type,
  const: anything,
  enum: must("a list of values", (value) => Array.isArray(value) && value.length > 0),
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: must("a number above 0", (value) => typeof value === "number" && value > 0),
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
  minContains: count,
  maxContains: count,
  uniqueItems: flag,
  required: names,
  dependentRequired: must(
    "an object of lists of names",
    (value) => isJsonObject(value) && Object.values(value).every(isNames),
  ),
  pattern,
  format: text,
  $ref: text,
  $id: text,
  $anchor: must("a name", (value) => typeof value === "string" && /^[A-Za-z_][\w.-]*$/.test(value)),
  $schema: text,
  $comment: text,
  title: text,
  description: text,
  default: anything,
  example: anything,
  examples: anything,
  deprecated: anything,
  readOnly: anything,
  writeOnly: anything,
  contentEncoding: anything,
  contentMediaType: anything,
  contentSchema: anything,
  discriminator: anything,
  externalDocs: anything,
  xml: anything,
};

const SCHEMA = [
  "not",
  "if",
  "then",
  "else",
  "items",
  "additionalItems",
  "unevaluatedItems",
  "contains",
  "additionalProperties",
  "unevaluatedProperties",
  "propertyNames",
];
const LIST = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MEMBERS = [
  "properties",
  "patternProperties",
  "dependentSchemas",
  "dependencies",
  "$defs",
  "definitions",
];

type Form = "schema" | "list" | "members";

/** The keywords whose value is a schema, a list of schemas or an object of schemas. */
const APPLICATORS: Map<string, Form> = new Map<string, Form>([
  ...SCHEMA.map((keyword) => [keyword, "schema"] as const),
  ...LIST.map((keyword) => [keyword, "list"] as const),
  ...MEMBERS.map((keyword) => [keyword, "members"] as const),
]);

/** The value of an applicator. The schemas in it are checked when they are read. */
const FORMS: { [form in Form]: ValueCheck } = {
  schema: anything,
  list: must("a list of schemas", (value) => Array.isArray(value) && value.length > 0),
  members: must("an object of schemas", isJsonObject),
};

const KEYWORDS = [...APPLICATORS.keys(), ...Object.keys(VALUES)];

/** Returns the mistake of a keyword, `undefined` if it has none. Does not check inner schemas. */
export function findKeywordMistake(keyword: string, value: Json): string | undefined {
  if (keyword.startsWith("x-")) return undefined;
  const check = Object.hasOwn(VALUES, keyword) ? VALUES[keyword] : undefined;
  const form = APPLICATORS.get(keyword);
  if (check === undefined && form === undefined) {
    const nearest = findNearest(keyword, KEYWORDS);
    const hint = nearest === undefined ? "" : `did you mean '${nearest}'? `;
    return `is not supported; ${hint}Keywords of your own are named x-…`;
  }
  const problem = check === undefined ? FORMS[form ?? "schema"](value) : check(value);
  if (problem !== undefined) return `${problem} (got ${showJson(value)})`;
  if (keyword !== "patternProperties") return undefined;
  const wrong = Object.keys(value as JsonObject).find((name) => pattern(name) !== undefined);
  return wrong === undefined ? undefined : `has a name that ${pattern(wrong)} (got ${showJson(wrong)})`;
}

/** Lists the schemas in the value of a keyword, with the names that lead to them. */
export function listInnerSchemas(keyword: string, value: Json): [name: string, schema: Json][] {
  const form = APPLICATORS.get(keyword);
  // `items` is a list in draft 7.
  if (form === "list" || (keyword === "items" && Array.isArray(value)))
    return (value as Json[]).map((one, index) => [String(index), one]);
  if (form === "schema") return [["", value]];
  if (form !== "members") return [];
  // The draft 7 keyword `dependencies` has schemas and lists of names.
  return Object.entries(value as JsonObject).filter(([, one]) => keyword !== "dependencies" || !isNames(one));
}

const MAX_SHOWN = 60;

/** Shows a value of a schema in a message, shortened. */
export function showJson(value: Json): string {
  const shown = JSON.stringify(value);
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
}
