/** The links in all Markdown files lead somewhere. */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { allMarkdown, anchorsOf, guides, linksOf } from "./support/markdown.js";

const root = resolve(import.meta.dirname, "..");

describe("links", () => {
  it.each(allMarkdown)("of $path lead to files and headings that exist", (file) => {
    const broken = linksOf(file).filter(({ path, anchor }) => {
      if (path.startsWith("..") || !existsSync(join(root, path))) return true;
      if (anchor === undefined) return false;
      const target = allMarkdown.find((other) => other.path === path);
      return !target || !anchorsOf(target).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  it("lead from the index to every page of the documentation", () => {
    const index = guides.find(({ path }) => path === "docs/README.md");
    if (!index) throw new Error("docs/README.md is missing");
    const linked = new Set(linksOf(index).map(({ path }) => path));
    const pages = guides.map(({ path }) => path).filter((path) => /^docs\/(?!README|decisions\/)/.test(path));
    expect(pages.filter((path) => !linked.has(path))).toEqual([]);
  });
});
