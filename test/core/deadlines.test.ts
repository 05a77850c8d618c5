/** Many deadlines on one timer: when they are called, and what they cost the clock. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { createDeadlines, type Deadline } from "../../src/core/clock.js";
import { manualClock } from "../../src/testing/index.js";

const EVERY_MS = 50;

/** A manual clock that counts the timers set on it, and deadlines that share them. */
function start(everyMs?: number) {
  const manual = manualClock(0);
  let timers = 0;
  const clock = {
    ...manual,
    setTimeout(callback: () => void, ms: number) {
      timers += 1;
      return manual.setTimeout(callback, ms);
    },
  };
  const deadlines = createDeadlines(clock, { everyMs });
  const called: [string, number][] = [];
  const add = (name: string, at: number): Deadline =>
    deadlines.add(at, () => called.push([name, clock.monotonic()]));
  return { clock, deadlines, called, add, timersSet: () => timers };
}

test("a deadline alone is called once, when its time has come", async () => {
  const { clock, called, add } = start();
  add("a", 15_000);
  await clock.advance(14_999);
  expect(called).toEqual([]);
  await clock.advance(1);
  expect(called).toEqual([["a", 15_000]]);
  await clock.advance(100_000);
  expect(called).toHaveLength(1);
});

test("a removed deadline is not called, and removing it again or removing nothing changes nothing", async () => {
  const { clock, deadlines, called, add } = start();
  const [first] = [add("first", 100), add("second", 100)];
  deadlines.remove(first);
  deadlines.remove(first);
  deadlines.remove(undefined);
  await clock.advance(100);
  expect(called).toEqual([["second", 100]]);
});

test("removing one that was reached leaves the others alone", async () => {
  const { clock, deadlines, called, add } = start();
  const first = add("first", 10);
  add("second", 200);
  await clock.advance(10);
  deadlines.remove(first);
  await clock.advance(190);
  expect(called).toEqual([
    ["first", 10],
    ["second", 200],
  ]);
});

test("whatever is added and removed, each deadline is called once, in time or up to 50 ms later", async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("add" as const), ms: fc.nat(400) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("remove" as const), ms: fc.nat(30) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(120) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = manualClock(0);
      const deadlines = createDeadlines(clock);
      const open: { readonly deadline: Deadline; readonly at: number; calledAt: number[] }[] = [];
      for (const { kind, ms } of steps) {
        if (kind === "add") {
          const at = clock.monotonic() + ms;
          const calledAt: number[] = [];
          open.push({ deadline: deadlines.add(at, () => calledAt.push(clock.monotonic())), at, calledAt });
        } else if (kind === "remove") {
          const [removed] = open.splice(ms, 1);
          deadlines.remove(removed?.deadline);
        } else {
          await clock.advance(ms);
        }
      }
      await clock.advance(400 + EVERY_MS);
      for (const { at, calledAt } of open) {
        expect(calledAt).toHaveLength(1);
        expect(calledAt[0]).toBeGreaterThanOrEqual(at);
        expect(calledAt[0]).toBeLessThanOrEqual(at + EVERY_MS);
      }
      expect(clock.nextTimerAt()).toBeUndefined();
    }),
    { numRuns: 60 },
  );
});

test("no timer is set while there are no deadlines: none was added, all are removed, all are reached", async () => {
  const { clock, deadlines, add } = start();
  expect(clock.nextTimerAt()).toBeUndefined();
  const removed = [add("a", 100), add("b", 200)];
  expect(clock.nextTimerAt()).toBe(100);
  for (const deadline of removed) deadlines.remove(deadline);
  expect(clock.nextTimerAt()).toBeUndefined();
  add("c", 300);
  await clock.advance(300);
  expect(clock.nextTimerAt()).toBeUndefined();
});

test("ten thousand that come and go before their time share one timer", () => {
  const { deadlines, add, timersSet } = start();
  const inFlight: Deadline[] = [];
  for (let count = 0; count < 10_000; count++) {
    inFlight.push(add("late", 15_000 + count));
    if (inFlight.length > 64) deadlines.remove(inFlight.shift());
  }
  expect(timersSet()).toBe(1);
});

test("an earlier one is not held up by a later one, but waits for a timer that is about to fire", async () => {
  const { clock, called, add, timersSet } = start();
  add("later", 15_000);
  add("earlier", 500);
  add("a little earlier", 460);
  expect(timersSet()).toBe(2);
  await clock.advance(500);
  expect(called.map(([name]) => name).sort()).toEqual(["a little earlier", "earlier"]);
});

test("at most one sweep is made in 50 ms, or in the time given", async () => {
  for (const [everyMs, most] of [
    [undefined, 21],
    [200, 6],
  ] as const) {
    const { clock, called, add, timersSet } = start(everyMs);
    for (let at = 1; at <= 1000; at++) add("a", at);
    await clock.advance(1200);
    expect(called).toHaveLength(1000);
    expect(timersSet()).toBeLessThanOrEqual(most + 2);
  }
});

test("one that is called may remove another that is due, and add more, due or not", async () => {
  const { clock, deadlines, called, add } = start();
  let other: Deadline | undefined;
  const removeOther = () => {
    called.push(["remover", clock.monotonic()]);
    deadlines.remove(other);
    add("past", 0);
    add("next", 300);
  };
  deadlines.add(100, removeOther);
  other = add("other", 100);
  await clock.advance(1000);
  expect(called).toEqual([
    ["remover", 100],
    ["past", 150],
    ["next", 300],
  ]);
  expect(clock.nextTimerAt()).toBeUndefined();
});

test("an error that one throws reaches the clock, and the others are called all the same", async () => {
  const { clock, deadlines, called, add } = start();
  deadlines.add(100, () => {
    throw new Error("a defect");
  });
  add("due too", 100);
  add("later", 5000);
  await expect(clock.advance(100)).rejects.toThrow("a defect");
  await clock.advance(5000);
  expect(called).toEqual([
    ["due too", 150],
    ["later", 5000],
  ]);
});

test("a timer that fires early calls nothing early", async () => {
  const manual = manualClock(0);
  // The bound of Node's timers, made small.
  const clock = {
    ...manual,
    setTimeout: (callback: () => void, ms: number) => manual.setTimeout(callback, Math.min(ms, 1000)),
  };
  const called: number[] = [];
  createDeadlines(clock).add(2500, () => called.push(clock.monotonic()));
  await clock.advance(10_000);
  expect(called).toEqual([2500]);
});

test("a time between two milliseconds is not rounded down", async () => {
  const { clock, called, add } = start();
  add("a", 10.25);
  await clock.advance(10);
  expect(called).toEqual([]);
  await clock.advance(1);
  expect(called).toHaveLength(1);
});
