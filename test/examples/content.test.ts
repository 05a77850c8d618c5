import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
/** Longer than the half minute after which an example gives up by itself. */
const LIMIT_MS = 180_000;

function run(
  example: string,
  ...args: string[]
): Promise<{ readonly exitCode: unknown; readonly output: string }> {
  return new Promise((done) => {
    const command = [join(root, "examples", example), ...args, "--once"];
    execFile(process.execPath, command, { timeout: LIMIT_MS - 5_000 }, (error, stdout, stderr) => {
      done({ exitCode: error ? error.code : 0, output: stdout + stderr });
    });
  });
}

describe.concurrent("the examples with content, run once", () => {
  it(
    "tell a subscriber what is published, and nothing of a draft",
    async ({ expect }) => {
      const { exitCode, output } = await run("content-and-webhooks.js");
      expect([exitCode, output]).toEqual([
        0,
        expect.stringContaining("Done: published, delivered and verified."),
      ]);
      expect(output).toMatch(/Draft (\d+) written\.\nPost \1 published\.\n/);
      expect(output.match(/subscriber: verified/g)).toHaveLength(1);
      expect(output).toContain("verified post.published: Closed on Monday, http://127.0.0.1:");
    },
    LIMIT_MS,
  );

  it(
    "make a static website of the posts",
    async ({ expect }) => {
      const folder = mkdtempSync(join(tmpdir(), "postbell-test-"));
      const { exitCode, output } = await run("static-site.js", folder);
      expect([exitCode, output]).toEqual([0, `Done: 3 posts in ${folder}\n`]);
      expect(readdirSync(folder).sort()).toEqual([
        "a-new-doctor",
        "flu-season",
        "index.html",
        "opening-hours",
      ]);
      const read = (...path: string[]): string => readFileSync(join(folder, ...path), "utf8");
      expect(read("index.html").match(/<li><a href="[a-z-]+\/">/g)).toHaveLength(3);
      expect(read("a-new-doctor", "index.html")).toMatch(
        /<h1>A new doctor<\/h1>\n<p>by Erik<\/p>\n<p>Dr Chalmers has joined us\.<\/p>\s*<p>She speaks Dutch (&amp;|&#038;) English\.<\/p>/,
      );
      rmSync(folder, { recursive: true });
    },
    LIMIT_MS,
  );
});
