/** The arguments of an endpoint: reads those of a request, and describes them to clients. Knows no route and no HTTP. */

import { checkBounds } from "./bounds.js";
import { coerceValue } from "./coerce.js";
import type { Argument, Arguments, Json, JsonObject, Schema, SchemaProblem } from "./types.js";
import { type ReadResult, readValue } from "./validate.js";

export type ArgumentValues = { readonly [name: string]: Json | undefined };

/** Of an error in the reference's form: what stands in its `data`. */
export type ArgumentsResult =
  | {
      readonly ok: true;
      /** Coerced by the schema. An argument with a `sanitize` has the value that was given. */
      readonly values: ArgumentValues;
      /** The same with every `sanitize` applied: for a caller who may do what he asks for. */
      readonly sanitised: () => ArgumentValues;
    }
  | { readonly ok: false; readonly code: "rest_missing_callback_param"; readonly missing: readonly string[] }
  | {
      readonly ok: false;
      readonly code: "rest_invalid_param";
      /** A message for each invalid argument. */
      readonly params: { readonly [name: string]: string };
      /** `{ code, message, data }` for each that has a code. */
      readonly details: JsonObject;
    };

/**
 * The arguments of a request, coerced, and the defaults of those it lacks. Without prototype; what `args` does not know is left out.
 *
 * Lengths and counts are judged before `validate` or the schema sees a value. No `sanitize` runs until `sanitised` is called.
 *
 * In the order of the reference: required arguments that are missing are reported alone, then all invalid ones together, then all invalid ones that are
 * `late`. `null` counts as missing where the argument is required and has no default. Otherwise, unless the argument is `late`, `null` is valid without
 * being shown to `validate`, and coerced to the empty value of the type. A default is not checked, but coerced, or shown to `sanitize`, like what is given;
 * a default of `null` stays. A value that only `validate` accepts, and not the schema, stays as it is where there is no `sanitize`.
 *
 * `given` must have been checked for its depth.
 */
export function validateArguments(args: Arguments, given: JsonObject): ArgumentsResult {
  const known = Object.entries(args).map(([name, argument]) => ({
    name,
    argument,
    value: Object.hasOwn(given, name) ? given[name] : undefined,
  }));

  const missing = known.filter(
    ({ argument, value }) =>
      argument.required === true && argument.default === undefined && (value ?? null) === null,
  );
  if (missing.length > 0) {
    return { ok: false, code: "rest_missing_callback_param", missing: missing.map(({ name }) => name) };
  }

  const values: { [name: string]: Json } = Object.create(null);
  for (const isLate of [false, true]) {
    const problems = new Map<string, SchemaProblem>();
    for (const { name, argument, value } of known) {
      if (value === undefined || (argument.late === true) !== isLate) continue;
      const read = readGiven(value, argument, name, given);
      if (read.problem === undefined) values[name] = read.value;
      else problems.set(name, read.problem);
    }
    if (problems.size > 0) return invalid(problems);
  }

  const deferred: (readonly [name: string, value: Json, sanitize: NonNullable<Argument["sanitize"]>])[] = [];
  for (const { name, argument, value = argument.default } of known) {
    if (value === undefined) continue;
    if (argument.sanitize !== undefined) {
      values[name] = value;
      deferred.push([name, value, argument.sanitize]);
    } else if (!(name in values)) values[name] = value === null ? null : coerceValue(value, argument);
  }
  const sanitised = (): ArgumentValues => {
    if (deferred.length === 0) return values;
    const all: { [name: string]: Json } = Object.assign(Object.create(null), values);
    for (const [name, value, sanitize] of deferred) all[name] = sanitize(value, name);
    return all;
  };
  return { ok: true, values, sanitised };
}

function readGiven(value: Json, argument: Argument, name: string, given: JsonObject): ReadResult {
  const { validate } = argument;
  if (value === null && argument.late !== true) return { value: coerceValue(null, argument) };
  if (validate === undefined) return readValue(value, argument, name);
  const problem = checkBounds(value, argument, name) ?? validate(value, name, given);
  return problem === undefined ? { value: coerceValue(value, argument) } : { problem };
}

function invalid(problems: ReadonlyMap<string, SchemaProblem>): ArgumentsResult {
  const entries = [...problems];
  const detailed = entries.filter(([, { code }]) => code !== "");
  return {
    ok: false,
    code: "rest_invalid_param",
    params: Object.fromEntries(entries.map(([name, { message }]) => [name, message])),
    details: Object.fromEntries(
      detailed.map(([name, { code, message, param }]) => [
        name,
        { code, message, data: param === undefined ? null : { param } },
      ]),
    ),
  };
}

/** What clients are told of an endpoint's arguments, in the index and in the answer to OPTIONS: plain data. `required` is always there. */
export function describeArguments(args: Arguments): JsonObject {
  return mapValues(args, (argument) => {
    const { context: _, readonly: __, ...described } = describeSchema(argument);
    return { ...described, required: argument.required === true };
  });
}

/** A schema as plain data: its keywords and no others, all the way down. */
export function describeSchema(schema: Schema): JsonObject {
  const described: { [keyword: string]: Json } = {};
  for (const keyword of KEYWORDS) {
    const value = schema[keyword];
    if (value !== undefined) described[keyword] = value as Json;
  }
  const { items, mostItems, properties, additionalProperties, oneOf, anyOf } = schema;
  if (mostItems !== undefined) described["x-maxItems"] = mostItems;
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
] as const satisfies readonly (keyof Schema)[];

const mapValues = <T>(values: { readonly [name: string]: T }, map: (value: T) => Json): JsonObject =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
