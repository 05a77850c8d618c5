/**
 * Counts how often blocks of code below a folder were executed: work that no clock measures, and
 * that is the same in every run.
 */

import { Session } from "node:inspector/promises";

export interface ExecutedBlocks {
  /** Executions so far. */
  readonly count: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

/**
 * Begins to count. Import what is to be counted afterwards: of code that was compiled before, V8
 * counts whole functions only.
 */
export async function countExecutedBlocks(folder: string): Promise<ExecutedBlocks> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  let sum = 0;
  return {
    async count() {
      const { result } = await session.post("Profiler.takePreciseCoverage");
      const executions = result
        .filter(({ url }) => url.includes(folder))
        .flatMap(({ functions }) => functions)
        .flatMap(({ ranges }) => ranges)
        .map(({ count }) => count);
      // Taking the counts resets them.
      sum = executions.reduce((total, count) => total + count, sum);
      return sum;
    },
    async stop() {
      await session.post("Profiler.stopPreciseCoverage");
      session.disconnect();
    },
  };
}
