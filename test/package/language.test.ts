import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { findForbiddenPhrases, PROSE_ROOMS } from "../../scripts/prose.js";

const root = resolve(import.meta.dirname, "../..");

describe("the language of the project", () => {
  it("uses no forbidden phrase and no comment line that is too long", () => {
    expect(findForbiddenPhrases()).toEqual([]);
  });

  it("has no line of Lua that is wider than code may be", () => {
    const folder = join(root, "storage/redis/library");
    const files = readdirSync(folder).filter((name) => name.endsWith(".lua"));
    expect(files.length).toBeGreaterThan(10);
    const wide = files.flatMap((name) =>
      readFileSync(join(folder, name), "utf8")
        .split("\n")
        .flatMap((line, index) => (line.length > 110 ? [`${name}:${index + 1} ${line.length} columns`] : [])),
    );
    expect(wide).toEqual([]);
  });

  it("is checked in every part of the project", () => {
    expect(PROSE_ROOMS).toEqual(expect.arrayContaining(["src", "adapters", "test", "docs", "README.md"]));
  });

  it("is checked by a search that finds phrases and long lines, and names their place", () => {
    const folder = mkdtempSync(join(tmpdir(), "postbell-language-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const lines = [
      "/** What the sample returns. */",
      "export const sample = 1; // no reads are under way",
      `// ${"long ".repeat(25)}`,
      "// Returns a sample.",
    ];
    writeFileSync(join(folder, "sample.ts"), lines.join("\n"));
    const found = findForbiddenPhrases([relative(root, folder)]);
    expect(found).toHaveLength(3);
    expect(found[0]).toMatch(/sample\.ts:1 "What …" → /);
    expect(found[1]).toMatch(/sample\.ts:2 "under way" → in flight/);
    expect(found[2]).toMatch(/sample\.ts:3 comment of \d+ columns/);
  });
});
