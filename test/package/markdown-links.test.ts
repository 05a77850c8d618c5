/** The links in all Markdown files lead somewhere. */

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { allMarkdown, anchorsOf, guides, homeLinksOf, linksOf, pathsNamedIn } from "../support/markdown.js";

const root = resolve(import.meta.dirname, "../..");

describe("links", () => {
  it.each(allMarkdown)("of $path lead to files and headings that exist", (file) => {
    const broken = [...linksOf(file), ...homeLinksOf(file)].filter(({ path, anchor }) => {
      if (path.startsWith("..") || !existsSync(join(root, path))) return true;
      if (anchor === undefined) return false;
      const target = allMarkdown.find((other) => other.path === path);
      return !target || !anchorsOf(target).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  it("of the package lead to files of the package", () => {
    const [packed] = JSON.parse(
      execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
        cwd: root,
        encoding: "utf8",
        shell: process.platform === "win32",
      }),
    ) as [{ readonly files: readonly { readonly path: string }[] }];
    const paths = packed.files.map(({ path }) => path);
    const contains = (path: string) => paths.some((own) => own === path || own.startsWith(`${path}/`));
    const read = allMarkdown.filter(({ path }) => contains(path));
    expect(read.length).toBeGreaterThan(20);
    const broken = read.flatMap((file) =>
      linksOf(file)
        .filter(({ path }) => !contains(path.replace(/\/$/, "")))
        .map(({ path }) => `${file.path}: ${path}`),
    );
    expect(broken).toEqual([]);
  });

  it("lead from the index to every page of the documentation", () => {
    const index = guides.find(({ path }) => path === "docs/README.md");
    if (!index) throw new Error("docs/README.md is missing");
    const linked = new Set([...linksOf(index), ...homeLinksOf(index)].map(({ path }) => path));
    const pages = guides.map(({ path }) => path).filter((path) => /^docs\/(?!README|decisions\/)/.test(path));
    expect(pages.filter((path) => !linked.has(path))).toEqual([]);
  });
});

describe("the pages for contributors", () => {
  const pages = allMarkdown.filter(({ path }) => ["CONTRIBUTING.md", "docs/architecture.md"].includes(path));

  it.each(pages)("name only files and folders that exist: $path", (page) => {
    const named = pathsNamedIn(page);
    expect(named.length).toBeGreaterThan(20);
    const absent = named.filter(
      ({ path, folder }) => !existsSync(join(root, path)) && !existsSync(join(root, folder, path)),
    );
    expect(absent).toEqual([]);
  });

  it("describe every folder of the source", () => {
    const map = pages.find(({ path }) => path === "docs/architecture.md");
    const rows = [...(map?.text ?? "").matchAll(/^\| ((?:`[\w/-]+`(?:, )?)+) \|/gm)];
    const described = new Set(rows.flatMap(([, cell = ""]) => cell.replaceAll("`", "").split(", ")));
    const folders = ["src", "src/webhooks", "src/content", "adapters", "storage"].flatMap((folder) =>
      readdirSync(join(root, folder), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${folder}/${name}`),
    );
    expect(folders.filter((folder) => !described.has(folder))).toEqual([]);
  });
});
