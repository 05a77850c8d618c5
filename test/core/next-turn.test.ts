import { expect, it } from "vitest";
import { nextTurn, runInTurns, type Steps } from "../../src/core/next-turn.js";

/** Work of three steps that notes its name at each. */
function* threeSteps(name: string, done: string[]): Steps<string> {
  for (let step = 0; step < 3; step += 1) {
    done.push(name);
    yield;
  }
  return name;
}

/** Runs `work` and notes each turn of the event loop in `done`. */
async function withTurns(done: string[], work: Promise<unknown>): Promise<void> {
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      await nextTurn();
      done.push("|");
    }
  })();
  await work;
  isOver = true;
  await others;
}

it("gives each step on a long text a turn of its own, also if many callers work at once", async () => {
  const done: string[] = [];
  const works = ["a", "b", "c"].map((name) => runInTurns(threeSteps(name, done), 5_000));
  await withTurns(done, Promise.all(works));
  expect(done.filter((name) => name !== "|").join("")).toBe("abcabcabc");
  expect(done.join("")).not.toMatch(/[abc]{2}/);
  expect(await Promise.all(works)).toEqual(["a", "b", "c"]);
});

it("works on short texts at once until they add up to a long one", async () => {
  const done: string[] = [];
  await runInTurns(threeSteps("long", []), 5_000);
  const short = Promise.all([1, 2, 3].map((name) => runInTurns(threeSteps(String(name), done), 1_000)));
  expect(done.join("")).toBe("111222333");
  const last = runInTurns(threeSteps("4", done), 1_100);
  expect(done.join("")).toBe("111222333");
  await withTurns(done, Promise.all([short, last]));
  expect(done.join("")).toMatch(/^111222333\|?4\|+4\|+4/);
});
