/** The Markdown files of the project: their code blocks, their headings and their links. */

import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

export interface Block {
  /** First word of the info string. */
  readonly language: string;
  /**
   * The marker that follows it: `continues`, `verifies`, `postgres` (runs with a DATABASE_URL),
   * `first-screen` (test/package/first-screen.test.ts runs them together), or `not-run: <reason>`.
   */
  readonly note: string;
  readonly code: string;
  /** Of its first fence, from 1. */
  readonly line: number;
}

export interface MarkdownFile {
  /** From the root of the project. */
  readonly path: string;
  readonly text: string;
}

const read = (path: string): MarkdownFile => ({ path, text: readFileSync(join(root, path), "utf8") });

function below(folder: string): MarkdownFile[] {
  return (
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      // The API reference is generated.
      .filter((name) => name.endsWith(".md") && !/^api[\\/]/.test(name))
      .sort()
      .map((name) => read(join(folder, name)))
  );
}

export const readme = read("README.md");

/** The files whose blocks are run. */
export const guides = [readme, ...below("docs")];

export const allMarkdown: readonly MarkdownFile[] = [
  readme,
  ...readdirSync(root)
    .filter((name) => name.endsWith(".md") && name !== "README.md")
    .map(read),
  ...below("docs"),
];

export function blocksOf({ text }: MarkdownFile): Block[] {
  return [...text.matchAll(/^```(\w+)(?: (.*))?\n([\s\S]*?)^```$/gm)].map((match) => {
    const [, language = "", note = "", code = ""] = match;
    return { language, note, code, line: text.slice(0, match.index).split("\n").length };
  });
}

const withoutCode = (text: string): string =>
  text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "``");

/** Where a link may lead in a file: the headings, named as GitHub names them. */
export function anchorsOf({ text }: MarkdownFile): ReadonlySet<string> {
  const anchors = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id));
  const headings = text.replace(/^```[\s\S]*?^```$/gm, "").matchAll(/^#{1,6} (.*)$/gm);
  for (const [, heading = ""] of headings) {
    const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/\\/g, "");
    const slug = shown
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

export interface Link {
  /** The file it leads to, from the root of the project. */
  readonly path: string;
  readonly anchor: string | undefined;
}

/** Where files are that the package leaves out. Packed files link to them there. */
const HOME =
  /^https:\/\/(?:github\.com\/postbell\/postbell\/(?:blob|tree)|raw\.githubusercontent\.com\/postbell\/postbell)\/main\//;

/** The site, which has the pages of `docs`. */
const SITE = /^https:\/\/postbell\.github\.io\/postbell\//;

const toSitePath = (route: string): string => {
  if (route === "" || route.startsWith("api/")) return "README.md";
  return route === "guides/" ? "docs/README.md" : `docs/${route}.md`;
};

/**
 * The links of a file to files of the project on the homepage or the site, read as files of this
 * clone.
 */
export function homeLinksOf({ text }: MarkdownFile): Link[] {
  return [...withoutCode(text).matchAll(/\]\((https:[^)\s]*)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => HOME.test(target) || SITE.test(target))
    .map((target) => {
      const [path = "", anchor] = target.replace(HOME, "").replace(SITE, "").split("#");
      return { path: SITE.test(target) ? toSitePath(path) : path, anchor };
    });
}

/** The relative links of a file to files of the project. */
export function linksOf({ path, text }: MarkdownFile): Link[] {
  return [...withoutCode(text).matchAll(/\]\((?!\w+:)([^)\s]*)\)/g)].map(([, target = ""]) => {
    const [file = "", anchor] = target.split("#");
    const from = join(root, path);
    const to = file === "" ? from : resolve(from, "..", decodeURIComponent(file));
    return { path: relative(root, to), anchor };
  });
}

/** Matches code spans that name a file or folder of the project: `src/http`, `router.ts`. */
const PATH = /^(?:[\w.-]+\/)*[\w-][\w.-]*\.(?:ts|js|lua|json|md|css)$|^(?!postbell\/)[\w.-]+(?:\/[\w.-]+)+$/;
const ROOMS = new Set(["src", "adapters", "storage"]);

/**
 * The files and folders that code spans name. A span is read from the root of the project, or from
 * the folder that begins its row of a table: in the row of `src/http`, `router.ts` stands for
 * `src/http/router.ts`.
 */
export function pathsNamedIn({ text }: MarkdownFile): { readonly path: string; readonly folder: string }[] {
  return text
    .replace(/^```[\s\S]*?^```$/gm, "")
    .split("\n")
    .flatMap((line) => {
      const folder = /^\| `([\w/-]+)` \|/.exec(line)?.[1] ?? "";
      return [...line.matchAll(/`([^`\n]+)`/g)]
        .map(([, span = ""]) => span)
        .filter((span) => PATH.test(span) || ROOMS.has(span))
        .map((path) => ({ path, folder }));
    });
}

const FILE = /^(?:[\w.[\]-]+\/)*[\w-][\w.-]*\.(?:tsx?|[cm]?js|lua|astro)$/;
const CODE = /^[\w.]+(?:\(.*\))?$/;
const CAMEL_CASE = /^[a-zA-Z]*[a-z][A-Z]\w*$/;

/** The files and the names in camel case in code spans: `mount.ts`, `createX(…)`, `a.bC`. */
export function codeNamedIn({ text }: MarkdownFile): {
  readonly files: readonly string[];
  readonly names: readonly string[];
} {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "");
  const spans = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
  const names = spans
    .filter((span) => CODE.test(span) && !FILE.test(span))
    .flatMap((span) => span.replace(/\(.*/, "").split("."))
    .filter((name) => CAMEL_CASE.test(name));
  return { files: spans.filter((span) => FILE.test(span)), names };
}
