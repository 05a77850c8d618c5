import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { describe, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");

/** Runs the example as `npm start -- --once` does, after `node`'s own arguments. */
function run(...nodeArguments: string[]): Promise<{ exitCode: number | null; output: string }> {
  return new Promise((done) => {
    const child = spawn(
      process.execPath,
      [...nodeArguments, join(root, "examples", "express.js"), "--once"],
      {
        cwd: root,
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let output = "";
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.once("close", (exitCode) => done({ exitCode, output }));
  });
}

const preload = (code: string): string => `--import=data:text/javascript,${encodeURIComponent(code)}`;

describe.concurrent("the example, run once", () => {
  it("shows a failed attempt, its retry and the verified notification, and ends with 0", async ({
    expect,
  }) => {
    const { exitCode, output } = await run();
    expect([exitCode, output]).toEqual([0, expect.stringContaining("Done: delivered and verified.")]);
    expect(output).toMatch(/Registered: 201[\s\S]*answers 500[\s\S]*"hub\.event": "patient\.updated"/);
    expect(output).toMatch(/Delivery log:\n.*http {2}HTTP 500.*\n.*delivered {2}HTTP 204/);
  });

  it("ends with 1 where no verified notification comes", async ({ expect }) => {
    // The half minute that the example waits is over before the retry is due.
    const { exitCode, output } = await run(
      preload(
        "const real = setTimeout; globalThis.setTimeout = (f, ms) => real(f, ms === 30_000 ? 500 : ms);",
      ),
    );
    expect([exitCode, output]).toEqual([1, expect.stringContaining("Failed: no verified notification")]);
    expect(output).not.toContain("Done");
  });

  it("ends with 1 where the registration is refused", async ({ expect }) => {
    const { exitCode, output } = await run(
      preload(
        "globalThis.fetch = async () => Response.json({ error: { code: 'unavailable' } }, { status: 503 });",
      ),
    );
    expect([exitCode, output]).toEqual([
      1,
      expect.stringMatching(/registration was refused: 503.*unavailable/),
    ]);
  });
});
