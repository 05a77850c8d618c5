/** The time queue against a sorted array. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { createTimeQueue } from "../../src/core/time-queue.js";

const ABSENT = -1;

interface Entry {
  readonly item: number;
  readonly at: number;
}

/**
 * A model of the queue: entries in the order in which they were set, sorted by time (a stable
 * sort).
 */
const sorted = (entries: readonly Entry[]): Entry[] => [...entries].sort((a, b) => a.at - b.at);

const command = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("set" as const),
      item: fc.nat(20),
      at: fc.integer({ min: -5, max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const), item: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("pop" as const) }) },
);

test("it does what a sorted array does, with items added, moved and removed in any order", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 120 }), (commands) => {
      const queue = createTimeQueue<number>();
      let entries: Entry[] = [];
      const drop = (item: number): boolean => {
        const isThere = entries.some((entry) => entry.item === item);
        entries = entries.filter((entry) => entry.item !== item);
        return isThere;
      };
      for (const step of commands) {
        const item = step.kind === "pop" ? (queue.head() ?? ABSENT) : step.item;
        const isThere = queue.at(item) !== undefined;
        const dropped = drop(item);
        const removed = step.kind === "set" ? isThere : queue.delete(item);
        if (step.kind === "set") {
          queue.set(item, step.at);
          entries.push({ item, at: step.at });
        }
        expect(removed).toBe(dropped);
        const [first] = sorted(entries);
        expect(queue.size).toBe(entries.length);
        expect(queue.head()).toBe(first?.item);
        expect(queue.headAt()).toBe(first?.at);
      }
      for (let item = 0; item <= 20; item++) {
        expect(queue.at(item)).toBe(entries.find((entry) => entry.item === item)?.at);
      }
      for (const { at } of entries) {
        const early = entries.filter((entry) => entry.at <= at).map(({ item }) => item);
        expect(new Set(queue.until(at))).toEqual(new Set(early));
        expect([...queue.until(at)]).toHaveLength(early.length);
      }
      for (const { item } of sorted(entries)) {
        expect(queue.head()).toBe(item);
        queue.delete(item);
      }
      expect(queue.head()).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("items of one time come out in the order in which they were set", () => {
  const queue = createTimeQueue<string>();
  for (const item of ["a", "b", "c", "d"]) queue.set(item, 5);
  queue.set("a", 5);
  const order: string[] = [];
  for (let head = queue.head(); head !== undefined; head = queue.head()) {
    order.push(head);
    queue.delete(head);
  }
  expect(order).toEqual(["b", "c", "d", "a"]);
});

test("removing what is not there says so", () => {
  const queue = createTimeQueue<string>();
  expect(queue.delete("a")).toBe(false);
  queue.set("a", 1);
  expect([queue.delete("a"), queue.delete("a")]).toEqual([true, false]);
});
