/** The manual clock: time moves only when a test moves it. */

import { expect, test } from "vitest";
import { manualClock } from "../../src/testing/index.js";

const START_MS = 1_000_000;

test("time stands still until it is advanced", async () => {
  const clock = manualClock(START_MS);
  expect([clock.now(), clock.monotonic()]).toEqual([START_MS, 0]);
  await clock.advance(250);
  expect([clock.now(), clock.monotonic()]).toEqual([START_MS + 250, 250]);
});

test("each timer fires once, at its own time, in order, those of one time as they were set", async () => {
  const clock = manualClock(START_MS);
  const fired: [string, number][] = [];
  const set = (name: string, ms: number) =>
    clock.setTimeout(() => fired.push([name, clock.now() - START_MS]), ms);
  set("late", 30);
  set("early", 10);
  set("early too", 10);
  set("beyond", 31);
  await clock.advance(30);
  expect(fired).toEqual([
    ["early", 10],
    ["early too", 10],
    ["late", 30],
  ]);
  expect(clock.nextTimerAt()).toBe(START_MS + 31);
  await clock.advance(100);
  expect(fired).toHaveLength(4);
  expect(clock.nextTimerAt()).toBeUndefined();
});

test("a timer that a timer sets fires in the same advance if its time has come", async () => {
  const clock = manualClock(START_MS);
  const times: number[] = [];
  const tick = () => {
    times.push(clock.now() - START_MS);
    clock.setTimeout(tick, 10);
  };
  clock.setTimeout(tick, 10);
  await clock.advance(35);
  expect(times).toEqual([10, 20, 30]);
});

test("promises that a timer set going settle before the next timer fires", async () => {
  const clock = manualClock(START_MS);
  const log: string[] = [];
  const work = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    log.push("work of the first");
  };
  clock.setTimeout(() => void work(), 1);
  clock.setTimeout(() => log.push("second"), 2);
  await clock.advance(2);
  expect(log).toEqual(["work of the first", "second"]);
});

test("a cleared timer does not fire, and clearing nothing is fine", async () => {
  const clock = manualClock(START_MS);
  let fired = 0;
  const timer = clock.setTimeout(() => fired++, 5);
  clock.clearTimeout(timer);
  clock.clearTimeout(timer);
  clock.clearTimeout(undefined);
  await clock.advance(10);
  expect(fired).toBe(0);
});

test("a negative delay fires at the next advance, also of 0 ms, and never turns time back", async () => {
  const clock = manualClock(START_MS);
  const times: number[] = [];
  clock.setTimeout(() => times.push(clock.now()), -5);
  expect(times).toEqual([]);
  await clock.advance(0);
  expect(times).toEqual([START_MS]);
});

test("setting the wall clock moves nothing else: timers fire after their delay", async () => {
  const clock = manualClock(START_MS);
  const fired: number[] = [];
  clock.setTimeout(() => fired.push(clock.monotonic()), 100);
  await clock.advance(40);
  clock.setWallClock(5_000_000);
  expect([clock.now(), clock.monotonic(), clock.nextTimerAt()]).toEqual([5_000_000, 40, 5_000_060]);
  await clock.advance(59);
  expect(fired).toEqual([]);
  clock.setWallClock(0);
  await clock.advance(1);
  expect(fired).toEqual([100]);
  expect(clock.now()).toBe(1);
});

test("random numbers lie in [0, 1), repeat with the seed and differ between seeds", () => {
  const draw = (seed?: number) => {
    const clock = manualClock(START_MS, { seed });
    return Array.from({ length: 1_000 }, () => clock.random());
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw()).toEqual(draw(1));
  expect(draw(7)).not.toEqual(draw(8));
  const numbers = draw(3);
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  expect(mean).toBeGreaterThan(0.45);
  expect(mean).toBeLessThan(0.55);
});
