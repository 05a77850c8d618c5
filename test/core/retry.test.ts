import { describe, expect, it } from "vitest";
import { retry } from "../../src/core/retry.js";
import { manualClock } from "../../src/testing/manual-clock.js";

const clock = manualClock(0);

/** Returns a call that throws `errors` in turn, then returns the number of its calls. */
function failWith(...errors: readonly unknown[]) {
  let calls = 0;
  const call = async (): Promise<number> => {
    const at = calls++;
    if (at < errors.length) throw errors[at];
    return calls;
  };
  return { call, calls: () => calls };
}

const always: Pick<Parameters<typeof retry>[1], "clock" | "shouldRetry" | "pauseMs"> = {
  clock,
  shouldRetry: () => true,
  pauseMs: () => 0,
};

describe("a retried call", () => {
  it("is repeated after the pauses that its options name, on the clock", async () => {
    const { call, calls } = failWith("first", new TypeError("second"), new Error("third"));
    const result = retry(call, { ...always, pauseMs: (count) => 100 * count });
    for (const [ms, expected] of [
      [99, 1],
      [1, 2],
      [199, 2],
      [1, 3],
      [300, 4],
    ] as const) {
      await clock.advance(ms);
      expect(calls()).toBe(expected);
    }
    expect(await result).toBe(4);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it.each(["a text", undefined, new TypeError("refused"), new Error("failed")])(
    "rejects with the last error as it was thrown: %s",
    async (last) => {
      const { call, calls } = failWith("another", last);
      const rejected = retry(call, { ...always, shouldRetry: (error) => error === "another" }).then(
        () => expect.unreachable(),
        (error: unknown) => error,
      );
      expect(await rejected).toBe(last);
      expect(calls()).toBe(2);
    },
  );

  it("is not repeated if the signal was aborted during the call", async () => {
    const stop = new AbortController();
    const stopped = new Error("stopped");
    const call = async (): Promise<never> => {
      stop.abort();
      throw stopped;
    };
    const retried = retry(call, { ...always, pauseMs: () => 1_000, signal: stop.signal });
    await expect(retried).rejects.toBe(stopped);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("rejects with what an option throws", async () => {
    const defect = new TypeError("pauseMs");
    const pauseMs = (): never => {
      throw defect;
    };
    await expect(retry(failWith("first").call, { ...always, pauseMs })).rejects.toBe(defect);
  });

  it("is repeated as often as its options allow, free retries apart", async () => {
    const { call, calls } = failWith(...["a", "free", "b", "c", "free", "free", "d", "e"]);
    const options = { ...always, retries: 3, shouldConsumeRetry: (error: unknown) => error !== "free" };
    await expect(retry(call, options)).rejects.toBe("d");
    expect(calls()).toBe(7);
  });

  it("makes a free retry at once, and after the last one that counts", async () => {
    const { call } = failWith("a", "free");
    const options = { ...always, retries: 1, shouldConsumeRetry: (error: unknown) => error !== "free" };
    expect(await retry(call, options)).toBe(3);
  });

  it("stops in a pause when its signal is aborted", async () => {
    const stop = new AbortController();
    const { call, calls } = failWith("a", "b");
    const result = retry(call, { ...always, pauseMs: () => 1_000, signal: stop.signal });
    const rejected = result.catch((error: unknown) => error);
    await clock.advance(500);
    stop.abort();
    expect(await rejected).toBe("a");
    expect([calls(), clock.nextTimerAt()]).toEqual([1, undefined]);
  });
});
