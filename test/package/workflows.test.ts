import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { filesBelow } from "../../scripts/house.js";

const root = resolve(import.meta.dirname, "../..");
const folder = resolve(root, ".github/workflows");
const workflows = readdirSync(folder).map((name) => ({
  name,
  text: readFileSync(resolve(folder, name), "utf8"),
}));
const words = (text: string): string[] => text.trim().split(/\s+/);

describe("the stages of .ci/run", () => {
  // If one of several is missing, Vitest runs the others and says nothing.
  it("name test files and folders that exist", () => {
    const named = readFileSync(resolve(root, ".ci/run"), "utf8").match(/\btest\/[\w./-]+/g) ?? [];
    expect(named).toContain("test/adapters");
    const files = filesBelow("test", /\.test\.ts$/);
    expect(named.filter((path) => !files.some((file) => file.startsWith(path)))).toEqual([]);
  });
});

describe("the workflows", () => {
  it("use actions by the digest of a commit, with its version", () => {
    const used = workflows.flatMap(({ text }) => [...text.matchAll(/\buses: (.+)$/gm)].map(([, use]) => use));
    expect(used).toContain("./.github/workflows/ci.yml");
    expect(used.length).toBeGreaterThan(5);
    const unpinned = used.filter((use) => !/^\.\/|^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(use ?? ""));
    expect(unpinned).toEqual([]);
  });

  it.each(workflows)("grant no permission to write to all jobs: $name", ({ text }) => {
    expect(text).toMatch(/^permissions:(?: \{\}|\n {2}contents: read)\n\n/m);
  });

  const ci = workflows.find(({ name }) => name === "ci.yml")?.text ?? "";

  it("of CI run every stage of .ci/run", () => {
    const stages = words(execFileSync("bash", [".ci/run", "--list"], { cwd: root, encoding: "utf8" }));
    expect(stages).toContain("lint");
    const run = [...ci.matchAll(/\bstages: ([\w -]+)/g)].flatMap(([, names = ""]) => words(names));
    expect([...new Set(run)].toSorted()).toEqual(stages.toSorted());
  });

  it("of CI run each part of a stage that they divide, once", () => {
    const run = [...ci.matchAll(/\bstages: ([\w -]+), shard: (\d\/\d)/g)].map(([, ...part]) =>
      part.join(" "),
    );
    expect(run).toContain("faults 1/3");
    const expected = run.flatMap((part) => {
      const [, stage, count] = /^(.+) 1\/(\d)$/.exec(part) ?? [];
      return Array.from({ length: Number(count ?? 0) }, (_, index) => `${stage} ${index + 1}/${count}`);
    });
    expect(run).toEqual(expected);
  });
});
