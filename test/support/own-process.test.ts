import { describe, expect, it } from "vitest";
import { filesWithOwnProcess, needsOwnProcess } from "./own-process.js";

/** Split, so that this file is not taken for one that does it. */
const text = (start: string, end: string): string => `import { it } from "vitest";\n${start}${end}\n`;

describe("a test file", () => {
  it.each([
    ["replaces a module", "vi.mo", 'ck("sharp");'],
    ["stubs a global", "vi.stub", 'Global("fetch", fetched);'],
    ["stubs the environment", "vi.stub", 'Env("TZ", "UTC");'],
    ["replaces the timers", "vi.useFake", "Timers();"],
    ["watches a function of the platform", "vi.spy", 'On(net.Socket.prototype, "connect");'],
    ["hears events of the process", "process.", 'on("unhandledRejection", note);'],
    ["changes the environment", "process.", 'env["TZ"] = "UTC";'],
    ["changes the folder", "process.", 'chdir("/tmp");'],
    ["changes a global", "globalThis.", "fetch = fetched;"],
    ["changes a prototype", "Array.proto", "type.at = at;"],
    ["watches the clock", "vi.spy", 'On(Date, "now");'],
    ["watches chance", "vi.spy", 'On(Math, "random");'],
    ["watches the precise clock", "vi.spy", 'On(performance, "now");'],
    ["watches UDP", "vi.spy", 'On(dgram, "createSocket");'],
    ["watches timers", "vi.spy", 'On(timers, "setTimeout");'],
    ["changes the length of stacks", "Error.stack", "TraceLimit = 100;"],
    ["replaces the output", "process.stdout.", "write = note;"],
    ["measures the heap", "heap", "Used();"],
  ])("has a process of its own if it %s", (_, start, end) => {
    expect(needsOwnProcess(text(start, end))).toBe(true);
  });

  it.each([
    ["reads the environment", "process.", 'env["HOME"];'],
    ["compares the environment", "process.", 'env["HOME"] === "/";'],
    ["watches an object of its own", "vi.spy", 'On(storage, "close");'],
    ["calls a method of a prototype", "Array.proto", "type.at.call(list, 1);"],
  ])("shares a process if it %s", (_, start, end) => {
    expect(needsOwnProcess(text(start, end))).toBe(false);
  });

  it("shares a process as a rule", () => {
    const files = filesWithOwnProcess();
    expect(files).toContain("test/content/text/sanitise-html-failure.test.ts");
    expect(files).not.toContain("test/support/own-process.test.ts");
    expect(files.length).toBeLessThan(40);
  });
});
