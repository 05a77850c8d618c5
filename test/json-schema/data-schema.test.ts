/** The JSON Schemas of hosts: which are accepted, what they accept, and what that may cost. */

import { describe, expect, it } from "vitest";
import { Budget, TooComplexError } from "../../src/json-schema/budget.js";
import { type DataMistake, parseDataSchema } from "../../src/json-schema/data-schema.js";
import type { Json } from "../../src/schema/types.js";
import suite from "../data/json-schema-tests.json" with { type: "json" };

interface SuiteGroup {
  readonly description: string;
  readonly schema: object;
  readonly tests: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
}

/** Validates with the budget of data of this length. */
function validate(schema: unknown, data: unknown): { mistake: DataMistake | undefined; steps: number } {
  const parsed = parseDataSchema(schema);
  if ("mistake" in parsed) throw new Error(`${parsed.mistake.path} ${parsed.mistake.message}`);
  const text = JSON.stringify(data);
  const budget = new Budget(text.length);
  const mistake = parsed.schema.findMistake(JSON.parse(text) as Json, budget);
  return { mistake, steps: budget.spent };
}

const refusalOf = (schema: unknown): readonly [path: string, message: string] => {
  const parsed = parseDataSchema(schema);
  if (!("mistake" in parsed)) throw new Error("It was not refused.");
  return [parsed.mistake.path, parsed.mistake.message];
};

const at = (path: string, keyword: string): DataMistake => ({ path, keyword });

const fail = (): never => {
  throw new Error("It was read.");
};

function cyclic(): object {
  const schema: { items?: object } = {};
  schema.items = schema;
  return schema;
}

/** Definitions that each refer to the next. */
function chain(length: number): object {
  const defs = Array.from({ length }, (_, index) => [
    `d${index}`,
    index + 1 < length ? { $ref: `#/$defs/d${index + 1}` } : {},
  ]);
  return { $ref: "#/$defs/d0", $defs: Object.fromEntries(defs) };
}

/** Cases of the official suite that differ on purpose. */
const DIFFERENT = [
  // As in draft 2020-12, which the option is documented for.
  "draft7/ref.json: ref overrides any sibling keywords: ref valid, maxItems ignored",
  // The A-label is not decoded: that needs tables of Unicode.
  "draft2020-12/optional/format/hostname.json: validation of A-label (punycode) host names",
];

/** Keywords of the official suite that hosts' schemas may not have. */
const REFUSED = /^is not supported|must lead to a schema within this one|list of values \(got \[\]\)/;

interface Compared {
  readonly refused: readonly string[];
  readonly same: number;
  readonly different: readonly string[];
}

function compare(file: string, groups: readonly SuiteGroup[]): Compared {
  const refused: string[] = [];
  const different: string[] = [];
  let same = 0;
  for (const { description, schema, tests } of groups) {
    const parsed = parseDataSchema(schema);
    if ("mistake" in parsed) refused.push(parsed.mistake.message);
    for (const one of "mistake" in parsed ? [] : tests) {
      const isValid = validate(schema, one.data).mistake === undefined;
      if (isValid === one.valid) same += 1;
      else different.push(`${file}: ${description}: ${one.description}`);
    }
  }
  return { refused, same, different };
}

describe("the official JSON-Schema-Test-Suite", () => {
  const files = Object.entries(suite.files as Readonly<Record<string, readonly SuiteGroup[]>>);

  it.each(files)("has the same results: %s", (file, groups) => {
    const { refused, different } = compare(file, groups);
    expect(different.filter((name) => !DIFFERENT.some((one) => name.startsWith(one)))).toEqual([]);
    expect(refused.filter((message) => !REFUSED.test(message))).toEqual([]);
  });

  it("is compared in more than 1800 cases", () => {
    const same = files.reduce((sum, [file, groups]) => sum + compare(file, groups).same, 0);
    expect(same).toBeGreaterThan(1_800);
  });
});

describe("the schema of a host", () => {
  it.each<[string, unknown, string, string]>([
    ["NaN as a bound", { minimum: Number.NaN }, "minimum", "must be JSON (got a number)"],
    ["a BigInt", { const: 1n }, "const", "must be JSON (got a bigint)"],
    ["a hole in a list", { enum: [1, undefined] }, "enum.1", "must be JSON (got undefined)"],
    ["an instance of a class", new (class Order {})(), "", "must be JSON (got a Order)"],
    [
      "a getter that throws",
      Object.defineProperty({}, "type", { enumerable: true, get: () => fail() }),
      "",
      "throws",
    ],
    ["itself", cyclic(), `${"items.".repeat(50)}`, "deeper than 64 levels"],
    [
      "6000 schemas",
      { allOf: Array.from({ length: 6_000 }, () => ({})) },
      "allOf.4999",
      "more than 5000 schemas",
    ],
    [
      "an unknown type",
      { type: "text" },
      "type",
      "the name of a type, such as 'string', or a list of them (got \"text\")",
    ],
    ["a text in a list of schemas", { anyOf: ["x"] }, "anyOf.0", 'must be a schema (got "x")'],
    [
      "a pattern of names that is invalid",
      { patternProperties: { "(": {} } },
      "patternProperties",
      'flag u (got "(")',
    ],
    ["a keyword of OpenAPI 3.0", { nullable: true }, "nullable", "is not supported"],
    ["a dynamic reference", { $dynamicRef: "#a" }, "$dynamicRef", "is not supported"],
    [
      "references in a circle",
      { $ref: "#/$defs/a", $defs: { a: { anyOf: [{ $ref: "#" }] } } },
      "$defs.a.anyOf.0.$ref",
      "leads back to itself",
    ],
    [
      "a reference into an example",
      { examples: [{}], $ref: "#/examples/0" },
      "$ref",
      "must lead to a schema",
    ],
    ["300 references in a row", chain(300), "$defs.d198.$ref", "more than 200 for one value"],
  ])("is refused with %s", (_, schema, path, message) => {
    expect(refusalOf(schema)).toEqual([path, expect.stringContaining(message)]);
  });

  it("may have notes, and keywords of its own that are named x-", () => {
    const notes = {
      title: "a",
      description: "b",
      examples: [1],
      "x-origin": { a: 1 },
      $comment: "c",
      default: 1,
    };
    expect(validate({ ...notes, type: "integer" }, 1).mistake).toBeUndefined();
  });

  it("is copied, without what is undefined", () => {
    const parsed = parseDataSchema({ type: "integer", minimum: undefined });
    expect(parsed).toMatchObject({ schema: { json: { type: "integer" } } });
  });
});

describe("the data of an event", () => {
  it.each<[string, unknown, unknown, DataMistake]>([
    [
      "an item of a property",
      { properties: { a: { items: { type: "null" } } } },
      { a: [null, 1] },
      at(".a.1", "type"),
    ],
    ["an unknown name", { patternProperties: { "^a": false } }, { abc: 1 }, at(".*", "false")],
    ["a name that is too much", { additionalProperties: false }, { abc: 1 }, at("", "additionalProperties")],
    [
      "an alternative",
      { anyOf: [{ type: "null" }, { properties: { a: false } }] },
      { a: 1 },
      at("", "anyOf"),
    ],
    [
      "a bound before the pattern",
      { pattern: "^(a+)+$", maxLength: 20 },
      "a".repeat(40),
      at("", "maxLength"),
    ],
    [
      "a reference",
      { properties: { a: { $ref: "#/$defs/b" } }, $defs: { b: { const: 1 } } },
      { a: 2 },
      at(".a", "const"),
    ],
  ])("does not match: the mistake is at %s", (_, schema, data, mistake) => {
    expect(validate(schema, data).mistake).toEqual(mistake);
  });

  it("has a path of at most 300 characters in errors", () => {
    const name = "n".repeat(1_000);
    const { mistake } = validate({ properties: { [name]: { type: "null" } } }, { [name]: 1 });
    expect(mistake?.path).toHaveLength(301);
  });

  it.each([
    [19.99, 0.01, true],
    [19.995, 0.01, false],
    [0.3, 0.1, true],
    [1e308, 0.5, true],
    [9_007_199_254_740_991, 2, false],
  ])("is a multiple as in decimal: %d of %d is %s", (value, multipleOf, expected) => {
    expect(validate({ multipleOf }, value).mistake === undefined).toBe(expected);
  });

  it("is checked once per schema that it refers to, however many alternatives lead there", () => {
    const node = (k: number) => ({
      properties: { a: { $ref: "#/$defs/n" }, k: { const: k } },
      required: ["k"],
    });
    const schema = { $ref: "#/$defs/n", $defs: { n: { anyOf: [node(1), node(2), node(3)] } } };
    let data: object = { k: 3 };
    for (let level = 1; level < 150; level += 1) data = { a: data, k: 3 };
    const { mistake, steps } = validate(schema, data);
    expect(mistake).toBeUndefined();
    expect(steps).toBeLessThan(150 * 100);
    const wrong = validate(schema, JSON.parse(JSON.stringify(data).replace('"k":3', '"k":4')) as object);
    expect(wrong.mistake).toEqual(at("", "anyOf"));
    expect(wrong.steps).toBeLessThan(150 * 100);
  });

  it("has unique items if they differ as JSON, in linear steps", () => {
    const unique = (items: readonly unknown[]) => validate({ uniqueItems: true }, items);
    expect(unique([1, "1", true, [1], ["1"], { a: 1 }, { a: "1" }, null, "null"]).mistake).toBeUndefined();
    expect(
      unique([
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ]).mistake,
    ).toEqual(at("", "uniqueItems"));
    const [short, long] = [1_000, 8_000].map(
      (length) => unique(Array.from({ length }, (_, a) => ({ a }))).steps,
    );
    expect(long).toBeLessThan(9 * (short ?? 0));
  });

  it("obeys dependencies of draft 7 and of 2020-12 for the same name", () => {
    const schema = { dependencies: { a: ["b"] }, dependentSchemas: { a: { required: ["c"] } } };
    const keywords = [
      { a: 1, c: 1 },
      { a: 1, b: 1 },
      { a: 1, b: 1, c: 1 },
    ].map((data) => validate(schema, data).mistake?.keyword);
    expect(keywords).toEqual(["dependencies", "required", undefined]);
  });

  it.each(["__proto__", "constructor", "toString", "length"])("may have the name %s", (name) => {
    const json = JSON.stringify({
      properties: { [name]: { type: "integer" } },
      required: [name],
      additionalProperties: false,
      dependentRequired: { [name]: [name] },
      dependentSchemas: { [name]: { minProperties: 1 } },
    });
    const schema: unknown = JSON.parse(json);
    const data = (value: unknown): unknown => JSON.parse(JSON.stringify({ [name]: value }));
    expect(validate(schema, data(1)).mistake).toBeUndefined();
    expect(validate(schema, data("x")).mistake).toEqual(at(`.${name}`, "type"));
    expect(validate(schema, {}).mistake).toEqual(at("", "required"));
    expect(validate({ const: data(1) }, {}).mistake).toEqual(at("", "const"));
    expect(validate({ unevaluatedProperties: false }, data(1)).mistake?.keyword).toBe(
      "unevaluatedProperties",
    );
  });

  it.each<[string, unknown, unknown, boolean]>([
    ["-0 for 0", { const: 0 }, JSON.parse("-0"), true],
    ["1.0 for 1", { enum: [1] }, JSON.parse("1.0"), true],
    ["a lone surrogate for itself", { const: "\ud800" }, "\ud800", true],
    ["a lone surrogate for another", { enum: [["\ud800"]] }, ["\ud801"], false],
    ["a lone surrogate for one character", { pattern: "^.$", maxLength: 1 }, "\udc00", true],
    ["two surrogates for one character", { pattern: "^.$", maxLength: 1 }, "\ud83d\ude00", true],
  ])("is compared as JSON: %s", (_, schema, data, isValid) => {
    expect(validate(schema, data).mistake === undefined).toBe(isValid);
  });

  // The expression of @cfworker/json-schema takes 0.7 s for 36, then twice that for each more.
  it("may be a URL of 68 characters, in few steps", () => {
    const url = `http://${"a".repeat(60)}!`;
    const { mistake, steps } = validate({ format: "url" }, url);
    expect(mistake).toBeUndefined();
    expect(steps).toBeLessThan(100);
    expect(validate({ format: "url" }, `${url}\n`).mistake).toEqual(at("", "format"));
  });

  it("may nest as deep as events may, and is too complex where the schema multiplies that", () => {
    const nested = JSON.parse(`${"[".repeat(199)}${"]".repeat(199)}`) as unknown;
    expect(validate({ items: { $ref: "#" } }, nested).mistake).toBeUndefined();
    let inner: object = { items: { $ref: "#" } };
    for (let level = 0; level < 20; level += 1) inner = { allOf: [inner] };
    expect(() => validate(inner, nested)).toThrow(TooComplexError);
  });
});
