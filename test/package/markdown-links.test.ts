/** The links in all Markdown files lead somewhere. */

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { filesBelow, TOP_ROOMS } from "../../scripts/house.js";
import {
  allMarkdown,
  anchorsOf,
  codeNamedIn,
  guides,
  homeLinksOf,
  linksOf,
  pathsNamedIn,
} from "../support/markdown.js";

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
    expect(read.map(({ path }) => path)).toContain("README.md");
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

/** Files that a page tells its reader to create. */
const FILES_OF_READERS = new Set(
  "server.mjs block-editor.js astro.config.mjs src/content.js src/pages/webhook.js src/pages/index.astro src/pages/[slug].astro src/pages/preview/[id].astro".split(
    " ",
  ),
);

/** Names of Node, HTTP, FHIR and other packages. */
const NAMES_OF_OTHERS = new Set([
  "KeyObject",
  "HttpOnly",
  "versionId",
  "RequestUtils",
  "purgeStale",
  "ttlAutopurge",
]);

/** Its first columns have names that exist no more. */
const CHANGES = "docs/guides/changes-before-1.0.md";

describe("code spans", () => {
  const rooms = [...TOP_ROOMS, "test", "bench", "scripts", "examples"];
  const files = rooms.flatMap((room) => filesBelow(room, /\.(?:tsx?|[cm]?js|lua)$/));
  const paths = new Set(files.map((path) => path.replaceAll("\\", "/")));
  const fileNames = new Set([...paths, ...readdirSync(root)].map((path) => basename(path)));
  const words = new Set(
    files
      .filter((path) => !path.startsWith("test"))
      .flatMap((path) => readFileSync(join(root, path), "utf8").match(/[A-Za-z_]\w*/g) ?? []),
  );
  const isThere = (file: string): boolean =>
    FILES_OF_READERS.has(file) ||
    (rooms.includes(file.split("/")[0] ?? "") ? paths.has(file) : fileNames.has(basename(file)));

  it.each(allMarkdown)("of $path name files, functions and options that exist", (page) => {
    const named = codeNamedIn(page);
    if (page.path === CHANGES) return;
    expect(named.files.filter((file) => !isThere(file))).toEqual([]);
    expect(named.names.filter((name) => !words.has(name) && !NAMES_OF_OTHERS.has(name))).toEqual([]);
  });
});
