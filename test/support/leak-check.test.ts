/** The watch over the suite can fail: each way for a secret to get out is found. */

import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createLeakCheck } from "./leak-check.js";

const root = resolve(import.meta.dirname, "../..");
const planted = join(root, "test", "planted-leak.test.ts");
const harmless = join(root, "test", "planted-harmless.test.ts");
const shared = join(root, "test", "planted-shared-leak.test.ts");
afterAll(() => {
  for (const file of [planted, harmless, shared]) rmSync(file, { force: true });
});

/** Returns what Vitest prints for these files of the suite, run one after another. */
function outputOf(...files: readonly string[]): Promise<string> {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = [vitest, "run", "--maxWorkers=1", ...files];
  return new Promise((done) => {
    execFile(process.execPath, args, { cwd: root }, (_, stdout, stderr) => done(stdout + stderr));
  });
}

describe("the check for leaks", () => {
  it.each([
    "signed with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjswMfKQ",
    "authorization: Bearer key-1234",
    "Basic YWRtaW46c2VjcmV0",
    `t=1, s=${"ab".repeat(32)}`,
    "{ resourceType: 'Patient' }",
    '{"resourceType":"Patient"}',
    "for Wintermute",
    "key-a1",
  ])("finds: %s", (text) => {
    const check = createLeakCheck();
    check.note("a log", "nothing in here");
    check.note("a log", text);
    expect(check.found()).toEqual([`a log: ${text}`]);
  });

  it.each([
    ["a member", { at: [{ name: "Wintermute" }] }],
    ["the name of a member", { Wintermute: 1 }],
    ["a record", { resourceType: "Basic" }],
    ["an error", { failed: new Error("for Wintermute") }],
    ["the cause of an error", new Error("for", { cause: { key: "key-a1" } })],
    ["a map", new Map([["key-a1", 1]])],
    ["what lies deep", { a: { b: { c: { d: { e: { f: { g: "s3cret" } } } } } } }],
  ])("finds it in %s", (_, value) => {
    const check = createLeakCheck();
    check.note("a log", value);
    expect(check.found()).toHaveLength(1);
  });

  it("finds the last of very many texts", () => {
    const check = createLeakCheck();
    for (let index = 0; index < 200_000; index++) check.note("a span", `text ${index}`);
    check.note("a span", "key-a1");
    expect(check.found()).toEqual(["a span: key-a1"]);
  });

  it("finds nothing where there is nothing", () => {
    const check = createLeakCheck();
    for (const text of ["a notifier of the host failed", "POST", "hooks.example.com", "whsec_"])
      check.note("a log", text);
    check.note("an error", "Send a valid API key: Authorization: Bearer <API_KEY>.");
    expect(check.found()).toEqual([]);
  });

  it("fails a file of the suite for a log, a span, a metric, an error, and the answer that tells of it", async () => {
    writeFileSync(
      planted,
      `import { it, vi } from "vitest";
      import { PostbellError } from "../src/core/errors.js";
      import { HttpError } from "../src/http/errors.js";
      import { createContent } from "../src/content/index.js";
      import { guardedLogger, silentLogger } from "../src/core/logger.js";
      import { guardedTelemetry } from "../src/core/telemetry.js";
      import { memoryStorage } from "../storage/memory/index.js";
      vi.mock("../src/content/rest/error.js", async (original) => {
        const actual = await original();
        class RestError extends actual.RestError {
          constructor(status, code) {
            super(status, code, "leak 6: open sesame");
          }
        }
        return { ...actual, RestError };
      });
      it("leaks", async () => {
        guardedLogger(silentLogger).warn({ key: "leak 1: key-a1" }, "a leak");
        const telemetry = guardedTelemetry(undefined);
        telemetry.begin({ name: "emit", kind: "client", at: 0, attributes: { name: "leak 2: Wintermute" } });
        telemetry.record("attemptLag", 1, { lane: "leak 3: s3cret" });
        new PostbellError("not_found", "leak 4: whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjsw");
        new HttpError(403, "forbidden", "leak 5: key-a1");
        const content = createContent({
          storage: memoryStorage(),
          site: { url: "https://www.example.org", name: "Example" },
          authenticate: () => null,
          users: [],
        });
        await content.request({ method: "GET", path: "/nowhere", as: null });
      });`,
    );
    const output = await outputOf("test/planted-leak.test.ts");
    const found = /holds what it must not: (.*)/.exec(output)?.[1];
    for (const leak of ["leak 1", "leak 2", "leak 3", "leak 4", "leak 5", "leak 6"])
      expect(found).toContain(leak);
  });

  it("fails a file that shares its process with others", async () => {
    writeFileSync(harmless, 'import { it } from "vitest";\nit("does no harm", () => {});\n');
    writeFileSync(
      shared,
      `import { it } from "vitest";
      import { guardedLogger, silentLogger } from "../src/core/logger.js";
      it("leaks", () => guardedLogger(silentLogger).warn({ key: "leak 7: key-a1" }, "a leak"));`,
    );
    const files = ["test/planted-harmless.test.ts", "test/planted-shared-leak.test.ts"];
    const output = await outputOf(...files);
    for (const file of files) expect(output).toMatch(new RegExp(`shared.*${file}`));
    expect(/holds what it must not: (.*)/.exec(output)?.[1]).toContain("leak 7");
    expect(output).toMatch(/Test Files.*1 failed.*1 passed/);
  });
});
