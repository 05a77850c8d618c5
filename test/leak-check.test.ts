/** The watch over the suite can fail: each way for a secret to get out is found. */

import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createLeakCheck } from "./support/leak-check.js";

const root = resolve(import.meta.dirname, "..");
const planted = join(root, "test", "planted-leak.test.ts");
afterAll(() => rmSync(planted, { force: true }));

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
    check.note("nothing in here");
    check.note(text);
    expect(check.found()).toEqual([text]);
  });

  it("finds nothing where there is nothing", () => {
    const check = createLeakCheck();
    for (const text of ["a notifier of the host failed", "POST", "hooks.example.com", "whsec_"])
      check.note(text);
    expect(check.found()).toEqual([]);
  });

  it("fails a file of the suite for a log, a span, a metric and an error", async () => {
    writeFileSync(
      planted,
      `import { it } from "vitest";
      import { PostbellError } from "../src/errors.js";
      import { guardedLogger, silentLogger } from "../src/logger.js";
      import { guardedTelemetry } from "../src/telemetry.js";
      it("leaks", () => {
        guardedLogger(silentLogger).warn({ key: "key-a1" }, "leak 1");
        const telemetry = guardedTelemetry(undefined);
        telemetry.begin({ name: "emit", kind: "client", at: 0, attributes: { leak: "leak 2", name: "Wintermute" } });
        telemetry.record("attemptLag", 1, { lane: "leak 3: s3cret" });
        new PostbellError("not_found", "leak 4: whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjsw");
      });`,
    );
    const output = await new Promise<string>((done) => {
      const vitest = join(root, "node_modules/vitest/vitest.mjs");
      const args = [vitest, "run", "test/planted-leak.test.ts"];
      execFile(process.execPath, args, { cwd: root }, (_, stdout, stderr) => done(stdout + stderr));
    });
    const found = /holds what it must not: (.*)/.exec(output)?.[1];
    for (const leak of ["leak 1", "leak 2", "leak 3", "leak 4"]) expect(found).toContain(leak);
  });
});
