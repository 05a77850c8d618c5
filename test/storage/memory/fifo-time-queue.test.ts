/** The queue by time behind the memory storage, against a sorted array. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { FifoTimeQueue, type Queued } from "../../../storage/memory/collections.js";

interface Item extends Queued<Item> {
  readonly name: number;
}

const createItem = (name: number): Item => ({
  name,
  place: null,
  queuedAt: 0,
  turn: 0,
  previous: null,
  next: null,
});

const ITEMS = 20;

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("add" as const, "addOutOfOrder" as const),
      item: fc.nat(ITEMS - 1),
      at: fc.integer({ min: -5, max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const), item: fc.nat(ITEMS - 1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("pop" as const) }) },
);

test("it behaves like a sorted array, with items added and removed in any order", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 150 }), (commands) => {
      const queue = new FifoTimeQueue<Item>();
      const items = Array.from({ length: ITEMS }, (_, name) => createItem(name));
      let entries: { readonly item: Item; readonly at: number }[] = [];
      const remove = (item: Item | undefined): void => {
        if (item === undefined) return;
        queue.delete(item);
        entries = entries.filter((entry) => entry.item !== item);
        // A link that is left would keep other items on the heap.
        expect(item).toMatchObject({ place: null, previous: null, next: null });
      };
      for (const step of commands) {
        const item = step.kind === "pop" ? queue.head() : items[step.item];
        remove(item);
        if (item !== undefined && (step.kind === "add" || step.kind === "addOutOfOrder")) {
          queue[step.kind](item, step.at);
          entries.push({ item, at: step.at });
        }
        const [first] = entries.toSorted((a, b) => a.at - b.at);
        expect(queue.size).toBe(entries.length);
        expect(queue.head()).toBe(first?.item);
        expect(queue.headAt()).toBe(first?.at);
      }
      for (const { at } of entries) {
        const early = entries.filter((entry) => entry.at <= at).map(({ item }) => item.name);
        expect(new Set(Array.from(queue.until(at), ({ name }) => name))).toEqual(new Set(early));
        expect([...queue.until(at)]).toHaveLength(early.length);
      }
      for (const { item } of entries.toSorted((a, b) => a.at - b.at)) {
        expect(queue.head()).toBe(item);
        queue.delete(item);
      }
      expect(queue.head()).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});
