import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_BRACKETS, MAX_PARAMETERS, parseQuery } from "../../src/schema/query-string.js";
import type { Json, JsonObject } from "../../src/schema/types.js";
import { expectLinear } from "../support/cpu-time.js";

const valuesOf = (text: string): JsonObject => {
  const result = parseQuery(text);
  if (!result.ok) throw new Error(result.problem.message);
  return result.values;
};

const codeOf = (text: string): string => {
  const result = parseQuery(text);
  return result.ok ? "ok" : result.problem.code;
};

describe("the parameters of a query string", () => {
  it.each<[string, { [name: string]: Json }]>([
    ["", {}],
    ["&&", {}],
    ["a=1&b=2", { a: "1", b: "2" }],
    ["a", { a: "" }],
    ["a=b=c", { a: "b=c" }],
    ["=1", {}],
    ["a=1&a=2", { a: "2" }],
    ["a=x+y%20z%2B", { a: "x y z+" }],
    ["a%5Bb%5D=1", { a: { b: "1" } }],
    ["a.b=1&c+d=2&+e=3", { a_b: "1", c_d: "2", e: "3" }],
  ])("reads %j", (text, values) => {
    expect(valuesOf(text)).toEqual(values);
  });

  it.each<[string, { [name: string]: Json }]>([
    ["a[]=1&a[]=2", { a: ["1", "2"] }],
    ["a[0]=x&a[1]=y", { a: ["x", "y"] }],
    ["a[0]=x&a[2]=y", { a: { 0: "x", 2: "y" } }],
    ["a[1]=x&a[]=y", { a: { 1: "x", 2: "y" } }],
    ["a[00]=x", { a: { "00": "x" } }],
    ["a[05]=x&a[]=y", { a: { "05": "x", 0: "y" } }],
    ["a[5]=x&a[3]=y&a[]=z", { a: { 5: "x", 3: "y", 6: "z" } }],
    ["a[x1]=x&a[1x]=y&a[]=z", { a: { x1: "x", "1x": "y", 0: "z" } }],
    ["a[  ]=x", { a: { "  ": "x" } }],
    ["++a=1&b+c.d[e]=2", { a: "1", b_c_d: { e: "2" } }],
    ["a[b][c]=2&a[b][d]=3", { a: { b: { c: "2", d: "3" } } }],
    ["a[][b]=1&a[][b]=2", { a: [{ b: "1" }, { b: "2" }] }],
    ["a[b.c d]=1", { a: { "b.c d": "1" } }],
    ["a[+]=1", { a: ["1"] }],
    ["a=1&a[b]=2", { a: { b: "2" } }],
    ["a[b]=1&a=2", { a: "2" }],
    ["a[b]c=1", { a: { b: "1" } }],
    ["a[b.c=1", { a_b_c: "1" }],
    ["a[b][c=1", { a: { b: "1" } }],
    ["a]=1", { "a]": "1" }],
    ["[a]=1&[]=2", {}],
  ])("nests by brackets as PHP does: %j", (text, values) => {
    expect(valuesOf(text)).toEqual(values);
  });

  it("keeps what is no percent-encoding, and replaces what is no UTF-8", () => {
    expect(valuesOf("a=100%&b=%zz%41%4%4a%4A%/0%:0%0g%G0&c=%ff%c3%bc&d=%e2%82&%ff=e")).toEqual({
      a: "100%",
      b: "%zzA%4JJ%/0%:0%0g%G0",
      c: "\ufffd\u00fc",
      d: "\ufffd",
      "\ufffd": "e",
    });
  });

  it("treats the names of JavaScript's inheritance as any other", () => {
    const values = valuesOf("__proto__[x]=1&constructor[prototype][x]=2&a[__proto__]=3&hasOwnProperty=4");
    expect(Object.keys(values)).toEqual(["__proto__", "constructor", "a", "hasOwnProperty"]);
    expect(Object.keys(values["a"] as JsonObject)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(values)).toBeNull();
    expect(Object.getPrototypeOf(values["a"])).toBeNull();
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  it("reads back what was printed", () => {
    const text = fc.string({ unit: "binary", maxLength: 5 });
    // An index would make a list of the object, a lone blank or nothing an append; "]" ends the
    // key.
    const key = text.filter((name) => !/^\s?$|^\d+$|\]/.test(name));
    const topKey = key.filter((name) => !/[ .[]/.test(name));
    const { value } = fc.letrec<{ value: Json }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        text,
        fc.array(tie("value"), { minLength: 1, maxLength: 4 }),
        fc.array(fc.tuple(key, tie("value")), { minLength: 1, maxLength: 4 }).map(objectOf),
      ),
    }));
    fc.assert(
      fc.property(fc.array(fc.tuple(topKey, value), { maxLength: 4 }).map(objectOf), (values) => {
        const printed = Object.entries(values).flatMap(([name, inner]) => print(name, inner));
        expect(valuesOf(printed.join("&"))).toStrictEqual(values);
      }),
    );
  });

  it("never fails on any text", () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom("a", "0", "[", "]", "%", "&", "=", "+", " ", ".", "\u00fc", "\ud83d"),
        }),
        (text) => {
          expect(parseQuery(text).ok).toBe(true);
        },
      ),
    );
  });
});

describe("too much in a query string", () => {
  it("is refused above 1 000 parameters", () => {
    expect(codeOf("a=1&".repeat(MAX_PARAMETERS))).toBe("ok");
    expect(codeOf("a=1&".repeat(MAX_PARAMETERS + 1))).toBe("rest_too_many_parameters");
  });

  it("is refused above 64 brackets in one name", () => {
    expect(codeOf(`a${"[x]".repeat(MAX_BRACKETS)}=1`)).toBe("ok");
    expect(codeOf(`a${"[x]".repeat(MAX_BRACKETS + 1)}=1`)).toBe("rest_nested_too_deep");
    expect(codeOf(`a${"[]".repeat(MAX_BRACKETS + 1)}=1`)).toBe("rest_nested_too_deep");
  });

  it("is refused with the limit in the message", () => {
    const messageOf = (text: string) => () => valuesOf(text);
    expect(messageOf("a=1&".repeat(1_001))).toThrow("No more than 1000 parameters are accepted.");
    expect(messageOf(`a${"[x]".repeat(65)}=1`)).toThrow(
      "No more than 64 brackets are accepted in the name of a parameter.",
    );
  });

  it.each([
    ["parameters", 700_000, (size: number) => "a[]=1&".repeat(size / 7)],
    ["ampersands", 1_000_000, (size: number) => "&".repeat(size)],
    ["brackets", 1_000_000, (size: number) => `a${"[]".repeat(size / 2)}=1`],
    ["open brackets", 1_000_000, (size: number) => `a${"[".repeat(size)}=1`],
    ["percent signs", 1_000_000, (size: number) => `a=${"%".repeat(size)}`],
    ["bytes that are no UTF-8", 900_000, (size: number) => `a=${"%ff".repeat(size / 3)}`],
    ["blanks", 1_000_000, (size: number) => `${" ".repeat(size)}a=1`],
    ["long names", 1_000_000, (size: number) => `${"a.".repeat(500)}=1&`.repeat(size / 1_000)],
  ])("takes time in proportion to it: %s", async (_, size, text) => {
    await expectLinear(size, (length) => parseQuery(text(length)));
  });
});

function objectOf(entries: readonly (readonly [string, Json])[]): JsonObject {
  const object: { [name: string]: Json } = Object.create(null);
  for (const [name, value] of entries) object[name] = value;
  return object;
}

function print(name: string, value: Json): string[] {
  if (typeof value !== "object" || value === null) {
    return [`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`];
  }
  return Object.entries(value).flatMap(([key, inner]) => print(`${name}[${key}]`, inner));
}
