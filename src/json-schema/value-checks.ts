/** The keywords that look at one value and not at what other schemas say about it. */

import { countCharacters } from "../schema/bounds.js";
import type { Json, JsonObject } from "../schema/types.js";
import { Budget } from "./budget.js";
import { DATA_FORMATS } from "./data-formats.js";
import { isJsonObject } from "./keywords.js";
import { Pattern } from "./pattern.js";
import type { Validation } from "./validation.js";

/** Characters of a text that a loop passes in the time of one step. */
const CHARACTERS_PER_STEP = 8;

/** Steps for each name of an object that a keyword lists. */
export const NAME_STEPS = 16;
/** Steps to find a name in an object. */
export const FIND_STEPS = 4;

/** Node makes a table of Unicode for each `\\p{…}` of a regular expression: 40 µs. */
const PROPERTY = /\\p/gi;
const PROPERTY_STEPS = 2_500;

const spendText = (length: number, { budget }: Validation): void =>
  budget.spend(Math.ceil(length / CHARACTERS_PER_STEP));

/**
 * Writes a value so that equal values have equal texts: sorted names, no difference between 1 and
 * 1.0.
 */
function canonicalise(value: Json, budget: Budget): string {
  budget.spend(4);
  if (typeof value === "string") {
    budget.spend(Math.ceil(value.length / CHARACTERS_PER_STEP));
    return JSON.stringify(value);
  }
  if (typeof value !== "object" || value === null) return String(value);
  let text = "";
  if (Array.isArray(value)) {
    for (const item of value as Json[]) text += `${canonicalise(item, budget)},`;
  } else {
    const members = value as JsonObject;
    const names = Object.keys(members).sort();
    budget.spend(Math.ceil(names.length * (8 + Math.log2(names.length))));
    for (const name of names)
      text += `${JSON.stringify(name)}:${canonicalise(members[name] ?? null, budget)},`;
  }
  budget.spend(Math.ceil(text.length / CHARACTERS_PER_STEP));
  return Array.isArray(value) ? `[${text}]` : `{${text}}`;
}

/** The values of a schema that data may equal. */
class ValueSet {
  #scalars = new Set<Json>();
  /** Arrays and objects, in canonical form. */
  #containers = new Set<string>();

  constructor(values: Json[]) {
    const unlimited = new Budget(Number.POSITIVE_INFINITY);
    for (const value of values) {
      if (typeof value === "object" && value !== null) this.#containers.add(canonicalise(value, unlimited));
      else this.#scalars.add(value);
    }
  }

  has(value: Json, budget: Budget): boolean {
    if (typeof value !== "object" || value === null) return this.#scalars.has(value);
    return this.#containers.size > 0 && this.#containers.has(canonicalise(value, budget));
  }
}

function toChoice(choices: Json[]): ValueTest {
  const allowed = new ValueSet(choices);
  return (value, { budget }) => allowed.has(value, budget);
}

const TYPE_TESTS: { [type: string]: (value: Json) => boolean } = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: (value) => Array.isArray(value),
  object: isJsonObject,
};

/** A keyword about numbers: it accepts values of other types. */
const ofNumber =
  (accepts: (value: number, limit: number) => boolean): MakeValueTest =>
  (limit) =>
  (value) =>
    typeof value !== "number" || accepts(value, limit as number);

/** The remainder of 1e308 and 5e-324 takes a loop over their exponents. */
const REMAINDER_STEPS = 10;

/** Allows for the error of one division, so that 19.99 is a multiple of 0.01. */
function isMultiple(value: number, divisor: number): boolean {
  // Exact, but 0.01 itself is not.
  const isExact = value % divisor === 0;
  if (isExact || Number.isInteger(divisor)) return isExact;
  const quotient = value / divisor;
  return Math.abs(quotient - Math.round(quotient)) <= Number.EPSILON * Math.max(1, Math.abs(quotient));
}

/** Compares UTF-16 units first, so that only texts that may fit are counted in code points. */
function hasLength(value: string, [min, max]: [number, number], validation: Validation): boolean {
  if (value.length < min || value.length > 2 * max) return false;
  if (value.length >= 2 * min && value.length <= max) return true;
  spendText(value.length, validation);
  const count = countCharacters(value);
  return count >= min && count <= max;
}

const countMembers = (value: JsonObject, { budget }: Validation): number => {
  const { length } = Object.keys(value);
  budget.spend(NAME_STEPS * length);
  return length;
};

type ValueTest = (value: Json, validation: Validation) => boolean;
type MakeValueTest = (argument: Json) => ValueTest;

/** By keyword, in the order in which they run: bounds first. */
export const VALUE_TESTS: { [keyword: string]: MakeValueTest } = {
  type: (argument) => {
    const tests = [argument].flat().map((name) => TYPE_TESTS[name as string] ?? (() => false));
    const [only] = tests;
    return tests.length === 1 && only !== undefined ? only : (value) => tests.some((test) => test(value));
  },
  const: (argument) => toChoice([argument]),
  enum: (argument) => toChoice(argument as Json[]),
  minimum: ofNumber((value, limit) => value >= limit),
  maximum: ofNumber((value, limit) => value <= limit),
  exclusiveMinimum: ofNumber((value, limit) => value > limit),
  exclusiveMaximum: ofNumber((value, limit) => value < limit),
  multipleOf:
    (divisor) =>
    (value, { budget }) => {
      if (typeof value !== "number") return true;
      budget.spend(REMAINDER_STEPS);
      return isMultiple(value, divisor as number);
    },
  minLength: (min) => (value, validation) =>
    typeof value !== "string" || hasLength(value, [min as number, Number.POSITIVE_INFINITY], validation),
  maxLength: (max) => (value, validation) =>
    typeof value !== "string" || hasLength(value, [0, max as number], validation),
  minItems: (min) => (value) => !Array.isArray(value) || value.length >= (min as number),
  maxItems: (max) => (value) => !Array.isArray(value) || value.length <= (max as number),
  minProperties: (min) => (value, validation) =>
    !isJsonObject(value) || countMembers(value, validation) >= (min as number),
  maxProperties: (max) => (value, validation) =>
    !isJsonObject(value) || countMembers(value, validation) <= (max as number),
  required: (argument) => {
    const names = argument as string[];
    return (value, { budget }) => {
      if (!isJsonObject(value)) return true;
      budget.spend(FIND_STEPS * names.length);
      return names.every((name) => Object.hasOwn(value, name));
    };
  },
  dependentRequired: (argument) => {
    const rules = Object.entries(argument as { [name: string]: string[] });
    return (value, { budget }) =>
      !isJsonObject(value) ||
      rules.every(([name, names]) => {
        budget.spend(FIND_STEPS * (1 + names.length));
        return !Object.hasOwn(value, name) || names.every((one) => Object.hasOwn(value, one));
      });
  },
  format: (name) => {
    const accepts = DATA_FORMATS.get(name as string);
    if (accepts === undefined) return () => true;
    return (value, validation) => {
      if (typeof value !== "string") return true;
      validation.budget.spend(20);
      spendText(4 * value.length, validation);
      if (name === "regex") validation.budget.spend(PROPERTY_STEPS * (value.match(PROPERTY)?.length ?? 0));
      return accepts(value);
    };
  },
  pattern: (source) => {
    const pattern = new Pattern(source as string);
    return (value, { budget }) => typeof value !== "string" || pattern.matches(value, budget);
  },
  uniqueItems:
    (isWanted) =>
    (value, { budget }) => {
      if (isWanted !== true || !Array.isArray(value)) return true;
      budget.spend(10 * value.length);
      // Texts for numbers too: Node hashes numbers without a secret, so data could collide.
      const seen = new Set<string>();
      return value.every((item: Json) => seen.size < seen.add(canonicalise(item, budget)).size);
    },
};
