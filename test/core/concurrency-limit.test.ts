import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { createConcurrencyLimit } from "../../src/core/concurrency-limit.js";

/** Creates a task that runs until `end` is called. */
function createTask() {
  let end = (): void => {};
  let isRunning = false;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const task = async (): Promise<string> => {
    isRunning = true;
    await ended;
    return "done";
  };
  return { task, end: () => end(), isRunning: () => isRunning };
}

describe("a concurrency limit", () => {
  it("runs as many tasks as it allows, and the next one when one ends", async () => {
    const limit = createConcurrencyLimit({ running: 1, waiting: 1 });
    const [first, second] = [createTask(), createTask()];
    const results = [limit.run(first.task), limit.run(second.task)];
    expect([first.isRunning(), second.isRunning()]).toEqual([true, false]);
    first.end();
    expect(await results[0]).toBe("done");
    second.end();
    expect(await results[1]).toBe("done");
  });

  it("refuses a task, without calling it, if too many wait", () => {
    const limit = createConcurrencyLimit({ running: 1, waiting: 1 });
    const [first, second, third] = [createTask(), createTask(), createTask()];
    void limit.run(first.task);
    void limit.run(second.task);
    expect(limit.run(third.task)).toBeUndefined();
    expect(third.isRunning()).toBe(false);
  });

  it("passes on the error of a task, and runs the next one", async () => {
    const limit = createConcurrencyLimit({ running: 1, waiting: 1 });
    const failed = limit.run(async () => {
      throw new Error("out of order");
    });
    const next = limit.run(async () => "done");
    await expect(failed).rejects.toThrow("out of order");
    expect(await next).toBe("done");
  });

  it("runs a task that waited in the async context of its own caller", async () => {
    const limit = createConcurrencyLimit({ running: 1, waiting: 1 });
    const request = new AsyncLocalStorage<string>();
    const first = createTask();
    const seen = request.run("A", () => limit.run(first.task));
    const waited = request.run("B", () => limit.run(async () => request.getStore()));
    first.end();
    await seen;
    expect(await waited).toBe("B");
  });
});
