/**
 * Judges how much work something is, for tests of what must not take long. The only file of the
 * suite that measures: a limit in milliseconds of wall-clock time fails on a busy machine, so
 * `test/package/architecture.test.ts` refuses one anywhere else.
 *
 * All functions compare processor time with processor time spent moments earlier in the same
 * process, with a wide margin, and measure again before they fail: other threads of the process can
 * only add to what is measured.
 */

import { createHash } from "node:crypto";
import { expect } from "vitest";

const ROUNDS = 3;

const spentSince = (before: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
};

/** Returns the processor time of `work`, in ms. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  return spentSince(before);
}

async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  return spentSince(before);
}

/**
 * Returns the processor time of this process so far, in ms. For `event-loop.ts`, which measures
 * between two answers.
 */
export const cpuMsSoFar = (): number => spentSince({ user: 0, system: 0 });

/** Returns the least that the reference of about 10 ms takes in this process, in ms. */
export function referenceMs(): number {
  reference();
  return Math.max(Math.min(...Array.from({ length: 7 }, () => cpuMs(reference))), 1);
}

/** Sizes eight times apart: a linear cost grows 8 times, a quadratic one 64 times. */
const STEP = 8;
const MAX_GROWTH = 24;
/**
 * Below this a measurement is mostly compilation, collection and memory that is touched for the
 * first time.
 */
const TOO_SHORT_MS = 250;

/**
 * Expects the processor time of `work(size)` to grow in proportion to `size`: compares the least
 * that an eighth of `size` takes with the least that `size` takes. Choose `size` so large that a
 * quadratic cost would take seconds.
 *
 * @example await expectLinear(500_000, (size) => stripAll("<".repeat(size)));
 */
export async function expectLinear(size: number, work: (size: number) => unknown): Promise<void> {
  let small = Number.POSITIVE_INFINITY;
  let large = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    small = Math.min(small, await cpuMsOf(() => work(Math.ceil(size / STEP))));
    large = Math.min(large, await cpuMsOf(() => work(size)));
    if (large < Math.max(TOO_SHORT_MS, MAX_GROWTH * small)) return;
  }
  expect.fail(
    `${STEP} times the size takes over ${MAX_GROWTH} times the processor time: ${small} ms, then ${large} ms`,
  );
}

/** About 10 ms of one core of 2020: a mix of texts, objects and hashing, as requests are. */
function reference(): void {
  const records = Array.from({ length: 4_000 }, (_, id) => ({
    id,
    title: `Title ${id}`,
    tags: [id, id + 1],
  }));
  for (let round = 0; round < 2; round++) {
    const text = JSON.stringify(records).replace(/[aeiou]/g, (vowel) => vowel.toUpperCase());
    createHash("sha256").update(text).digest();
    JSON.parse(text);
  }
}

/**
 * Expects `work` to take at most `times` as much processor time as a reference that takes about 10
 * ms, and returns its result. Choose `times` ten times too large. The work is not repeated, as it
 * may change something: the reference is.
 */
export async function expectAtMost<T>(times: number, work: () => T | Promise<T>): Promise<T> {
  let result: { readonly value: T } | undefined;
  const spent = await cpuMsOf(async () => {
    result = { value: await work() };
  });
  if (result === undefined) throw new Error("The work ended without a result.");
  await expectReferences(times, spent);
  return result.value;
}

/**
 * Expects the event loop to keep turning while `work` runs: between two of its turns the process
 * takes at most `times` as much processor time as the baseline. Returns the result of `work`.
 */
export async function expectTurning<T>(times: number, work: () => Promise<T>): Promise<T> {
  let longest = 0;
  let last = process.cpuUsage();
  const turn = (): void => {
    longest = Math.max(longest, spentSince(last));
    last = process.cpuUsage();
  };
  const timer = setInterval(turn, 5);
  try {
    const result = await work();
    turn();
    await expectReferences(times, longest);
    return result;
  } finally {
    clearInterval(timer);
  }
}

/** The reference is measured for each judgement, so that no verdict depends on what ran before. */
async function expectReferences(times: number, spentMs: number): Promise<void> {
  let slowestReference = 0;
  for (let round = 0; round < ROUNDS && spentMs > times * slowestReference; round++) {
    slowestReference = Math.max(slowestReference, await cpuMsOf(reference));
  }
  if (spentMs <= times * slowestReference) return;
  expect.fail(`It took ${spentMs} ms of the processor, over ${times} times ${slowestReference} ms.`);
}
