import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");

it("moves what the example's host has committed, once, and ends with 0", () => {
  const output = execFileSync(process.execPath, [join(root, "examples", "outbox.js"), "--once"], {
    encoding: "utf8",
    env: { ...process.env, DATABASE_URL: "" },
  });
  expect(output).toMatch(/In memory[\s\S]*Outbox: 2 emitted, 0 waiting, 0 parked\.\nDone: /);
});
