/** The comparison of two texts line by line: complete, in order, and as short as it can be. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasSameLines, pairLines } from "../../../src/portal/app/content/records.js";

const text = fc
  .array(fc.constantFrom("a", "b", "c", "d", ""), { maxLength: 14 })
  .map((lines) => lines.join("\n"));

const linesOf = (whole: string): readonly string[] => (whole === "" ? [] : whole.split("\n"));

/** Of a longest common subsequence, by the table that everybody knows. */
function longestCommon(a: readonly string[], b: readonly string[]): number {
  const best = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  const at = (x: number, y: number): number => best[x]?.[y] ?? 0;
  for (let x = 1; x <= a.length; x += 1) {
    for (let y = 1; y <= b.length; y += 1) {
      const row = best[x] as number[];
      row[y] = a[x - 1] === b[y - 1] ? at(x - 1, y - 1) + 1 : Math.max(at(x - 1, y), at(x, y - 1));
    }
  }
  return at(a.length, b.length);
}

describe("pairLines", () => {
  it("pairs a changed line with the one in its place, and leaves a gap if there is no such line", () => {
    expect(pairLines("one\ntwo\nthree", "one\n2\nthree\nfour")).toEqual([
      { left: "one", right: "one" },
      { left: "two", right: "2" },
      { left: "three", right: "three" },
      { left: null, right: "four" },
    ]);
    expect(pairLines("", "new")).toEqual([{ left: null, right: "new" }]);
    expect(pairLines("", "")).toEqual([]);
  });

  it("holds every line of both texts once and in order, and matches as many as can be", () => {
    fc.assert(
      fc.property(text, text, (left, right) => {
        const rows = pairLines(left, right);
        expect(rows.flatMap((row) => row.left ?? [])).toEqual(linesOf(left));
        expect(rows.flatMap((row) => row.right ?? [])).toEqual(linesOf(right));
        const same = rows.filter((row) => row.left === row.right).length;
        expect(same).toBeGreaterThanOrEqual(longestCommon(linesOf(left), linesOf(right)));
      }),
    );
  });

  it("does not match two long texts that have little in common, except where they begin", () => {
    const lines = (prefix: string): string =>
      ["begin", ...Array.from({ length: 20_000 }, (_, index) => `${prefix} ${index}`)].join("\n");
    const rows = pairLines(lines("left"), lines("right"));
    expect(rows).toHaveLength(20_001);
    expect(rows.filter(({ left, right }) => left === right)).toEqual([{ left: "begin", right: "begin" }]);
  });

  it("does not take the ends of lines of two systems for a difference", () => {
    expect(pairLines("a\r\nb", "a\nb").every(({ left, right }) => left === right)).toBe(true);
    expect(hasSameLines("a\r\nb", "a\nb")).toBe(true);
    expect(hasSameLines("a\n", "a")).toBe(false);
  });
});
