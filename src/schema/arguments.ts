/** Reads and validates the arguments of a request. Knows no route and no HTTP. */

import { checkBounds } from "./bounds.js";
import { coerceValue } from "./coerce.js";
import type { Argument, Arguments, Json, JsonObject, SchemaProblem } from "./types.js";
import { type ReadResult, readValue } from "./validate.js";

export type ArgumentValues = { [name: string]: Json | undefined };

/** The fields of a failure have the form of WordPress's error `data`. */
export type ArgumentsResult =
  | {
      ok: true;
      /** Coerced by the schema. An argument with a `sanitize` has the value that was passed. */
      values: ArgumentValues;
      /** Returns the values with every `sanitize` applied: for a caller who has the permission. */
      sanitised: () => ArgumentValues;
    }
  | { ok: false; code: "rest_missing_callback_param"; missing: string[] }
  | {
      ok: false;
      code: "rest_invalid_param";
      /** A message for each invalid argument. */
      params: { [name: string]: string };
      /** `{ code, message, data }` for each that has a code. */
      details: JsonObject;
    };

/**
 * Returns the arguments of a request, coerced, with the defaults of missing ones. The result has no
 * prototype and only the names of `args`.
 *
 * Lengths and counts are checked before `validate` or the schema sees a value. No `sanitize` runs
 * until `sanitised` is called.
 *
 * In the order of WordPress: missing required arguments are reported alone, then all invalid ones
 * together, then all invalid `late` ones. `null` counts as missing if the argument is required and
 * has no default. Otherwise, unless the argument is `late`, `null` is valid: it skips `validate`
 * and is coerced to the empty value of the type. A default is not validated, but it is coerced or
 * sanitised like a value that was sent; a default of `null` stays. Without a `sanitize`, a value
 * that `validate` accepts but the schema does not stays as it is.
 *
 * @param sent must have been checked for its depth.
 */
export function validateArguments(args: Arguments, sent: JsonObject): ArgumentsResult {
  const declared = Object.entries(args).map(([name, argument]) => ({
    name,
    argument,
    value: Object.hasOwn(sent, name) ? sent[name] : undefined,
  }));

  const missing = declared.filter(isMissing);
  if (missing.length > 0) {
    return { ok: false, code: "rest_missing_callback_param", missing: missing.map(({ name }) => name) };
  }

  const values: { [name: string]: Json } = Object.create(null);
  for (const isLate of [false, true]) {
    const problems = new Map<string, SchemaProblem>();
    for (const { name, argument, value } of declared) {
      if (value === undefined || (argument.late === true) !== isLate) continue;
      const read = readGiven(value, argument, name, sent);
      if (read.problem === undefined) values[name] = read.value;
      else problems.set(name, read.problem);
    }
    if (problems.size > 0) return toInvalid(problems);
  }
  return completeValues(declared, values);
}

interface GivenArgument {
  name: string;
  argument: Argument;
  value: Json | undefined;
}

const isMissing = ({ argument, value }: GivenArgument): boolean =>
  argument.required === true && argument.default === undefined && (value ?? null) === null;

/** Adds defaults, and defers every `sanitize` until the caller is known to be permitted. */
function completeValues(declared: GivenArgument[], values: { [name: string]: Json }): ArgumentsResult {
  const deferred: [name: string, value: Json, sanitize: NonNullable<Argument["sanitize"]>][] = [];
  for (const { name, argument, value = argument.default } of declared) {
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

function readGiven(value: Json, argument: Argument, name: string, sent: JsonObject): ReadResult {
  const { validate } = argument;
  if (value === null && argument.late !== true) return { value: coerceValue(null, argument) };
  if (validate === undefined) return readValue(value, argument, name);
  const problem = checkBounds(value, argument, name) ?? validate(value, name, sent);
  return problem === undefined ? { value: coerceValue(value, argument) } : { problem };
}

function toInvalid(problems: Map<string, SchemaProblem>): ArgumentsResult {
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
