import { describe, expect, it, vi } from "vitest";
import { expectAtMost, expectLinear, expectTurning } from "./cpu-time.js";

/** Keeps the processor busy in proportion to `units`. */
function spend(units: number): number {
  let sum = 0;
  for (let at = 0; at < units * 1_000; at++) sum = (sum * 31 + at) % 1_000_003;
  return sum;
}

describe("the judgement of work by processor time", () => {
  it("accepts a linear cost and refuses a quadratic one", async () => {
    await expectLinear(20_000, spend);
    await expect(expectLinear(1_000, (size) => spend((size * size) / 4))).rejects.toThrow(
      /8 times the size takes over 24 times/,
    );
  });

  it("accepts work that takes about as long as the baseline, and refuses work that takes many times as long", async () => {
    expect(await expectAtMost(50, () => spend(100))).toBe(spend(100));
    await expect(expectAtMost(1, () => spend(30_000))).rejects.toThrow(/over 1 times/);
  });

  it("measures the baseline for each comparison", async () => {
    const spentMs = [100, 100, 100, 10, 10, 10];
    const usage = vi.spyOn(process, "cpuUsage");
    usage.mockImplementation((before) => ({ user: before ? (spentMs.shift() ?? 0) * 1_000 : 0, system: 0 }));
    try {
      await expectAtMost(2, () => {});
      await expect(expectAtMost(2, () => {})).rejects.toThrow(/over 2 times 10 ms/);
    } finally {
      usage.mockRestore();
    }
  });

  it("accepts work in short steps and refuses one long one", async () => {
    const steps = async (): Promise<string> => {
      for (let step = 0; step < 20; step++) {
        spend(1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return "done";
    };
    expect(await expectTurning(10, steps)).toBe("done");
    await expect(expectTurning(1, async () => spend(30_000))).rejects.toThrow(/over 1 times/);
  });
});
