import { Console } from "node:console";
import { Writable } from "node:stream";
import { pino } from "pino";
import { describe, expect, it, vi } from "vitest";
import { PostbellError } from "../../src/core/errors.js";
import { hostOptions } from "../../src/core/host-options.js";
import { guardedLogger, type LoggedError, type Logger, silentLogger } from "../../src/core/logger.js";
import { type LogEntry, recordingLogger } from "../support/registration-api.js";

/** Returns what reaches the host's logger for this thrown value. */
function logged(error: unknown): LoggedError {
  const { logger, log } = recordingLogger();
  guardedLogger(logger).error({ delivery: "d1", error }, "failed");
  expect(log).toHaveLength(1);
  expect(log[0]).toMatchObject({ level: "error", message: "failed", fields: { delivery: "d1" } });
  return (log[0] as LogEntry & { fields: { error: LoggedError } }).fields.error;
}

/** An error whose message was changed after its stack was written. */
function reworded(first: string, later: string): Error {
  const error = new Error(first);
  expect(error.stack).toContain(first);
  return Object.assign(error, { message: later });
}

const LEVELS = ["debug", "info", "warn", "error"] as const;

const loggerOf = (write: () => unknown): Logger => ({ debug: write, info: write, warn: write, error: write });

describe("the logger of the host", () => {
  it.each(LEVELS)("is given %s as it was written", (level) => {
    const { logger, log } = recordingLogger();
    const fields = { account: "acme", count: 1 };
    guardedLogger(logger)[level](fields, "message");
    expect(log).toEqual([{ level, fields, message: "message" }]);
  });

  it("may be a console, which is given the message first", () => {
    const lines: string[] = [];
    const write = (chunk: unknown, _: unknown, done: () => void): void => {
      lines.push(String(chunk));
      done();
    };
    const stream = new Writable({ write });
    guardedLogger(new Console({ stdout: stream, stderr: stream })).warn({ account: "acme" }, "a message");
    expect(lines.join("")).toBe("a message { account: 'acme' }\n");
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    guardedLogger(console).warn({ account: "acme" }, "a message");
    expect(warn.mock.calls).toEqual([["a message", { account: "acme" }]]);
    warn.mockRestore();
  });

  it("is the console by default, with one line for each warning and error", () => {
    const calls: unknown[][] = [];
    const spies = (["debug", "info", "log", "warn", "error"] as const).map((method) =>
      vi.spyOn(console, method).mockImplementation((...given) => void calls.push([method, ...given])),
    );
    const logger = guardedLogger(hostOptions.logger.default);
    for (const level of LEVELS) logger[level]({ account: "a\nb" }, "a message");
    logger.warn({}, "no fields");
    for (const spy of spies) spy.mockRestore();
    expect(calls).toEqual([
      ["warn", 'postbell: a message {"account":"a\\nb"}'],
      ["error", 'postbell: a message {"account":"a\\nb"}'],
      ["warn", "postbell: no fields"],
    ]);
  });

  it.each([
    [undefined, true],
    ["", true],
    ["development", true],
    ["test", false],
    ["production", false],
  ])(
    "by default shows normal events, such as a failed attempt, in development: NODE_ENV=%s",
    (mode, isShown) => {
      const info = vi.spyOn(console, "info").mockImplementation(() => {});
      vi.stubEnv("NODE_ENV", mode);
      guardedLogger(hostOptions.logger.default).info({ status: 500 }, "a delivery attempt failed");
      vi.unstubAllEnvs();
      const lines = info.mock.calls;
      info.mockRestore();
      expect(lines).toEqual(isShown ? [['postbell: a delivery attempt failed {"status":500}']] : []);
    },
  );

  it("may be pino as it is", () => {
    const lines: string[] = [];
    const logger = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
    guardedLogger(logger).warn({ account: "acme" }, "a message");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { level: 40, account: "acme", msg: "a message" },
    ]);
  });

  it("keeps its `this`", () => {
    const lines: string[] = [];
    class HostLogger {
      readonly lines = lines;
      write(_fields: object, message: string): void {
        this.lines.push(message);
      }
      debug(fields: object, message: string): void {
        this.write(fields, message);
      }
      info(fields: object, message: string): void {
        this.write(fields, message);
      }
      warn(fields: object, message: string): void {
        this.write(fields, message);
      }
      error(fields: object, message: string): void {
        this.write(fields, message);
      }
    }
    guardedLogger(new HostLogger()).error({}, "message");
    expect(lines).toEqual(["message"]);
  });

  it("may throw, or reject, and nobody notices", async () => {
    const broken = [
      loggerOf(() => {
        throw new Error("disk full");
      }),
      loggerOf(() => Promise.reject(new Error("disk full"))),
    ];
    for (const logger of broken) {
      for (const level of LEVELS) expect(guardedLogger(logger)[level]({}, "message")).toBeUndefined();
    }
    // Vitest fails a run with an unhandled rejection.
    await Promise.resolve();
  });

  it("is silent where the host chooses `false`", () => {
    for (const level of LEVELS) expect(silentLogger[level]({}, "message")).toBeUndefined();
  });
});

describe("an error in the log", () => {
  it("is shown by name, code and the calls that led to it, without its message", () => {
    const error = Object.assign(new TypeError("record of Zoë"), { code: "ECONNRESET", args: ["Zoë"] });
    const shown = logged(error);
    expect(shown).toMatchObject({ name: "TypeError", code: "ECONNRESET", message: undefined });
    expect(shown.stack?.[0]).toMatch(/^at .*logger\.isolated\.test\.ts:\d+:\d+\)?$/);
    expect(shown.stack?.length).toBeLessThanOrEqual(5);
    expect(JSON.stringify(shown)).not.toContain("Zoë");
  });

  it.each<[string, () => unknown]>([
    ["without a message", () => new Error()],
    ["with a message of several lines", () => new RangeError("one\ntwo\n\nthree")],
    ["of a class of the host", () => new (class HostError extends Error {})("away")],
    ["of Node itself", () => Buffer.alloc("x" as unknown as number)],
  ])("shows the calls of an error %s", (_, make) => {
    let thrown: unknown;
    try {
      thrown = make();
    } catch (error) {
      thrown = error;
    }
    const { stack = [] } = logged(thrown);
    expect(stack.join("\n")).toMatch(/logger\.isolated\.test\.ts:\d+:\d+/);
  });

  it("is shown with its message where that is Postbell's own, and with its causes", () => {
    const driver = Object.assign(new Error("SET whsec_x"), { code: "EPIPE" });
    const error = new PostbellError("storage_unavailable", "The storage did not answer.", { cause: driver });
    expect(logged(error)).toMatchObject({
      name: "PostbellError",
      code: "storage_unavailable",
      message: "The storage did not answer.",
      cause: { name: "Error", code: "EPIPE", message: undefined },
    });
  });

  it.each<[string, unknown, object]>([
    ["text", "key-a1", { name: "string" }],
    ["nothing", undefined, { name: "undefined" }],
    ["a plain object", { message: "key-a1", code: "key-a1" }, { name: "object" }],
    [
      "a name that says too much",
      Object.assign(new Error("x"), { name: "Error of key-a1" }),
      { name: "Error" },
    ],
    ["a code that says too much", Object.assign(new Error("x"), { code: "no key-a1" }), { code: undefined }],
    ["a code that is no text", Object.assign(new Error("x"), { code: 7 }), { code: undefined }],
    [
      "a message in the form of a call",
      new Error("x\n    at key-a1 (file:///key-a1.ts:1:1)"),
      { stack: [expect.stringMatching(/logger\.isolated\.test\.ts/), ...Array(4).fill(expect.any(String))] },
    ],
    [
      "a message that took the place of one in the form of a call",
      reworded("x\n    at key-a1 (file:///key-a1.ts:1:1)", "y"),
      { stack: [] },
    ],
    [
      "no message, where one in the form of a call had been",
      reworded("x\n    at key-a1 (file:///key-a1.ts:1:1)", ""),
      { stack: [] },
    ],
    [
      "a stack of its own making",
      Object.assign(new Error("x"), { stack: "key-a1\n    at key-a1" }),
      { stack: [] },
    ],
    ["no stack", Object.assign(new Error("x"), { stack: undefined }), { stack: [] }],
    [
      "a getter that throws",
      Object.defineProperty(new Error("x"), "code", {
        get: () => {
          throw new Error("key-a1");
        },
      }),
      { name: "Error" },
    ],
  ])("may be anything: %s", (_, error, expected) => {
    const shown = logged(error);
    expect(shown).toMatchObject(expected);
    expect(JSON.stringify(shown)).not.toContain("key-a1");
  });

  it("shows no more than three causes, so that a circle of them has an end", () => {
    const error = new Error("x");
    error.cause = error;
    expect(logged(error).cause?.cause?.cause).toMatchObject({ name: "Error", cause: undefined });
  });

  it("is not touched by it", () => {
    const fields = Object.freeze({ error: new Error("x") });
    guardedLogger(silentLogger).error(fields, "message");
    expect(fields.error.message).toBe("x");
  });
});
