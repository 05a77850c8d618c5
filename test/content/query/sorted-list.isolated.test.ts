/** Lists kept in order, in chunks, and pages out of several of them. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countBefore, SortedList, slicePage } from "../../../src/content/query/sorted-list.js";

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
          const list = new SortedList(before);
          list.change(ascending, removed, added);
          expect(list.slice()).toEqual(
            [...before.filter((item) => !removed.includes(item)), ...added].sort(ascending),
          );
        },
      ),
    );
  });

  it("of thousands of items is what an array would be after any number of changes", () => {
    // Few items of many chunks, so that chunks are split, emptied and put together.
    const change = fc.record({
      from: fc.nat({ max: 9_000 }),
      count: fc.nat({ max: 900 }),
      isIn: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12, size: "max" }), fc.boolean(), (changes, isOneByOne) => {
        const model = new Set<number>();
        const list = new SortedList<number>();
        for (const { from, count, isIn } of changes) {
          const items = Array.from({ length: count }, (_, place) => from + place).filter(
            (item) => model.has(item) !== isIn,
          );
          for (const item of items) if (isIn) model.add(item);
          if (!isIn) for (const item of items) model.delete(item);
          for (const part of isOneByOne ? items.map((item) => [item]) : [items])
            list.change(ascending, isIn ? [] : part, isIn ? part : []);
          const expected = [...model].sort(ascending);
          expect(list).toHaveLength(expected.length);
          expect(list.slice()).toEqual(expected);
          for (const place of [0, 1, 511, 512, 700, expected.length - 1, expected.length])
            expect(list.at(place)).toBe(place < 0 ? undefined : expected[place]);
          expect(list.slice(from, from + count)).toEqual(expected.slice(from, from + count));
          expect(countBefore(list, (item) => item < from)).toBe(
            expected.filter((item) => item < from).length,
          );
        }
      }),
    );
  });

  it("moves few items for a change, however long it is", () => {
    const list = new SortedList(Array.from({ length: 60_000 }, (_, item) => item * 2));
    const moved = (work: () => void): number => {
      const { splice } = Array.prototype;
      let items = 0;
      Array.prototype.splice = function counting(this: unknown[], ...given: [number, number]) {
        items += this.length - given[0];
        return splice.apply(this, given);
      };
      try {
        work();
      } finally {
        Array.prototype.splice = splice;
      }
      return items;
    };
    expect(moved(() => list.change(ascending, [], [1]))).toBeLessThan(2_000);
    expect(moved(() => list.change(ascending, [60_000], [60_001]))).toBeLessThan(2_000);
    expect(list.slice(0, 3)).toEqual([0, 1, 2]);
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
          expect(slicePage(split(items, count), ascending, offset, limit)).toEqual(
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
    expect(slicePage(lists, counting, 30_000, 3)).toEqual([30_000, 30_001, 30_002]);
    expect(comparisons).toBeLessThan(3_000);
  });
});
