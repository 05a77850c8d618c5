/** Arrays kept in order, and pages out of several of them. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changeSorted, countBefore, pageOf } from "../src/content/query/sorted-list.js";

const ascending = (a: number, b: number): number => a - b;
const numbers = (maxLength: number) =>
  fc.uniqueArray(fc.nat({ max: 500 }), { maxLength, size: "max" }).map((list) => list.sort(ascending));

describe("a sorted list", () => {
  it("holds what it held, without the removed and with the added, in order, be they few or many", () => {
    fc.assert(
      fc.property(
        numbers(120),
        fc.uniqueArray(fc.nat({ max: 500 }), { maxLength: 80, size: "max" }),
        (before, changed) => {
          const removed = changed.filter((item) => before.includes(item));
          const added = changed.filter((item) => !before.includes(item));
          const list = [...before];
          changeSorted(list, ascending, removed, added);
          expect(list).toEqual(
            [...before.filter((item) => !removed.includes(item)), ...added].sort(ascending),
          );
        },
      ),
    );
  });

  it("counts the items before a bound", () => {
    fc.assert(
      fc.property(numbers(60), fc.nat({ max: 500 }), (list, bound) => {
        expect(countBefore(list, (item) => item < bound)).toBe(list.filter((item) => item < bound).length);
      }),
    );
  });
});

describe("a page of several lists", () => {
  const split = (items: readonly number[], count: number): number[][] =>
    Array.from({ length: count }, (_, list) => items.filter((item) => (item * 7) % count === list));

  it("is the page of all items together, at every offset and for any number of lists", () => {
    fc.assert(
      fc.property(
        numbers(200),
        fc.integer({ min: 1, max: 40 }),
        fc.nat({ max: 220 }),
        fc.nat({ max: 30 }),
        (items, count, offset, limit) => {
          expect(pageOf(split(items, count), ascending, offset, limit)).toEqual(
            items.slice(offset, offset + limit),
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  it("looks at few items, however far the page is from the start", () => {
    const lists = split(
      Array.from({ length: 60_000 }, (_, item) => item),
      3,
    );
    let comparisons = 0;
    const counting = (a: number, b: number): number => {
      comparisons += 1;
      return a - b;
    };
    expect(pageOf(lists, counting, 30_000, 3)).toEqual([30_000, 30_001, 30_002]);
    expect(comparisons).toBeLessThan(3_000);
  });
});
