/**
 * The schemas and data that `bench/schemas.js` found to cost most: each is refused, or takes few
 * steps. Of two, the cost is not in the steps but in the hash tables of Node.
 */

import { afterEach, describe, expect, it, vi } from "vitest";
import { Budget, TooComplexError } from "../../src/json-schema/budget.js";
import { parseDataSchema } from "../../src/json-schema/data-schema.js";
import type { Json } from "../../src/schema/types.js";

const repeat = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const members = <T>(count: number, make: (index: number) => [string, T]): { readonly [name: string]: T } =>
  Object.fromEntries(repeat(count, make));

/** Validates data of at most 1.2 MB. */
function validate(schema: unknown, data: unknown): { result: string; steps: number } {
  const parsed = parseDataSchema(schema);
  if ("mistake" in parsed) throw new Error(`${parsed.mistake.path} ${parsed.mistake.message}`);
  const text = JSON.stringify(data);
  expect(text.length).toBeLessThan(1_200_000);
  const budget = new Budget(text.length);
  try {
    const mistake = parsed.schema.findMistake(JSON.parse(text) as Json, budget);
    return { result: mistake?.keyword ?? "valid", steps: budget.spent };
  } catch (error) {
    if (!(error instanceof TooComplexError)) throw error;
    return { result: "too complex", steps: budget.spent };
  }
}

/** The hash of V8 for whole numbers: it has no secret. */
function hashNumber(key: number): number {
  let hash = (~key + (key << 15)) >>> 0;
  hash = (hash ^ (hash >>> 12)) >>> 0;
  hash = (hash + (hash << 2)) >>> 0;
  hash = Math.imul((hash ^ (hash >>> 4)) >>> 0, 2_057) >>> 0;
  return (hash ^ (hash >>> 16)) & 0x3fff_ffff;
}

const names = (count: number) => members(count, (index) => [`k${index}`, 0]);

describe("the worst data of 1 MB", () => {
  it.each<[string, unknown, unknown]>([
    [
      "regular expressions with tables of Unicode",
      { items: { format: "regex" } },
      repeat(245, (index) => "\\p{L}".repeat(815) + index),
    ],
    [
      "40 patterns for each of 80 000 names",
      { patternProperties: members(40, (index) => [`^b${index}`, {}]) },
      names(80_000),
    ],
    [
      "2000 patterns for each of 100 000 objects",
      { items: { patternProperties: members(2_000, (index) => [`^b${index}`, {}]) } },
      repeat(100_000, () => ({ k: 0 })),
    ],
    [
      "200 alternatives that note what they looked at",
      { items: { anyOf: repeat(200, () => ({})), unevaluatedProperties: true } },
      repeat(300_000, () => ({})),
    ],
    ["names counted 60 times", { allOf: repeat(60, () => ({ minProperties: 1 })) }, names(80_000)],
    ["names listed 60 times", { allOf: repeat(60, () => ({ additionalProperties: true })) }, names(80_000)],
    [
      "items noted 60 times",
      { allOf: repeat(60, () => ({ unevaluatedItems: true })) },
      repeat(500_000, () => 0),
    ],
    [
      "objects compared 60 times",
      { allOf: repeat(60, () => ({ not: { const: { a: 1 } } })) },
      members(10_000, (index) => [`${"k".repeat(85)}${index}`, 0]),
    ],
    ["400 repetitions that begin anywhere", { pattern: "a(?:a|b){400}c" }, randomLetters(1_000_000)],
  ])("is refused with %s", (_, schema, data) => {
    const { result, steps } = validate(schema, data);
    expect(result).toBe("too complex");
    expect(steps).toBeLessThan(7_000_000);
  });

  it.each<[string, unknown, unknown, string, number]>([
    ["remainders of 1e308", { items: { multipleOf: 5e-324 } }, repeat(160_000, () => 1e308), "valid", 13],
    [
      "alternatives that lead to one schema",
      { items: { anyOf: repeat(9, () => ({ $ref: "#/$defs/a" })) }, $defs: { a: { minItems: 0 } } },
      repeat(60_000, () => []),
      "valid",
      24,
    ],
    ["names that are all looked at", { unevaluatedProperties: true }, names(80_000), "valid", 18],
    ["items that are all looked at", { unevaluatedItems: true }, repeat(500_000, () => 0), "valid", 4],
  ])("takes few steps with %s", (_, schema, data, expected, most) => {
    const { result, steps } = validate(schema, data);
    const count = Array.isArray(data) ? data.length : Object.keys(data as object).length;
    expect(result).toBe(expected);
    expect(steps).toBeLessThan(most * count + 100);
    expect(steps).toBeGreaterThan(count);
  });
});

describe("data that collides in the hash tables of Node", () => {
  afterEach(() => vi.restoreAllMocks());

  it("has unique numbers, which are never hashed as numbers", () => {
    const add = vi.spyOn(Set.prototype, "add");
    expect(validate({ uniqueItems: true }, [1, 2, 1.5, -0, "1", 2])).toMatchObject({ result: "uniqueItems" });
    expect(add.mock.calls.filter(([value]) => typeof value === "number")).toEqual([]);
    expect(add.mock.calls.length).toBeGreaterThan(4);
  });

  it("has characters, which a pattern spreads over the table", () => {
    // Each is looked up in a table by the character and by 2 for "no letter of ASCII before".
    const codes = repeat(0x10_0000, (index) => 0x1_0000 + index)
      .filter((code) => (hashNumber(2 * 0x11_0001 + code) & 1_023) === 0)
      .slice(0, 900);
    expect(codes).toHaveLength(900);
    const text = codes.map((code) => String.fromCodePoint(code)).join("");
    const set = vi.spyOn(Map.prototype, "set");
    expect(validate({ pattern: "^.*$" }, text)).toMatchObject({ result: "valid" });
    const keys = new Set(set.mock.calls.map(([key]) => key as unknown));
    set.mockRestore();
    const numbers = [...keys].filter((key) => typeof key === "number");
    expect(numbers.length).toBeGreaterThan(890);
    expect(new Set(numbers.map((key) => hashNumber(key) & 1_023)).size).toBeGreaterThan(300);
  });
});

/** The same in every run. */
function randomLetters(length: number): string {
  let state = 1;
  let text = "";
  while (text.length < length) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += state >>> 31 === 0 ? "a" : "b";
  }
  return text;
}
