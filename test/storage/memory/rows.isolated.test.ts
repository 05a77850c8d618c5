/** The rows behind the pages of the memory storage, against a plain list. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { Rows } from "../../../storage/memory/collections.js";
import { heapUsed } from "../../support/heap.js";

interface Row {
  readonly id: string;
  readonly order: number;
}

const NEVER_ADDED: Row = { id: "never added", order: 2 };

const command = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("add" as const), gap: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete" as const), place: fc.nat(200) }) },
);

test("pages start at any place, in either direction, after any removals", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 250, size: "max" }), (commands) => {
      const table = new Rows<Row>();
      let list: Row[] = [];
      let order = 0;
      for (const step of commands) {
        if (step.kind === "add") {
          order += step.gap;
          const row = { id: `row ${order}`, order };
          table.add(row);
          list.push(row);
        } else {
          const row = list[step.place % Math.max(1, list.length)] ?? NEVER_ADDED;
          table.delete(row);
          table.delete(row);
          list = list.filter((other) => other !== row);
        }
        expect(table.size).toBe(list.length);
      }
      for (const at of [0, 1, order >> 1, order - 1, order, order + 1, Number.POSITIVE_INFINITY]) {
        expect([...table.after(at)]).toEqual(list.filter((row) => row.order > at));
        expect([...table.before(at)]).toEqual(list.filter((row) => row.order < at).reverse());
      }
      const found = Array.from({ length: order + 1 }, (_, at) => table.get(`row ${at}`));
      expect(found.filter((row) => row !== undefined)).toEqual(list);
    }),
    { numRuns: 100 },
  );
});

test("an iteration skips rows that are deleted meanwhile, and sees all others", () => {
  for (const walk of ["after", "before"] as const) {
    const table = new Rows<Row>();
    const list = Array.from({ length: 200 }, (_, index) => ({ id: String(index), order: index + 1 }));
    for (const row of list) table.add(row);
    const seen: number[] = [];
    for (const row of walk === "after" ? table.after(0) : table.before(Number.POSITIVE_INFINITY)) {
      seen.push(row.order);
      for (const other of list) if (other.order % 4 !== row.order % 4) table.delete(other);
    }
    const kept = list.filter(({ order }) => order % 4 === (seen[0] ?? 0) % 4).map(({ order }) => order);
    expect(seen).toEqual(walk === "after" ? kept : kept.reverse());
  }
});

test("added and deleted rows leave nothing on the heap", () => {
  const table = new Rows<Row>();
  const before = heapUsed();
  for (let order = 1; order <= 300_000; order++) {
    const row = { id: String(order), order };
    table.add(row);
    table.delete(row);
  }
  const grown = heapUsed() - before;
  expect(table.size).toBe(0);
  expect(grown).toBeLessThan(1_000_000);
});
