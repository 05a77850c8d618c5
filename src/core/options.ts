/** Reads what a host passes to a factory against one table: unknown keys and values out of range are refused, defaults filled in. */

import { closest } from "fastest-levenshtein";
import { PostbellError } from "./errors.js";

/** One option: what it accepts, its default, and its unit in docs/options.md. */
export interface Option<T> {
  readonly default: T;
  /** Unit of the value as a reader needs it: `ms`, `bytes`, `count`, `boolean` … */
  readonly unit: string;
  /** `undefined` where `value` is accepted; otherwise what is expected, to end the sentence "must be …". */
  readonly expected: (value: unknown) => string | undefined;
}

export type OptionTable = { readonly [key: string]: Option<unknown> | OptionTable };

export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Option<infer V>
    ? V
    : T[K] extends OptionTable
      ? OptionValues<T[K]>
      : never;
};

const isOption = (entry: Option<unknown> | OptionTable): entry is Option<unknown> =>
  typeof entry["expected"] === "function";

/** A whole number within `min` and `max`, both included. */
export function wholeNumber(
  unit: string,
  defaultValue: number,
  { min, max = Number.MAX_SAFE_INTEGER }: { min: number; max?: number | undefined },
): Option<number> {
  return {
    default: defaultValue,
    unit,
    expected: (value) =>
      Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
        ? undefined
        : `a whole number (${unit}) from ${min} to ${max === Number.MAX_SAFE_INTEGER ? "2^53 − 1" : max}`,
  };
}

export function fraction(defaultValue: number): Option<number> {
  return {
    default: defaultValue,
    unit: "0 to 1",
    expected: (value) =>
      typeof value === "number" && value >= 0 && value <= 1 ? undefined : "a number from 0 to 1",
  };
}

export function flag(defaultValue: boolean): Option<boolean> {
  return {
    default: defaultValue,
    unit: "boolean",
    expected: (value) => (typeof value === "boolean" ? undefined : "true or false"),
  };
}

export function oneOf<const T extends string>(values: readonly T[], defaultValue: T): Option<T> {
  const list = values.map((value) => `'${value}'`).join(" or ");
  return {
    default: defaultValue,
    unit: list,
    expected: (value) => (values.includes(value as T) ? undefined : list),
  };
}

/** Any value that `accepts`; `what` says what that is. */
export function value<T>(
  what: string,
  accepts: (value: unknown) => boolean,
  defaultValue: T,
  unit = what,
): Option<T> {
  return { default: defaultValue, unit, expected: (given) => (accepts(given) ? undefined : what) };
}

const HOOK = "a function";

/** A function of the host, called as a method of the object it was given in; `undefined` where the host gives none. */
export function hook<F>(): Option<F | undefined> {
  return value<F | undefined>(HOOK, (given) => typeof given === "function", undefined);
}

const isHooks = (table: OptionTable): boolean =>
  Object.values(table).every((entry) => isOption(entry) && entry.unit === HOOK);

/** Whether `given` is a literal or the like, and not an instance of a class. */
function isPlain(given: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(given);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A number, a boolean or a plain word as written; of anything else only its type, since it may be huge, or an address with a password. */
const quote = (given: unknown): string =>
  given === null
    ? "null"
    : typeof given === "number" || typeof given === "boolean" || typeof given === "bigint"
      ? String(given)
      : typeof given === "string" && /^[^:/@]{0,40}$/.test(given)
        ? JSON.stringify(given)
        : `a value of type ${Array.isArray(given) ? "array" : typeof given}`;

/**
 * The values of `table` from `input`, with the default where a key is absent or `undefined`. Pure.
 *
 * Functions stay bound to the object they were found in. A group of nothing but functions may be an instance of a class, which has fields of its own.
 * Errors: `invalid_option`, with the path of the option as `field`, when a key is not in the table or a value is not accepted.
 */
export function readOptions<const T extends OptionTable>(
  factory: string,
  table: T,
  input: unknown,
  path = "",
): OptionValues<T> {
  if (input !== undefined && (typeof input !== "object" || input === null || Array.isArray(input))) {
    const what = path === "" ? "its options" : path;
    throw new PostbellError("invalid_option", `${factory}: ${what} must be an object, not ${quote(input)}.`, {
      field: path || undefined,
    });
  }
  const given = (input ?? {}) as Record<string, unknown>;
  for (const key of isHooks(table) && !isPlain(given) ? [] : Object.keys(given)) {
    if (Object.hasOwn(table, key)) continue;
    const known = Object.keys(table);
    const hint = known.length > 0 ? ` Did you mean '${path}${path && "."}${closest(key, known)}'?` : "";
    throw new PostbellError(
      "invalid_option",
      `${factory}: there is no option '${path && `${path}.`}${key}'.${hint}`,
      {
        field: path ? `${path}.${key}` : key,
      },
    );
  }
  const values = Object.entries(table).map(([key, entry]) => {
    const field = path ? `${path}.${key}` : key;
    const found = given[key];
    if (!isOption(entry)) return [key, readOptions(factory, entry, found, field)];
    if (found === undefined) return [key, entry.default];
    const expected = entry.expected(found);
    if (expected === undefined) return [key, typeof found === "function" ? found.bind(given) : found];
    throw new PostbellError(
      "invalid_option",
      `${factory}: ${field} must be ${expected}, not ${quote(found)}.`,
      {
        field,
      },
    );
  });
  return Object.freeze(Object.fromEntries(values)) as OptionValues<T>;
}
