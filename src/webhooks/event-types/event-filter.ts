/**
 * The filter of a webhook: conditions on the `data` of plain events. `emit` and `recover` create a
 * delivery only if all of them hold. Every storage calls `createFilterTest`, so the rule exists
 * once.
 */

import { invalidField } from "../call-arguments.js";

type Scalar = string | number | boolean | null;

/**
 * The operators of a condition. All that are present must hold. A value that is absent from the
 * event meets only `exists: false`.
 */
export interface FilterCondition {
  /** The value is this one. */
  readonly eq?: Scalar;
  /** The value is one of these: 1 to 100. */
  readonly in?: readonly Scalar[];
  /** The value is greater: of two numbers, or of two strings by their UTF-16 units. */
  readonly gt?: number | string;
  readonly gte?: number | string;
  readonly lt?: number | string;
  readonly lte?: number | string;
  /** True: the event has the value, also if it is `null`. False: the event does not have it. */
  readonly exists?: boolean;
  /** The value is a string that begins with this one. */
  readonly prefix?: string;
}

/**
 * The conditions that the `data` of an event must meet, by path. A path is `data`, followed by the
 * names of properties or the places of list items, separated by dots.
 *
 * At most 20 operators in all. A path has at most 128 characters and 10 parts, a string at most 256
 * characters.
 *
 * @example
 * const filter = { "data.amount": { gte: 100 }, "data.kind": { in: ["a", "b"] } };
 */
export type EventFilter = Readonly<Record<string, FilterCondition>>;

type Operator = keyof FilterCondition;

/** Returns a number below, at or above 0, or NaN for values of different types. */
function compare(value: unknown, wanted: number | string): number {
  if (typeof value !== typeof wanted) return Number.NaN;
  if (value === wanted) return 0;
  return (value as number) < (wanted as number) ? -1 : 1;
}

/** Compares a value of an event with that of a condition. */
const OPERATORS: Readonly<Record<Exclude<Operator, "exists">, (value: unknown, wanted: never) => boolean>> = {
  eq: (value, wanted: Scalar) => value === wanted,
  in: (value, wanted: Scalar[]) => wanted.includes(value as Scalar),
  gt: (value, wanted: number | string) => compare(value, wanted) > 0,
  gte: (value, wanted: number | string) => compare(value, wanted) >= 0,
  lt: (value, wanted: number | string) => compare(value, wanted) < 0,
  lte: (value, wanted: number | string) => compare(value, wanted) <= 0,
  prefix: (value, wanted: string) => typeof value === "string" && value.startsWith(wanted),
};

/** The bounds of a filter. */
export const FILTER_BOUNDS = {
  /** Operators of all conditions together. */
  operators: 20,
  pathCharacters: 128,
  pathParts: 10,
  valueCharacters: 256,
  listed: 100,
} as const;

/** Reads an own property that is listed: never one of a prototype, and no `length` of a list. */
const readOwn = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.prototype.propertyIsEnumerable.call(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

/** Returns the value at a path. JSON has no `undefined`, so that stands for an absent value. */
function readPath(data: unknown, path: string): unknown {
  let value = data;
  for (const name of path.split(".").slice(1)) value = readOwn(value, name);
  return value;
}

function meets(value: unknown, condition: FilterCondition): boolean {
  const { exists, ...others } = condition;
  if (exists !== undefined && exists !== (value !== undefined)) return false;
  return Object.entries(others).every(
    ([operator, wanted]) =>
      value !== undefined && OPERATORS[operator as keyof typeof OPERATORS](value, wanted as never),
  );
}

/** True if all conditions of a filter hold for the data of an event. */
export const passesFilter = (filter: EventFilter, data: unknown): boolean =>
  Object.entries(filter).every(([path, condition]) => meets(readPath(data, path), condition));

// Reads the filter of a registration.

const invalidFilter = (path: string, message: string): Error => {
  const shown = path.slice(0, FILTER_BOUNDS.pathCharacters);
  return invalidField(`filter['${shown}']`, `filter['${shown}'] ${message}.`);
};

/** True for a plain object: a list, a map or a date would lose what it holds. */
const isObject = (value: unknown): value is Record<string, unknown> =>
  Object.prototype.toString.call(value) === "[object Object]";

const isText = (value: unknown): value is string =>
  typeof value === "string" && value.length <= FILTER_BOUNDS.valueCharacters && value.isWellFormed();

const isOrdered = (value: unknown): value is number | string => isText(value) || Number.isFinite(value);

const isScalar = (value: unknown): value is Scalar =>
  isOrdered(value) || typeof value === "boolean" || value === null;

const TEXT = `a string of at most ${FILTER_BOUNDS.valueCharacters} characters`;

const ORDERED = { isValid: isOrdered, expected: `a number or ${TEXT}` };

/** The operators in the order in which they are stored, with the values that they take. */
const OPERANDS: readonly (readonly [Operator, { isValid: (value: unknown) => boolean; expected: string }])[] =
  [
    ["eq", { isValid: isScalar, expected: `null, true, false, a number or ${TEXT}` }],
    [
      "in",
      {
        isValid: (value) =>
          Array.isArray(value) &&
          value.length > 0 &&
          value.length <= FILTER_BOUNDS.listed &&
          Array.from(value as unknown[]).every(isScalar),
        expected: `a list of 1 to ${FILTER_BOUNDS.listed} values, each null, true, false, a number or ${TEXT}`,
      },
    ],
    ["gt", ORDERED],
    ["gte", ORDERED],
    ["lt", ORDERED],
    ["lte", ORDERED],
    ["exists", { isValid: (value) => typeof value === "boolean", expected: "true or false" }],
    ["prefix", { isValid: isText, expected: TEXT }],
  ];

const FILTER_OPERATORS: string[] = OPERANDS.map(([name]) => name);

function checkPath(path: string): void {
  const parts = path.split(".", FILTER_BOUNDS.pathParts + 1);
  const isPath =
    path.length <= FILTER_BOUNDS.pathCharacters &&
    path.isWellFormed() &&
    !path.includes("\u0000") &&
    parts.length <= FILTER_BOUNDS.pathParts &&
    parts[0] === "data" &&
    parts.every((part) => part !== "" && part !== "__proto__");
  if (isPath) return;
  const { pathCharacters, pathParts } = FILTER_BOUNDS;
  throw invalidFilter(
    path,
    `is not a path: write data, data.amount or data.items.0.kind, with at most ${pathParts} parts and ${pathCharacters} characters, and without __proto__`,
  );
}

/** Copies a condition. Reads each operator once. */
function readCondition(path: string, condition: unknown): FilterCondition {
  if (!isObject(condition))
    throw invalidFilter(path, `must be an object of operators: ${FILTER_OPERATORS.join(", ")}`);
  const unknown = Object.keys(condition).find((name) => !FILTER_OPERATORS.includes(name));
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 40));
    throw invalidFilter(path, `has no operator ${shown}: use ${FILTER_OPERATORS.join(", ")}`);
  }
  const read: [Operator, unknown][] = [];
  for (const [operator, { isValid, expected }] of OPERANDS) {
    if (!Object.hasOwn(condition, operator)) continue;
    const value = condition[operator];
    if (!isValid(value)) throw invalidFilter(path, `has ${operator}, which must be ${expected}`);
    read.push([operator, Array.isArray(value) ? Object.freeze([...(value as unknown[])]) : value]);
  }
  if (read.length === 0) throw invalidFilter(path, `needs an operator: ${FILTER_OPERATORS.join(", ")}`);
  return Object.freeze(Object.fromEntries(read));
}

/**
 * Returns a filter with its paths sorted, or `null` to remove it. Throws `invalid_request` with the
 * field `filter`, or `filter['<path>']`.
 */
export function readFilter(filter: unknown): EventFilter | null {
  if (filter === null) return null;
  const form = "filter must be an object of conditions by path, such as { 'data.amount': { gte: 100 } }";
  if (!isObject(filter)) throw invalidField("filter", `${form}; null removes it.`);
  const paths = Object.keys(filter);
  const { operators } = FILTER_BOUNDS;
  if (paths.length === 0 || paths.length > operators) {
    const seen = `with 1 to ${operators} paths (got ${paths.length})`;
    throw invalidField("filter", `${form}, ${seen}; null removes it.`);
  }
  const conditions = paths.toSorted().map((path): [string, FilterCondition] => {
    checkPath(path);
    return [path, readCondition(path, filter[path])];
  });
  const count = conditions.reduce((sum, [, condition]) => sum + Object.keys(condition).length, 0);
  if (count > operators)
    throw invalidField("filter", `filter must have at most ${operators} operators in all (got ${count}).`);
  return Object.freeze(Object.fromEntries(conditions));
}
