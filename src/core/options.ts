/**
 * Reads the options of a factory against one table: refuses unknown keys and values out of range,
 * and fills in defaults.
 */

import { PostbellError } from "./errors.js";
import { findNearest } from "./known-names.js";

/** One option: its default, its unit in docs/options.md, and the check of its value. */
export interface Option<T> {
  default: T;
  /** The unit of the value for readers: `ms`, `bytes`, `count`, `boolean` … */
  unit: string;
  /** Returns `undefined` if `value` is accepted, else the end of the sentence "must be …". */
  expected: (value: unknown) => string | undefined;
  /**
   * True if messages must not quote the value, not even a short one. Default: true for a name such
   * as `apiToken`, false for others.
   */
  isSecret?: boolean | undefined;
  /** For a list that `expected` accepts: the same check for each item. */
  expectedItem?: ((item: unknown) => string | undefined) | undefined;
}

export type OptionTable = { [key: string]: Option<unknown> | OptionTable };

export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Option<infer V>
    ? V
    : T[K] extends OptionTable
      ? OptionValues<T[K]>
      : never;
};

/** Names whose values are never quoted, so that no table can forget it. */
const SECRET_NAME = /secret|key|token|password|passphrase/i;
/** The characters of an unknown key that a message quotes. */
const MAX_SHOWN_KEY = 80;

const isOption = (entry: Option<unknown> | OptionTable): entry is Option<unknown> =>
  typeof entry["expected"] === "function";

/** An option for a whole number from `min` to `max`, both included. */
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

/** An option for a number from 0 to 1. */
export function fraction(defaultValue: number): Option<number> {
  return {
    default: defaultValue,
    unit: "0 to 1",
    expected: (value) =>
      typeof value === "number" && value >= 0 && value <= 1 ? undefined : "a number from 0 to 1",
  };
}

/** An option that is on or off. */
export function flag(defaultValue: boolean): Option<boolean> {
  return {
    default: defaultValue,
    unit: "boolean",
    expected: (value) => (typeof value === "boolean" ? undefined : "true or false"),
  };
}

/** An option for one of a few words. */
export function oneOf<const T extends string>(values: T[], defaultValue: T): Option<T> {
  const list = values.map((value) => `'${value}'`).join(" or ");
  return {
    default: defaultValue,
    unit: list,
    expected: (value) => (values.includes(value as T) ? undefined : list),
  };
}

/** An option for any value that `accepts` returns true for. `what` describes such a value. */
export function value<T>(
  what: string,
  accepts: (value: unknown) => boolean,
  defaultValue: T,
  unit = what,
): Option<T> {
  return { default: defaultValue, unit, expected: (input) => (accepts(input) ? undefined : what) };
}

/**
 * An option for a list of at most `max` texts. `what` describes them in the plural, and
 * `expectedItem` checks each.
 */
export function listOf(
  what: string,
  max: number,
  expectedItem: (item: unknown) => string | undefined,
): Option<readonly string[]> {
  return {
    default: Object.freeze([]),
    unit: "list",
    expected: (input) =>
      Array.isArray(input) && input.length <= max ? undefined : `a list of at most ${max} ${what}`,
    expectedItem,
  };
}

const HOOK = "a function";

/**
 * An option for a function of the host, bound to the object that it was found in. Default:
 * `undefined`.
 */
export function hook<F>(): Option<F | undefined> {
  return value<F | undefined>(HOOK, (input) => typeof input === "function", undefined);
}

const isHooks = (table: OptionTable): boolean =>
  Object.values(table).every((entry) => isOption(entry) && entry.unit === HOOK);

/** True for object literals and the like, false for instances of a class. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Quotes a number, a boolean or a plain word for a message. Any other value is only named by its
 * type: it may be huge, or an address with a password.
 */
const quote = (input: unknown): string =>
  input === null
    ? "null"
    : typeof input === "number" || typeof input === "boolean" || typeof input === "bigint"
      ? String(input)
      : typeof input === "string" && /^[^:/@]{0,40}$/.test(input)
        ? JSON.stringify(input)
        : `a value of type ${Array.isArray(input) ? "array" : typeof input}`;

/** As {@link quote}, with the start of a text that may be an address, but holds no password. */
const quoteItem = (item: unknown): string =>
  typeof item === "string" && !item.includes("@") ? JSON.stringify(item.slice(0, 80)) : quote(item);

/**
 * Returns the values of `table` from `input`, with the default for a key that is absent or
 * `undefined`. Pure.
 *
 * Functions stay bound to the object they were found in. A group that contains only functions may
 * be an instance of a class, which may have other fields.
 *
 * @throws `invalid_option`, with the path of the option as `field`, if a key is not in the table or
 * a value is not accepted.
 */
export function readOptions<const T extends OptionTable>(
  factory: string,
  table: T,
  input: unknown,
  path = "",
): OptionValues<T> {
  const group = readGroup(factory, input, path);
  if (!isHooks(table) || isPlain(group)) checkKeys(factory, table, group, path);
  const values = Object.entries(table).map(([key, entry]) => {
    const field = joinPath(path, key);
    return [
      key,
      isOption(entry)
        ? readOption(factory, entry, { group: group, key }, field)
        : readOptions(factory, entry, group[key], field),
    ];
  });
  return Object.freeze(Object.fromEntries(values)) as OptionValues<T>;
}

const joinPath = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);

const invalidOption = (factory: string, message: string, field?: string): PostbellError =>
  new PostbellError("invalid_option", `${factory}: ${message}`, { field });

function readGroup(factory: string, input: unknown, path: string): Record<string, unknown> {
  if (input === undefined) return {};
  if (typeof input === "object" && input !== null && !Array.isArray(input)) {
    return input as Record<string, unknown>;
  }
  const name = path === "" ? "its options" : path;
  // A text may be a secret that belongs one level deeper, such as the passphrase of a key.
  const what = typeof input === "string" ? "a text" : quote(input);
  throw invalidOption(factory, `${name} must be an object, not ${what}.`, path || undefined);
}

/** Refuses a key that the table does not have, and names the nearest one, or all. */
function checkKeys(factory: string, table: OptionTable, group: object, path: string): void {
  const unknown = Object.keys(group).find((key) => !Object.hasOwn(table, key));
  if (unknown === undefined) return;
  const keys = Object.keys(table);
  const nearest = findNearest(unknown, keys);
  const hint =
    nearest === undefined
      ? `The options are ${keys.map((key) => joinPath(path, key)).join(", ")}.`
      : `Did you mean '${joinPath(path, nearest)}'?`;
  const field = joinPath(path, unknown.slice(0, MAX_SHOWN_KEY));
  throw invalidOption(
    factory,
    `there is no option '${field}'. ${keys.length === 0 ? "" : hint}`.trimEnd(),
    field,
  );
}

const isSecretOption = ({ isSecret }: Option<unknown>, field: string): boolean =>
  isSecret ?? SECRET_NAME.test(field);

function readOption(
  factory: string,
  option: Option<unknown>,
  { group, key }: { group: Record<string, unknown>; key: string },
  field: string,
): unknown {
  const found = group[key];
  if (found === undefined) return option.default;
  const expected = option.expected(found);
  if (expected !== undefined) {
    const shown = isSecretOption(option, field) ? "" : `, not ${quote(found)}`;
    throw invalidOption(factory, `${field} must be ${expected}${shown}.`, field);
  }
  if (option.expectedItem) checkItems(factory, option, found as unknown[], field);
  return typeof found === "function" ? found.bind(group) : found;
}

function checkItems(factory: string, option: Option<unknown>, items: unknown[], field: string): void {
  // Array.from visits holes too.
  for (const [index, item] of Array.from(items).entries()) {
    const expected = option.expectedItem?.(item);
    if (expected === undefined) continue;
    const path = `${field}[${index}]`;
    const shown = isSecretOption(option, field) ? "" : ` (got ${quoteItem(item)})`;
    throw invalidOption(factory, `${path} must be ${expected}${shown}.`, path);
  }
}
