import { describe, expect, it } from "vitest";
import { type ArgumentsResult, validateArguments } from "../../src/schema/arguments.js";
import { describeArguments, describeSchema } from "../../src/schema/describe-arguments.js";
import type { Argument, Arguments, Json, JsonObject } from "../../src/schema/types.js";

const LIST: Arguments = {
  context: { type: "string", enum: ["view", "edit"], default: "view" },
  page: { type: "integer", minimum: 1, default: 1 },
  per_page: { type: "integer", minimum: 1, maximum: 100, default: 10 },
  order: { type: "string", enum: ["asc", "desc"], default: "desc", late: true },
  include: { type: "array", items: { type: "integer" }, default: [], late: true },
  status: { type: "array", items: { type: "string" }, default: "publish", late: true },
  search: { type: "string" },
};

const valuesOf = (args: Arguments, given: JsonObject): unknown => {
  const result = validateArguments(args, given);
  return result.ok ? { ...result.sanitised() } : result;
};

const refused = (args: Arguments, given: JsonObject): Exclude<ArgumentsResult, { ok: true }> => {
  const result = validateArguments(args, given);
  if (result.ok) throw new Error("It was accepted.");
  return result;
};

const invalidNames = (args: Arguments, given: JsonObject): string[] => {
  const result = refused(args, given);
  return result.code === "rest_invalid_param" ? Object.keys(result.params).sort() : [];
};

describe("the arguments of a request", () => {
  it("are coerced, and completed with coerced defaults", () => {
    expect(valuesOf(LIST, { page: "2", include: "1,2", search: "x" })).toEqual({
      context: "view",
      page: 2,
      per_page: 10,
      order: "desc",
      include: [1, 2],
      status: ["publish"],
      search: "x",
    });
  });

  it("contain no others, and nothing that is inherited", () => {
    const args: Arguments = { constructor: { type: "string" }, a: { type: "string" } } as Arguments;
    const result = validateArguments(args, { b: "1" });
    expect(result).toEqual({ ok: true, values: {}, sanitised: expect.any(Function) });
    expect(result.ok && Object.getPrototypeOf(result.values)).toBeNull();
  });

  it("may have names of JavaScript's inheritance", () => {
    const args = JSON.parse('{"__proto__": {"type": "integer"}}') as Arguments;
    const result = validateArguments(args, JSON.parse('{"__proto__": "1"}') as JsonObject);
    expect(result.ok && Object.entries(result.values)).toEqual([["__proto__", 1]]);
  });

  it("are all reported if they are invalid, with WordPress's codes", () => {
    expect(refused(LIST, { page: "x", per_page: 500, search: [] })).toEqual({
      ok: false,
      code: "rest_invalid_param",
      params: {
        page: "page is not of type integer.",
        per_page: "per_page must be at least 1 and at most 100.",
        search: "search is not of type string.",
      },
      details: {
        page: { code: "rest_invalid_type", message: "page is not of type integer.", data: { param: "page" } },
        per_page: {
          code: "rest_out_of_bounds",
          message: "per_page must be at least 1 and at most 100.",
          data: null,
        },
        search: {
          code: "rest_invalid_type",
          message: "search is not of type string.",
          data: { param: "search" },
        },
      },
    });
  });

  it("are looked at late only when the others are valid", () => {
    expect(invalidNames(LIST, { page: 0, per_page: 500, order: "x", include: "y" })).toEqual([
      "page",
      "per_page",
    ]);
    expect(invalidNames(LIST, { page: 1, order: "x", include: "y" })).toEqual(["include", "order"]);
  });

  it("are reported first and alone when they are missing", () => {
    const args: Arguments = {
      src: { type: "string", required: true },
      requests: { type: "array", required: true },
      mode: { type: "string", enum: ["a"], required: true, default: "a" },
      page: { type: "integer" },
    };
    expect(refused(args, { page: "x", requests: null })).toEqual({
      ok: false,
      code: "rest_missing_callback_param",
      missing: ["src", "requests"],
    });
    expect(valuesOf(args, { src: "", requests: [] })).toEqual({ src: "", requests: [], mode: "a" });
  });

  it("are empty for null, but refuse it when they are late", () => {
    const args: Arguments = {
      slug: { type: "string", enum: ["x"], default: "x" },
      author: { type: "integer", minimum: 1 },
      tags: { type: "array" },
      date: { type: ["string", "null"] },
      checked: { type: "string", validate: () => ({ code: "never", message: "Never." }) },
    };
    const nothing = { slug: null, author: null, tags: null, date: null, checked: null };
    expect(valuesOf(args, nothing)).toEqual({ slug: "", author: 0, tags: [], date: null, checked: "" });
    expect(invalidNames({ force: { type: "boolean", late: true } }, { force: null })).toEqual(["force"]);
  });

  it("keep a default of null", () => {
    expect(valuesOf({ post: { type: "integer", default: null } }, {})).toEqual({ post: null });
  });
});

describe("an argument with rules of its own", () => {
  it("is checked by its own function instead of the schema, which sees every argument", () => {
    const seen: unknown[] = [];
    const args: Arguments = {
      status: {
        type: "string",
        enum: ["draft"],
        validate: (value, name, given) => {
          seen.push([value, name, given["id"]]);
          return value === "trash" ? undefined : { code: "rest_custom", message: `${name} is wrong.` };
        },
      },
    };
    expect(valuesOf(args, { id: 5, status: "trash" })).toEqual({ status: "trash" });
    expect(seen).toEqual([["trash", "status", 5]]);
    expect(refused(args, { status: "draft" })).toMatchObject({
      params: { status: "status is wrong." },
      details: { status: { code: "rest_custom", data: null } },
    });
  });

  it("is coerced by the schema after its own check, and stays as it is where it does not fit", () => {
    const anything: Argument = { type: "integer", validate: () => undefined };
    expect(valuesOf({ a: anything, b: anything }, { a: "5", b: "x" })).toEqual({ a: 5, b: "x" });
  });

  it("has no details when its check says no more than no", () => {
    const args: Arguments = {
      meta: { type: "object", validate: () => ({ code: "", message: "Invalid parameter." }) },
    };
    expect(refused(args, { meta: "x" })).toEqual({
      ok: false,
      code: "rest_invalid_param",
      params: { meta: "Invalid parameter." },
      details: {},
    });
  });

  it("is sanitised instead of coerced, a default too, once everything is valid and the caller may go on", () => {
    const sanitised: Json[] = [];
    const sanitize = (value: Json): Json => {
      sanitised.push(value);
      return [value];
    };
    const args: Arguments = {
      a: { type: "string", sanitize },
      b: { type: "string", default: "d", sanitize },
      c: { type: "string", sanitize },
      n: { type: "integer", late: true },
    };
    expect(invalidNames(args, { a: "1", n: "x" })).toEqual(["n"]);
    expect(invalidNames(args, { a: 1 })).toEqual(["a"]);
    const read = validateArguments(args, { a: "1", n: "2" });
    expect(read.ok && { ...read.values }).toEqual({ a: "1", b: "d", n: 2 });
    expect(sanitised).toEqual([]);
    expect(valuesOf(args, { a: "1", n: "2" })).toEqual({ a: ["1"], b: ["d"], n: 2 });
  });

  it("may be given an object that looks like a problem", () => {
    const args: Arguments = { meta: { type: "object", sanitize: (value) => value } };
    const meta = { code: "x", message: "y" };
    expect(valuesOf(args, { meta })).toEqual({ meta });
  });
});

describe("the description of arguments", () => {
  it("is plain data with the keywords of the schema", () => {
    const args: Arguments = {
      status: {
        description: "Which.",
        type: "array",
        items: { type: "string", enum: ["publish"], context: ["view"] },
        default: "publish",
        context: ["view"],
        readonly: false,
        late: true,
        sanitize: (value) => value,
        validate: () => undefined,
      },
      src: { type: "string", format: "uri", required: true },
      tags: {
        type: ["object", "array"],
        oneOf: [
          { type: "array", items: { type: "integer" } },
          {
            type: "object",
            properties: { terms: { type: "array", default: [] } },
            additionalProperties: false,
          },
        ],
      },
    };
    expect(describeArguments(args)).toStrictEqual({
      status: {
        description: "Which.",
        type: "array",
        items: { type: "string", enum: ["publish"], context: ["view"] },
        default: "publish",
        required: false,
      },
      src: { type: "string", format: "uri", required: true },
      tags: {
        type: ["object", "array"],
        oneOf: [
          { type: "array", items: { type: "integer" } },
          {
            type: "object",
            properties: { terms: { type: "array", default: [] } },
            additionalProperties: false,
          },
        ],
        required: false,
      },
    });
  });

  it("of a schema leaves functions out all the way down", () => {
    const member: Argument = { type: "integer", readonly: true, minimum: 0, validate: () => undefined };
    const schema = {
      title: "post",
      type: "object",
      properties: { id: member },
      additionalProperties: { anyOf: [member] },
      required: ["id"],
    } as const;
    const id = { type: "integer", readonly: true, minimum: 0 };
    expect(describeSchema(schema)).toStrictEqual({
      title: "post",
      type: "object",
      properties: { id },
      additionalProperties: { anyOf: [id] },
      required: ["id"],
    });
  });
});
