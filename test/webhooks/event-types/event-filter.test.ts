/** Filters: the conditions of a webhook on the data of events. */

import { describe, expect, it } from "vitest";
import {
  type EventFilter,
  passesFilter,
  readFilter,
} from "../../../src/webhooks/event-types/event-filter.js";
import { createFilterTest } from "../../../src/webhooks/events/notification.js";

/** Data as it comes out of the storage: `__proto__` is then a property like others. */
const DATA: unknown = JSON.parse(
  `{ "amount": 100, "kind": "a", "note": null, "isPaid": true, "zero": 0, "empty": "",
    "items": [{ "sku": "x-1" }, { "sku": "y-2" }], "constructor": { "name": "mine" }, "__proto__": { "is": 1 },
    "a b": { "größe": 1.5 } }`,
);

const HOLDS: readonly (readonly [EventFilter, boolean])[] = [
  [{ "data.amount": { eq: 100 } }, true],
  [{ "data.amount": { eq: "100" } }, false],
  [{ "data.isPaid": { eq: true } }, true],
  [{ "data.isPaid": { eq: 1 } }, false],
  [{ "data.note": { eq: null } }, true],
  [{ "data.missing": { eq: null } }, false],
  [{ "data.zero": { eq: false } }, false],
  [{ "data.kind": { in: ["b", "a"] } }, true],
  [{ "data.kind": { in: ["b", 1, null] } }, false],
  [{ "data.missing": { in: [null] } }, false],
  [{ "data.items": { in: ["[object Object]"] } }, false],
  [{ "data.amount": { gt: 99.5 } }, true],
  [{ "data.amount": { gt: 100 } }, false],
  [{ "data.amount": { gte: 100 } }, true],
  [{ "data.amount": { lt: 100 } }, false],
  [{ "data.amount": { lte: 100 } }, true],
  [{ "data.amount": { gte: 50, lt: 100 } }, false],
  [{ "data.amount": { gt: "1" } }, false],
  [{ "data.isPaid": { gte: 1 } }, false],
  [{ "data.note": { gte: 0 } }, false],
  [{ "data.kind": { gt: "A", lt: "b" } }, true],
  [{ "data.kind": { prefix: "" } }, true],
  [{ "data.items.1.sku": { prefix: "y-" } }, true],
  [{ "data.items.1.sku": { prefix: "x" } }, false],
  [{ "data.amount": { prefix: "1" } }, false],
  [{ "data.items": { exists: true } }, true],
  [{ "data.note": { exists: true } }, true],
  [{ "data.note": { exists: false } }, false],
  [{ "data.note.deep": { exists: false } }, true],
  [{ "data.missing": { exists: false } }, true],
  [{ "data.missing": { exists: false, prefix: "a" } }, false],
  [{ "data.a b.größe": { gt: 1 } }, true],
  [{ data: { exists: true } }, true],
  [{ "data.amount": { gte: 100 }, "data.kind": { eq: "b" } }, false],
  // Only properties of the data itself, and no length of lists and texts.
  [{ "data.toString": { exists: true } }, false],
  [{ "data.constructor.name": { eq: "mine" } }, true],
  [{ "data.items.constructor": { exists: true } }, false],
  [{ "data.items.length": { exists: true } }, false],
  [{ "data.kind.length": { exists: true } }, false],
  [{ "data.kind.0": { exists: true } }, false],
  [{ "data.items.-1": { exists: true } }, false],
];

describe("a filter", () => {
  it.each(HOLDS)("%j passes the data: %s", (filter, passes) => {
    expect(passesFilter(readFilter(filter) ?? {}, DATA)).toBe(passes);
  });

  it("reads nothing of an object that the host's process has extended", () => {
    const prototype = Object.prototype as { extended?: number };
    prototype.extended = 1;
    try {
      expect(passesFilter({ "data.extended": { exists: true } }, DATA)).toBe(false);
    } finally {
      delete prototype.extended;
    }
  });

  it("passes stored events without data, and those that cannot be read", () => {
    const filter: EventFilter = { "data.kind": { eq: "b" } };
    expect(createFilterTest({ payload: '{"v":2}\n{"kind":"a"}' })(filter)).toBe(false);
    expect(createFilterTest({ payload: '{"v":2}\n{"kind":"b"}' })(filter)).toBe(true);
    for (const payload of ['{"v":1}\n{"kind":"a"}', '{"v":2}\n{', '{"kind":"a"}', ""])
      expect(createFilterTest({ payload })(filter)).toBe(true);
  });

  it("is read with its paths and operators in one order, and frozen", () => {
    const list = ["a"];
    const read = readFilter({ "data.b": { lt: 2, gt: 1 }, "data.a": { in: list } });
    list.push("b");
    expect(JSON.stringify(read)).toBe('{"data.a":{"in":["a"]},"data.b":{"gt":1,"lt":2}}');
    expect(Object.isFrozen(read) && Object.values(read ?? {}).every((one) => Object.isFrozen(one))).toBe(
      true,
    );
    expect(readFilter(null)).toBeNull();
  });
});

const many = (count: number, value: unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`data.k${index}`, value]));

describe("a filter is refused", () => {
  it.each<[what: string, filter: unknown, message: RegExp]>([
    ["as a text", "data.a", /must be an object of conditions by path/],
    ["as a list", [{}], /must be an object of conditions by path/],
    ["as a map", new Map([["data.a", { eq: 1 }]]), /must be an object of conditions by path/],
    ["without a path", {}, /1 to 20 paths \(got 0\)/],
    ["with 21 paths", many(21, { eq: 1 }), /1 to 20 paths \(got 21\)/],
    ["with 22 operators", many(11, { gt: 1, lt: 2 }), /at most 20 operators in all \(got 22\)/],
    ["outside the data", { type: { eq: "x" } }, /filter\['type'\] is not a path/],
    ["of another field", { "database.a": { eq: 1 } }, /is not a path/],
    ["with an empty part", { "data..a": { eq: 1 } }, /is not a path/],
    ["that ends with a dot", { "data.": { eq: 1 } }, /is not a path/],
    ["with eleven parts", { "data.1.2.3.4.5.6.7.8.9.10": { eq: 1 } }, /at most 10 parts/],
    ["with a path of 129 characters", { [`data.${"x".repeat(124)}`]: { eq: 1 } }, /128 characters/],
    ["with a lone surrogate", { "data.\ud800": { eq: 1 } }, /is not a path/],
    ["with NUL", { "data.\u0000": { eq: 1 } }, /is not a path/],
    ["of a prototype", JSON.parse('{"data.__proto__.a":{"eq":1}}'), /without __proto__/],
    ["without operators", { "data.a": {} }, /needs an operator: eq, in, gt, gte, lt, lte, exists, prefix/],
    ["with a value for a condition", { "data.a": 1 }, /must be an object of operators/],
    ["with an unknown operator", { "data.a": { ne: 1 } }, /has no operator "ne"/],
    ["with an inherited operator", { "data.a": { constructor: 1 } }, /has no operator "constructor"/],
    ["with an object", { "data.a": { eq: {} } }, /has eq, which must be null, true, false/],
    ["with NaN", { "data.a": { eq: Number.NaN } }, /has eq, which must be/],
    ["with a text of 257 characters", { "data.a": { eq: "x".repeat(257) } }, /at most 256 characters/],
    ["with an empty list", { "data.a": { in: [] } }, /has in, which must be a list of 1 to 100/],
    ["with a list of 101 values", { "data.a": { in: Array(101).fill(1) } }, /a list of 1 to 100/],
    ["with a hole in a list", { "data.a": { in: Array(3) } }, /a list of 1 to 100/],
    ["with a list in a list", { "data.a": { in: [[1]] } }, /a list of 1 to 100/],
    ["with a boolean to compare", { "data.a": { gt: true } }, /has gt, which must be a number or a string/],
    ["with Infinity", { "data.a": { lte: Number.POSITIVE_INFINITY } }, /has lte, which must be/],
    ["with exists as a number", { "data.a": { exists: 1 } }, /has exists, which must be true or false/],
    ["with prefix as a number", { "data.a": { prefix: 1 } }, /has prefix, which must be a string/],
    ["with undefined", { "data.a": { eq: undefined } }, /has eq, which must be/],
  ])("%s", (_, filter, message) => {
    expect(() => readFilter(filter)).toThrow(message);
    expect(() => readFilter(filter)).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });

  it("with a long path, and the error quotes only its beginning", () => {
    const path = `data.${"x".repeat(100_000)}`;
    const read = (): unknown => readFilter({ [path]: { eq: 1 } });
    expect(read).toThrow(expect.objectContaining({ field: `filter['${path.slice(0, 128)}']` }));
    expect(read).toThrow(/^filter.{0,400}$/);
  });
});
