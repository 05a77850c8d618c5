import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { coerceValue, toText } from "../../src/schema/coerce.js";
import { cleanUri, isDateTime } from "../../src/schema/formats.js";
import { checkJsonLimits } from "../../src/schema/json-limits.js";
import type { Json, JsonType, Schema } from "../../src/schema/types.js";
import { readValue, validateValue } from "../../src/schema/validate.js";
import { expectLinear } from "../support/cpu-time.js";

/** The value as the schema makes it, or the code of the problem. */
const read = (value: Json, schema: Schema): unknown => {
  const result = readValue(value, schema, "a");
  return result.problem === undefined ? { value: result.value } : result.problem.code;
};

const INTEGERS: Schema = { type: "array", items: { type: "integer" } };

/** The values that WordPress accepts as a filter by terms. */
const TERMS: Schema = {
  type: ["object", "array"],
  oneOf: [
    INTEGERS,
    {
      type: "object",
      properties: { terms: INTEGERS, operator: { type: "string", enum: ["AND", "OR"] } },
      additionalProperties: false,
    },
  ],
};

const NOT = "rest_invalid_type";

describe("a value by its type", () => {
  it.each<[Json, Json | undefined]>([
    [1, 1],
    ["1", 1],
    ["01", 1],
    ["1.0", 1],
    ["-5", -5],
    ["-0", 0],
    [" 7 ", 7],
    ["1e2", 100],
    [1.5, undefined],
    ["1.5", undefined],
    ["", undefined],
    ["abc", undefined],
    ["0x10", undefined],
    ["1_0", undefined],
    ["99999999999999999999", undefined],
    [Number.MAX_SAFE_INTEGER + 1, undefined],
    [true, undefined],
    [null, undefined],
    [[1], undefined],
    [{}, undefined],
  ])("makes an integer of %j: %j", (value, integer) => {
    expect(read(value, { type: "integer" })).toEqual(integer === undefined ? NOT : { value: integer });
  });

  it.each<[Json, Json | undefined]>([
    [1.5, 1.5],
    ["1.5", 1.5],
    [".5", 0.5],
    ["5.", 5],
    ["1e999", undefined],
    ["Infinity", undefined],
    ["", undefined],
  ])("makes a number of %j: %j", (value, number) => {
    expect(read(value, { type: "number" })).toEqual(number === undefined ? NOT : { value: number });
  });

  it.each<[Json, Json | undefined]>([
    [true, true],
    ["TRUE", true],
    ["1", true],
    [1, true],
    ["false", false],
    ["0", false],
    [0, false],
    ["", undefined],
    ["maybe", undefined],
    ["no", undefined],
    [2, undefined],
    [[], undefined],
  ])("makes a boolean of %j: %j", (value, boolean) => {
    expect(read(value, { type: "boolean" })).toEqual(boolean === undefined ? NOT : { value: boolean });
  });

  it.each<[Json, Json | undefined]>([
    ["1,2", [1, 2]],
    ["1, 2", [1, 2]],
    ["1 2", [1, 2]],
    [",1,,2,", [1, 2]],
    ["", []],
    [5, [5]],
    [
      ["1", 2],
      [1, 2],
    ],
    [{ 0: "1", 2: "3" }, [1, 3]],
    [{}, []],
    [{ 12: "3" }, [3]],
    [{ "-1": "3" }, [3]],
    [true, [1]],
    [false, []],
    [{ x: 5 }, undefined],
    [{ x0: 5 }, undefined],
    [{ "0x": 5 }, undefined],
    [{ "01": 5 }, undefined],
    ["1;2", undefined],
    ["1|2", undefined],
    ["1,x", undefined],
    [null, undefined],
    [[null], undefined],
  ])("makes a list of integers of %j: %j", (value, list) => {
    expect(read(value, INTEGERS)).toEqual(list === undefined ? NOT : { value: list });
  });

  it("takes for a string only a string, and for null only null", () => {
    const others: Json[] = [5, true, ["x"], { x: "y" }];
    for (const other of others) {
      expect(read(other, { type: "string" })).toBe(NOT);
      expect(read(other, { type: "null" })).toBe(NOT);
    }
    expect(read("x", { type: "string" })).toEqual({ value: "x" });
    expect(read(null, { type: "null" })).toEqual({ value: null });
    expect(read(null, { type: "string" })).toBe(NOT);
    expect(read("", { type: "null" })).toBe(NOT);
  });

  it("takes for an object also an empty text and a list", () => {
    const schema: Schema = { type: "object", properties: { n: { type: "integer" } } };
    expect(read({ n: "1", other: "1" }, schema)).toEqual({ value: { n: 1, other: "1" } });
    expect(read("", schema)).toEqual({ value: {} });
    expect(read(["x"], schema)).toEqual({ value: { 0: "x" } });
    for (const other of ["x", 5, null, true]) expect(read(other, schema)).toBe(NOT);
  });

  it.each<[readonly JsonType[], Json, Json | undefined]>([
    [["string", "null"], null, null],
    [["string", "null"], "", ""],
    [["string", "null"], 5, undefined],
    [["integer", "string"], "1", 1],
    [["string", "integer"], "1", "1"],
    [["array", "string"], "", ""],
    [["array", "string"], "a,b", ["a", "b"]],
    [["object", "array"], [1], [1]],
    [["object", "array"], "", {}],
    [["boolean", "integer"], "2", 2],
    [["boolean", "integer"], "1", true],
    [["boolean", "integer"], 1, 1],
    [["array", "boolean"], true, true],
    [["integer", "number"], 1.5, 1.5],
    [["array", "number"], 1.5, 1.5],
    [["null", "string"], "x", "x"],
    [["number", "string"], "x", "x"],
    [["object", "string"], "x", "x"],
    [["array", "object"], { x: 1 }, { x: 1 }],
  ])("takes that of the types %j which %j has or fits first", (type, value, expected) => {
    expect(read(value, { type })).toEqual(expected === undefined ? NOT : { value: expected });
  });

  it("takes anything without a type", () => {
    const values: Json[] = [null, "1", [{}], { a: 1 }];
    for (const value of values) expect(read(value, {})).toEqual({ value });
  });
});

describe("a value by further rules", () => {
  it.each<[Json, Schema, string]>([
    [0, { type: "integer", minimum: 1 }, "rest_out_of_bounds"],
    ["101", { type: "integer", minimum: 1, maximum: 100 }, "rest_out_of_bounds"],
    ["-1.5", { type: "integer", minimum: 1 }, "rest_out_of_bounds"],
    [0, { type: "integer", minimum: 0, exclusiveMinimum: true }, "rest_out_of_bounds"],
    [360, { type: "integer", maximum: 360, exclusiveMaximum: true }, "rest_out_of_bounds"],
    ["3", { anyOf: [{ type: "integer" }], minimum: 5 }, "rest_out_of_bounds"],
    ["x", { type: "string", enum: ["y", ""] }, "rest_not_in_enum"],
    [5, { type: "string", enum: ["x"] }, NOT],
    ["", { type: "string", enum: ["y"] }, "rest_not_in_enum"],
    ["DESC", { type: "string", enum: ["asc", "desc"] }, "rest_not_in_enum"],
    ["a,c", { type: "array", items: { type: "string", enum: ["a", "b"] } }, "rest_not_in_enum"],
    ["ab", { type: "string", minLength: 3 }, "rest_too_short"],
    ["abc", { type: "string", maxLength: 2 }, "rest_too_long"],
    [[1], { type: "array", minItems: 2 }, "rest_too_few_items"],
    [[1, 2], { type: "array", maxItems: 1 }, "rest_too_many_items"],
    ["a,a", { type: "array", uniqueItems: true }, "rest_duplicate_items"],
    [[1, "1"], { ...INTEGERS, uniqueItems: true }, "rest_duplicate_items"],
    [
      [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ],
      { type: "array", uniqueItems: true },
      "rest_duplicate_items",
    ],
    [{}, { type: "object", required: ["p"] }, "rest_property_required"],
    [{}, { type: "object", properties: { p: { required: true } } }, "rest_property_required"],
    [[], { type: "object", required: ["p"] }, "rest_property_required"],
    [{ q: 1 }, { type: "object", additionalProperties: false }, "rest_additional_properties_forbidden"],
    [{ q: "x" }, { type: "object", additionalProperties: { type: "integer" } }, NOT],
    ["2021-01-01", { type: "string", format: "date-time" }, "rest_invalid_date"],
    ["", { type: ["string", "null"], format: "date-time" }, "rest_invalid_date"],
    ["a@b", { type: "string", format: "email" }, "rest_invalid_email"],
    ["1.2.3", { type: "string", format: "ip" }, "rest_invalid_ip"],
    ["x", { format: "email" }, "rest_invalid_email"],
    ["123", { type: "string", format: "uuid" }, "rest_invalid_uuid"],
    ["#12345", { type: "string", format: "hex-color" }, "rest_invalid_hex_color"],
  ])("refuses %j by %j with %s", (value, schema, code) => {
    expect(read(value, schema)).toBe(code);
  });

  it.each<[Json, Schema, Json]>([
    ["1", { type: "integer", minimum: 1 }, 1],
    ["359.0", { type: "integer", maximum: 360, exclusiveMaximum: true }, 359],
    [1, { type: "integer", minimum: 0, exclusiveMinimum: true }, 1],
    [100, { type: "integer", maximum: 100 }, 100],
    [[1, 2], { type: "array", maxItems: 2 }, [1, 2]],
    [[1, 1], { type: "array" }, [1, 1]],
    [[[1], { 0: 1 }], { type: "array", uniqueItems: true }, [[1], { 0: 1 }]],
    [
      [
        [1, 23],
        [12, 3],
      ],
      { type: "array", uniqueItems: true },
      [
        [1, 23],
        [12, 3],
      ],
    ],
    [5, { format: "email" }, 5],
    ["2", { type: "integer", enum: [1, 2] }, 2],
    ["\u{1f600}", { type: "string", minLength: 1, maxLength: 1 }, "\u{1f600}"],
    [[1, "1"], { type: "array", uniqueItems: true }, [1, "1"]],
    [{ q: "1" }, { type: "object", additionalProperties: { type: "integer" } }, { q: 1 }],
    ["2018-02-03 04:05:06", { type: "string", format: "date-time" }, "2018-02-03 04:05:06"],
    [null, { type: ["string", "null"], format: "date-time" }, null],
    ["a.b+c@d-e.org", { type: "string", format: "email" }, "a.b+c@d-e.org"],
    ["::1", { type: "string", format: "ip" }, "::1"],
    ["#abCDEF", { type: "string", format: "hex-color" }, "#abCDEF"],
    ["example.org", { type: "string", format: "uri" }, "http://example.org"],
  ])("accepts %j by %j", (value, schema, expected) => {
    expect(read(value, schema)).toEqual({ value: expected });
  });

  it.each<[Json, Json | string]>([
    ["1,2", [1, 2]],
    [["1"], [1]],
    [
      { terms: "1,2", operator: "AND" },
      { terms: [1, 2], operator: "AND" },
    ],
    [{ operator: "OR" }, { operator: "OR" }],
    ["abc", "rest_no_matching_schema"],
    [{ terms: "abc" }, "rest_no_matching_schema"],
    [{ terms: [1], operator: "XOR" }, "rest_no_matching_schema"],
    [{ other: 1 }, "rest_no_matching_schema"],
    [[], "rest_one_of_multiple_matches"],
  ])("takes a filter by terms in one of its forms: %j", (value, expected) => {
    expect(read(value, TERMS)).toEqual(typeof expected === "string" ? expected : { value: expected });
  });

  it("checks alternatives without a type of their own by the type around them, and the rest afterwards", () => {
    const turn: Schema = {
      properties: { type: { type: "string", enum: ["turn"] }, by: { type: "number" } },
    };
    const flip: Schema = { properties: { type: { type: "string", enum: ["flip"] } } };
    const schema: Schema = { type: "object", required: ["type", "by"], oneOf: [turn, flip] };
    expect(read({ type: "turn", by: "90" }, schema)).toEqual({ value: { type: "turn", by: 90 } });
    expect(read({ by: 90 }, { ...schema, oneOf: [turn] })).toBe("rest_property_required");
    expect(read({ type: "spin", by: 1 }, schema)).toBe("rest_no_matching_schema");
    expect(read("turn", schema)).toBe("rest_no_matching_schema");
  });

  it("takes the first of any alternatives", () => {
    const schema: Schema = { anyOf: [{ type: "integer" }, { type: "string" }] };
    expect(read("1", schema)).toEqual({ value: 1 });
    expect(read("x", schema)).toEqual({ value: "x" });
    expect(read([], schema)).toBe("rest_no_matching_schema");
  });
});

describe("the message of a problem", () => {
  const string = (rules: Schema): Schema => ({ type: "string", ...rules });
  it.each<[Json, Schema, string]>([
    ["x", { type: "integer" }, "is not of type integer."],
    ["x", { type: ["integer", "null"] }, "is not of type integer or null."],
    [0, { type: "integer", minimum: 1 }, "must be at least 1."],
    [9, { type: "number", minimum: 1, maximum: 8 }, "must be at least 1 and at most 8."],
    [
      9,
      { type: "integer", minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: true },
      "must be greater than 1 and less than 9.",
    ],
    ["", string({ minLength: 1 }), "must have at least 1 character."],
    ["abc", string({ maxLength: 2 }), "must have at most 2 characters."],
    [[], { type: "array", minItems: 1 }, "must have at least 1 item."],
    [[1, 2, 3], { type: "array", maxItems: 2 }, "must have at most 2 items."],
    [[1, 1], { type: "array", uniqueItems: true }, "has an item more than once."],
    [{}, { type: "object", required: ["p"] }, "must have the property p."],
    [{ q: 1 }, { type: "object", additionalProperties: false }, "must not have the property q."],
    ["x", string({ enum: ["y", ""] }), 'is not one of y, "".'],
    ["x", { oneOf: [{ type: "integer" }] }, "is not valid: a is not of type integer."],
    ["x", { anyOf: [{ type: "integer" }, { type: "null" }] }, "has none of the forms it may have."],
    [
      "1",
      { oneOf: [{ type: "integer" }, { type: "string" }] },
      "has more than one of the forms it may have.",
    ],
    ["x", string({ format: "date-time" }), "is not a valid date."],
    ["x", string({ format: "email" }), "is not a valid email address."],
    ["x", string({ format: "ip" }), "is not a valid IP address."],
    ["x", string({ format: "uuid" }), "is not a valid UUID."],
    ["x", string({ format: "hex-color" }), "is not a valid hex color."],
  ])("says of %j by %j what to change", (value, schema, what) => {
    expect(validateValue(value, schema, "a")?.message).toBe(`a ${what}`);
  });

  it.each<JsonType>(["null", "boolean", "number", "integer", "string", "array", "object"])(
    "names the type that was wanted: %s",
    (type) => {
      const other = type === "string" ? 5 : type === "array" ? { x: 1 } : "x";
      expect(validateValue(other, { type }, "a")?.message).toBe(`a is not of type ${type}.`);
    },
  );

  it("names the part that is wrong", () => {
    const schema: Schema = {
      type: "array",
      items: { type: "object", properties: { path: { type: "string" }, n: { type: "integer", maximum: 5 } } },
    };
    expect(validateValue([{}, { path: 5 }], schema, "requests")).toEqual({
      code: "rest_invalid_type",
      message: "requests[1][path] is not of type string.",
      param: "requests[1][path]",
    });
    expect(validateValue([{ n: 6 }], schema, "requests")?.message).toBe("requests[0][n] must be at most 5.");
  });

  it("quotes little of what a client names", () => {
    const long = "n".repeat(100_000);
    const schemas: Schema[] = [
      { type: "object", additionalProperties: false },
      { type: "object", additionalProperties: { type: "integer" } },
      { type: "object", additionalProperties: { type: "object", additionalProperties: { type: "integer" } } },
    ];
    for (const schema of schemas) {
      expect(validateValue({ [long]: { [long]: "x" } }, schema, "a")?.message.length).toBeLessThan(250);
    }
  });
});

describe("a long name in a message", () => {
  it("is quoted whole up to 100 characters, and else cut to as many", () => {
    const messageOf = (name: string) => validateValue("x", { type: "integer" }, name)?.message;
    expect(messageOf("n".repeat(100))).toBe(`${"n".repeat(100)} is not of type integer.`);
    expect(messageOf("n".repeat(101))).toBe(`${"n".repeat(99)}… is not of type integer.`);
  });
});

describe("a text read from any value", () => {
  it.each<[Json | undefined, string]>([
    ["x", "x"],
    [5, "5"],
    [true, "true"],
    [null, ""],
    [undefined, ""],
    [["x"], ""],
    [{ x: "x" }, ""],
  ])("is of %j: %j", (value, text) => {
    expect(toText(value)).toBe(text);
  });
});

describe("an object that a client names the members of", () => {
  it("has no prototype, and changes none", () => {
    const value = JSON.parse('{"__proto__": {"x": "1"}, "constructor": "c"}') as Json;
    const result = coerceValue(value, { type: "object" }) as object;
    expect(Object.keys(result)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(result)).toBeNull();
  });

  it("does not take what every object inherits for a property or for its rule", () => {
    expect(read({}, { type: "object", required: ["toString"] })).toBe("rest_property_required");
    const closed: Schema = { type: "object", properties: {}, additionalProperties: false };
    expect(read({ toString: "x" }, closed)).toBe("rest_additional_properties_forbidden");
  });
});

describe("coercing", () => {
  it("makes an empty value of null, where the schema has none, and leaves alone what does not fit", () => {
    const empty = (["string", "integer", "number", "boolean", "array", "object", "null"] as const).map(
      (type) => coerceValue(null, { type }),
    );
    expect(empty).toEqual(["", 0, 0, false, [], {}, null]);
    expect(coerceValue(null, { type: ["string", "null"] })).toBeNull();
    expect(coerceValue(null, { type: ["string", "integer"] })).toBeNull();
    expect(coerceValue(null, { type: "string", enum: ["x"] })).toBe("");
    expect(coerceValue("x", { type: "integer" })).toBe("x");
    expect(coerceValue("publish", { type: "array", items: { type: "string" } })).toEqual(["publish"]);
  });

  it("makes of a valid value one that is valid and stays as it is", () => {
    fc.assert(
      fc.property(anySchema, anyValue, (schema, value) => {
        const first = readValue(value, schema, "a");
        fc.pre(first.problem === undefined);
        expect(readValue(first.value, schema, "a")).toStrictEqual({ value: first.value });
        expect(coerceValue(value, schema)).toStrictEqual(first.value);
      }),
      { numRuns: 1_000 },
    );
  });

  it("splits a list at commas and white space, and nowhere else", () => {
    const word = fc.string({ minLength: 1 }).filter((text) => !/[\s,]/.test(text));
    const gap = fc.string({ unit: fc.constantFrom(",", " ", "\t", "\n"), minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(fc.array(fc.tuple(word, gap)), (parts) => {
        const schema: Schema = { type: "array", items: { type: "string" } };
        expect(coerceValue(parts.flat().join(""), schema)).toEqual(parts.map(([item]) => item));
      }),
    );
  });

  it("finds a list's items different exactly when they are", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 2 })), (values) => {
        // As JSON: there is no -0 in it.
        const items = JSON.parse(JSON.stringify(values)) as Json[];
        const isDifferent = items.every((item, at) =>
          items.every((other, place) => at === place || !isSame(item, other)),
        );
        const problem = validateValue(items, { type: "array", uniqueItems: true }, "a");
        expect(problem?.code).toBe(isDifferent ? undefined : "rest_duplicate_items");
      }),
    );
  });
});

describe("a date and time", () => {
  it.each([
    "2018-02-03T04:05:06",
    "2018-02-03t04:05:06Z",
    "2018-02-03 04:05:06.123+05:30",
    "2018-02-03T04:05:06-11",
    "2020-02-29T23:59:59",
    "2000-02-29T00:00:00",
  ])("is %s", (text) => {
    expect(isDateTime(text)).toBe(true);
  });

  it.each([
    "",
    "tomorrow",
    "2018",
    "2018-02-03",
    "20180203T040506",
    "2018-02-03T04:05",
    "2021-13-45T00:00:00",
    "2021-00-10T00:00:00",
    "2021-02-29T00:00:00",
    "1900-02-29T00:00:00",
    "2021-04-31T00:00:00",
    "2021-04-00T00:00:00",
    "0000-01-01T00:00:00",
    "275760-09-13T00:00:00",
    "2021-04-01T24:00:00",
    "2016-12-31T23:59:60",
    "2021-04-01T00:60:00",
    "2021-04-01T00:00:00+99:99",
    "2021-04-01T00:00:00 Z",
    "2021-04-01T00:00:00\n",
    "2021-04-01T00:00:00Zx",
  ])("is not %j", (text) => {
    expect(isDateTime(text)).toBe(false);
  });
});

describe("a date and time of any numbers", () => {
  it("is one exactly when the calendar and the clock have it", () => {
    const upTo = (max: number) => fc.oneof(fc.nat(max), fc.constantFrom(0, 1, max - 1, max));
    const numbers = fc.record({
      year: fc.oneof(fc.nat(9999), fc.constantFrom(0, 1, 1900, 2000, 2020, 2100, 9999)),
      month: upTo(13),
      day: fc.oneof(upTo(32), fc.integer({ min: 27, max: 32 })),
      hour: upTo(24),
      minute: upTo(60),
      second: upTo(60),
      zone: fc.option(fc.record({ sign: fc.constantFrom("+", "-"), hour: upTo(24), minute: upTo(60) })),
    });
    const pad = (number: number, width = 2): string => String(number).padStart(width, "0");
    fc.assert(
      fc.property(numbers, ({ year, month, day, hour, minute, second, zone }) => {
        const date = new Date(0);
        date.setUTCFullYear(year, month - 1, day);
        const isDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
        const isTime = hour < 24 && minute < 60 && second < 60;
        const isZone = zone === null || (zone.hour < 24 && zone.minute < 60);
        const offset = zone === null ? "" : `${zone.sign}${pad(zone.hour)}:${pad(zone.minute)}`;
        const text = `${pad(year, 4)}-${pad(month)}-${pad(day)}T${pad(hour)}:${pad(minute)}:${pad(second)}`;
        expect(isDateTime(text + offset)).toBe(year >= 1 && month >= 1 && isDay && isTime && isZone);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the formats of a text", () => {
  const UUID = "0123abcd-4567-89EF-abcd-0123456789ab";
  it.each<[NonNullable<Schema["format"]>, string, boolean]>([
    ["uuid", UUID, true],
    ["uuid", `0${UUID}`, false],
    ["uuid", `${UUID}0`, false],
    ["uuid", UUID.replace("a", "g"), false],
    ["hex-color", "#abc", true],
    ["hex-color", "#abcd", false],
    ["hex-color", "x#abc", false],
    ["hex-color", "#abg", false],
    ["hex-color", "#abcdef0", false],
    ["ip", "192.0.2.1", true],
    ["ip", "192.0.2.256", false],
    ["email", "a@example.org", true],
    ["email", "A_1!#$%&'*+/=?^`{|}~.-@a-b.c1", true],
    ["email", "a@b@example.org", false],
    ["email", "@example.org", false],
    ["email", "a b@example.org", false],
    ["email", "a(@example.org", false],
    ["email", "a@example..org", false],
    ["email", "a@-b.org", false],
    ["email", "a@b-.org", false],
    ["email", "a@exa_mple.org", false],
    ["email", "a@", false],
  ])("%s: %j is one: %s", (format, text, isOne) => {
    expect(validateValue(text, { type: "string", format }, "a") === undefined).toBe(isOne);
  });
});

describe("cleaning a URL", () => {
  it.each([
    ["https://example.org/a?b=1&c=2#d", "https://example.org/a?b=1&c=2#d"],
    ["https://example.org/\u00fc", "https://example.org/\u00fc"],
    ["/relative/path", "/relative/path"],
    ["#anchor", "#anchor"],
    ["mailto:a@example.org", "mailto:a@example.org"],
    ["ftp://example.org/x", "ftp://example.org/x"],
    [" https://example.org/a b\n", "https://example.org/a%20b"],
    ["example.org", "http://example.org"],
    ['https://example.org/"><script>', "https://example.org/script"],
    ["", ""],
    ["?page=2", "?page=2"],
    ["HTTPS://example.org/", "HTTPS://example.org/"],
    ["1http:x", "http://1http:x"],
    ["a b:c", "http://a%20b:c"],
    [":c", "http://:c"],
    ["-~+_.?#=!&;,/:%@$|*'()[]", "http://-~+_.?#=!&;,/:%@$|*'()[]"],
    ["unknown:x", ""],
    ["javascript:alert(1)", ""],
    [" JaVa\nScript\t:alert(1)", ""],
    ["data:text/html,x", ""],
  ])("makes of %j %j", (from, to) => {
    expect(cleanUri(from)).toBe(to);
  });

  it("keeps the schemes of WordPress", () => {
    const schemes =
      "http https ftp ftps mailto news irc irc6 ircs gopher nntp feed telnet mms rtsp sms svn tel fax xmpp webcal urn";
    for (const scheme of schemes.split(" ")) expect(cleanUri(`${scheme}:x`)).toBe(`${scheme}:x`);
  });

  it("changes nothing the second time", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("javascript:", "\u00a0", " ", "http", ":"),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const once = cleanUri(pieces.join(""));
        expect(cleanUri(once)).toBe(once);
        expect(once).not.toMatch(/^\s*javascript:/i);
      }),
    );
  });
});

describe("hostile values", () => {
  it.each<[string, (size: number) => Json, Schema]>([
    ["a long list", (size) => "1,".repeat(size / 2), INTEGERS],
    ["a list of blanks", (size) => " ".repeat(size), INTEGERS],
    ["digits and a letter", (size) => `${"1".repeat(size)}x`, { type: "integer" }],
    [
      "blanks around a number",
      (size) => `${" ".repeat(size / 2)}1${" ".repeat(size / 2)}x`,
      { type: "number" },
    ],
    ["an e-mail address", (size) => `a@${"a.".repeat(size / 2)}`, { type: "string", format: "email" }],
    ["a date", (size) => `2021-01-01T00:00:00.${"0".repeat(size)}x`, { type: "string", format: "date-time" }],
    ["a URL", (size) => " :".repeat(size / 2), { type: "string", format: "uri" }],
    ["many equal items", (size) => Array(size / 5).fill("a"), { type: "array", uniqueItems: true }],
  ])("are read in linear time: %s", async (_, value, schema) => {
    await expectLinear(1_000_000, (size) => readValue(value(size), schema, "a"));
  });
});

describe("the limits of a JSON value", () => {
  const nested = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);

  it("allow 64 levels, and refuse more without recursion", () => {
    expect(checkJsonLimits(nested(64))).toBeUndefined();
    expect(checkJsonLimits(nested(65))?.code).toBe("rest_nested_too_deep");
    let deep: unknown = 0;
    for (let level = 0; level < 200_000; level += 1) deep = level % 2 === 0 ? [deep] : { deep };
    expect(checkJsonLimits(deep)?.code).toBe("rest_nested_too_deep");
  });

  it("count every value", () => {
    expect(checkJsonLimits([1, [2, { a: 3 }]], { nodes: 6 })).toBeUndefined();
    expect(checkJsonLimits([1, [2, { a: 3 }]], { nodes: 5 })?.code).toBe("rest_too_many_values");
    expect(checkJsonLimits(Array(9_999).fill(0))).toBeUndefined();
    expect(checkJsonLimits(Array(10_000).fill(0))?.code).toBe("rest_too_many_values");
  });

  it("are named in the message", () => {
    expect(checkJsonLimits([[]], { levels: 1 })?.message).toBe("No more than 1 levels are accepted.");
    expect(checkJsonLimits([0], { nodes: 1 })?.message).toBe("No more than 1 values are accepted.");
  });

  it("hold for scalars, and for what turns in a circle", () => {
    for (const value of [null, 5, "x", true]) expect(checkJsonLimits(value, { levels: 0 })).toBeUndefined();
    const circle: unknown[] = [];
    circle.push(circle);
    expect(checkJsonLimits(circle)?.code).toBe("rest_nested_too_deep");
  });
});

function isSame(a: Json, b: Json): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const names = Object.keys(a);
  return (
    Array.isArray(a) === Array.isArray(b) &&
    names.length === Object.keys(b).length &&
    names.every(
      (name) =>
        Object.hasOwn(b, name) &&
        isSame((a as Record<string, Json>)[name] as Json, (b as Record<string, Json>)[name] as Json),
    )
  );
}

const leaf = fc.oneof(
  fc.constantFrom<Json>("", "1", "1.0", "-5", "true", "0", "a,b", "1, 2", "x y", "a", "2020-01-02T03:04:05"),
  fc.integer({ min: -5, max: 5 }),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.constant(null),
  fc.string(),
);

const memberName = fc.constantFrom("a", "b", "0", "1", "__proto__");

const objectFrom = <T>(entries: [string, T][]): { [name: string]: T } => {
  const object: { [name: string]: T } = Object.create(null);
  for (const [name, value] of entries) object[name] = value;
  return object;
};

const { value: anyValue } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(memberName, tie("value")), { maxLength: 3 }).map((entries) => objectFrom(entries)),
  ),
}));

const typeName = fc.constantFrom<JsonType>(
  "string",
  "integer",
  "number",
  "boolean",
  "array",
  "object",
  "null",
);

const { schema: anySchema } = fc.letrec<{ schema: Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small" },
    fc.record(
      {
        type: fc.oneof(typeName, fc.uniqueArray(typeName, { minLength: 1 })),
        enum: fc.constantFrom(["", "1", 1, true, "a"], ["a", "b", 0, 1, 2]),
        minimum: fc.integer({ min: -3, max: 0 }),
        exclusiveMinimum: fc.boolean(),
        maximum: fc.integer({ min: 1, max: 3 }),
        maxItems: fc.integer({ min: 1, max: 3 }),
        uniqueItems: fc.boolean(),
      },
      { requiredKeys: ["type"] },
    ),
    fc.record({
      type: fc.constantFrom<NonNullable<Schema["type"]>>("string", ["null", "string"], ["array", "string"]),
      format: fc.constantFrom<"date-time" | "uri">("date-time", "uri"),
    }),
    fc.record(
      {
        type: fc.constantFrom<NonNullable<Schema["type"]>>(
          "array",
          "object",
          ["object", "array"],
          ["array", "object"],
        ),
        items: tie("schema"),
        uniqueItems: fc.boolean(),
        properties: fc
          .array(fc.tuple(memberName, tie("schema")), { maxLength: 2 })
          .map((entries) => objectFrom(entries)),
        additionalProperties: fc.oneof(fc.boolean(), tie("schema")),
      },
      { requiredKeys: ["type"] },
    ),
  ),
}));
