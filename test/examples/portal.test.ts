import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");

describe("the example of the portal, run once", () => {
  it("lets in who has a session, and repairs a failing and a disabled endpoint as the page does", async () => {
    const { exitCode, output } = await new Promise<{ exitCode: unknown; output: string }>((done) => {
      const args = [join(root, "examples", "portal.js"), "--once"];
      execFile(process.execPath, args, { timeout: 175_000 }, (error, stdout, stderr) => {
        done({ exitCode: error ? error.code : 0, output: stdout + stderr });
      });
    });
    expect([exitCode, output]).toEqual([0, expect.stringContaining("Done: repaired through the portal.")]);
    expect(output).toMatch(
      /old-archive was disabled[\s\S]*Without a session: 401\nWith a session: 200 text\/html/,
    );
    expect(output).toMatch(/The lab: 2 wait, the last attempt: HTTP 500: The database of the lab is full\./);
    expect(output.match(/^Sent again: 202$/gm)).toHaveLength(2);
    expect(output).toMatch(/^The archive, at its new address: ENABLED$[\s\S]*^Recovered: 4$/m);
  });
});
