import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ResourceText, serialiseResource } from "../../../src/webhooks/events/resource-text.js";

function textOf(value: unknown): ResourceText {
  const read = serialiseResource(value);
  if ("problem" in read) throw new Error(read.problem);
  return read;
}

/** Every `reference` with a string, found the slow way. */
function walk(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]: [string, unknown]) =>
    key === "reference" && typeof item === "string" ? [item] : walk(item),
  );
}

const nasty = fc.constantFrom(
  "reference",
  'x"reference',
  '"reference":"Patient/1"',
  '\\"reference\\":\\"',
  'reference":"',
  "\\",
  '\\\\"',
  '"',
  "{[",
  "]}",
  "referenc",
  "references",
  "id",
  "resourceType",
  "\u2028",
  "\ud800",
  "文",
);
const text = fc.oneof(
  nasty,
  fc.string(),
  fc.array(nasty).map((parts) => parts.join("")),
);
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 5 },
    text,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("json"), { maxLength: 4 }),
    fc.dictionary(text, tie("json"), { maxKeys: 5, noNullPrototype: true }),
    fc.record({ reference: text }),
  ),
}));

describe("the references of a resource", () => {
  it("are found in its text exactly where a walk through the object finds them", () => {
    fc.assert(
      fc.property(fc.dictionary(text, json, { maxKeys: 6 }), text, (members, id) => {
        const resource = { ...members, resourceType: "Basic", id: `i${id}` };
        const read = textOf(resource);
        expect(read).toMatchObject({ resourceType: "Basic", id: `i${id}`, text: JSON.stringify(resource) });
        expect(read.references.map(({ reference }) => reference)).toEqual(walk(JSON.parse(read.text)));
        for (const { reference, start, end } of read.references) {
          expect(JSON.parse(`"${read.text.slice(start, end)}"`)).toBe(reference);
          expect(read.text.slice(start - 1, start) + read.text.slice(end, end + 1)).toBe('""');
        }
      }),
      { numRuns: 500 },
    );
  });

  it("are only those with a string", () => {
    const resource = {
      resourceType: "Consent",
      reference: { reference: "Patient/1" },
      a: [{ reference: 7 }, { reference: null }],
    };
    expect(textOf(resource).references.map(({ reference }) => reference)).toEqual(["Patient/1"]);
  });

  it("are found in contained resources and extensions too", () => {
    const resource = {
      resourceType: "Patient",
      contained: [
        { resourceType: "Practitioner", id: "p", managingOrganization: { reference: "Organization/1" } },
      ],
      extension: [{ url: "x", valueReference: { reference: "Group/2" } }],
    };
    const read = textOf(resource);
    expect(read.references.map(({ reference }) => reference)).toEqual(["Organization/1", "Group/2"]);
    expect(read.id).toBeUndefined();
  });
});

describe("a value that is no resource", () => {
  const cyclic: Record<string, unknown> = { resourceType: "Patient" };
  cyclic["self"] = cyclic;
  const deep = (levels: number): unknown => {
    let value: unknown = 1;
    for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
    return value;
  };
  const throwing = {
    resourceType: "Patient",
    get name(): string {
      throw new Error("secret of the host");
    },
  };
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();

  it.each([
    ["undefined", undefined, undefined],
    ["null", null, undefined],
    ["a string", "Patient/1", undefined],
    ["JSON text", '{"resourceType":"Patient"}', undefined],
    ["a list", [{ resourceType: "Patient" }], undefined],
    ["a function", () => ({ resourceType: "Patient" }), undefined],
    ["a symbol", Symbol("Patient"), undefined],
    ["a BigInt", 1n, undefined],
    ["a date", new Date(0), undefined],
    ["a cycle", cyclic, undefined],
    ["a BigInt within", { resourceType: "Patient", size: 1n }, undefined],
    ["a getter that throws", throwing, undefined],
    ["a revoked proxy", proxy, undefined],
    [
      "toJSON that gives a string",
      { resourceType: "Patient", toJSON: () => '{"resourceType":"Patient"}' },
      undefined,
    ],
    ["toJSON that gives nothing", { resourceType: "Patient", toJSON: () => undefined }, undefined],
    ["two hundred levels and one", { resourceType: "Patient", a: deep(200) }, undefined],
    ["a million levels", { resourceType: "Patient", a: deep(1_000_000) }, undefined],
    ["no resource type", {}, "resourceType"],
    ["a resource type further down", { a: { resourceType: "Patient" } }, "resourceType"],
    [
      "toJSON that gives an object without one",
      new (class {
        toJSON = () => ({});
      })(),
      "resourceType",
    ],
    ["a resource type that is a number", { resourceType: 1 }, "resourceType"],
    ["a resource type that is no name", { resourceType: "Patient/1" }, "resourceType"],
    ["an empty resource type", { resourceType: "" }, "resourceType"],
    ["an id that is a number", { resourceType: "Patient", id: 1 }, "id"],
    ["an id that is null", { resourceType: "Patient", id: null }, "id"],
    ["an id that is an object", { resourceType: "Patient", id: { id: "1" } }, "id"],
    ["an empty id", { resourceType: "Patient", id: "" }, "id"],
  ])("is told with its reason: %s", (_, value, element) => {
    const read = serialiseResource(value);
    expect(read).toHaveProperty("problem");
    expect(read).not.toHaveProperty("text");
    expect((read as { element?: string }).element).toBe(element);
  });

  it("does not lend its own error message to ours", () => {
    expect((serialiseResource(throwing) as { problem: string }).problem).not.toContain("secret");
  });

  it("is told for whatever there may be, without a throw", () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true, withMap: true }),
        (value) => {
          expect(serialiseResource(value)).toBeTypeOf("object");
        },
      ),
    );
  });

  it("ends at two hundred levels, not before", () => {
    expect(textOf({ resourceType: "Patient", a: deep(199) }).resourceType).toBe("Patient");
  });
});

describe("a resource with toJSON", () => {
  it("is what toJSON gives, called once", () => {
    let calls = 0;
    const resource = {
      toJSON: () => {
        calls += 1;
        return { resourceType: "Patient", id: `${calls}` };
      },
    };
    expect(textOf(resource)).toMatchObject({ text: '{"resourceType":"Patient","id":"1"}', id: "1" });
    expect(calls).toBe(1);
  });
});

describe("a huge resource", () => {
  it("is read in time that grows with its length only", () => {
    const strings = {
      resourceType: "Basic",
      a: '\\"'.repeat(500_000),
      b: Array(100_000).fill({ reference: "A/1" }),
    };
    const read = textOf(strings);
    expect(read.references).toHaveLength(100_000);
  });
});
