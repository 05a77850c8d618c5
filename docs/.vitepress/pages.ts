/** The pages of the site: their Markdown files, their addresses and their order. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "../..");

const SITE = "https://postbell.github.io/postbell";
const REPOSITORY = "https://github.com/postbell/postbell";

/** Links to files that the package leaves out are absolute. */
const HOME =
  /^https:\/\/(?:github\.com\/postbell\/postbell\/(?:blob|tree)|raw\.githubusercontent\.com\/postbell\/postbell)\/main\//;

/** Pages that stand outside of `docs`, or elsewhere on the site than in it. */
const MOVED: Record<string, string> = {
  "README.md": "index.md",
  "docs/README.md": "guides/index.md",
  "docs/api/README.md": "api/index.md",
  // TypeDoc keeps clear of the type `Storage`, as if it were a file.
  "docs/api/postbell/storage-1.md": "api/postbell/storage.md",
  "CHANGELOG.md": "changelog.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security.md",
  "SEMVER.md": "semver.md",
};

const listMarkdown = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .sort();

/** Each file's place on the site. */
export const rewrites: Record<string, string> = {
  ...Object.fromEntries(listMarkdown("docs").map((path) => [path, path.replace(/^docs\//, "")])),
  ...MOVED,
};

const toRoute = (page: string): string => `/${page.replace(/(?:(^|\/)index)?\.md$/, "$1")}`;

/** The repository's path of what a file links to; undefined for links to elsewhere. */
function toPath(target: string, file: string): string | undefined {
  if (HOME.test(target)) return target.replace(HOME, "");
  if (/^(?:\w+:|#)/.test(target)) return undefined;
  return posix.join(dirname(relative(root, file)), target);
}

/** A link as the site has it: to a page, or to the repository if the site has no such page. */
export function toSiteLink(href: string, file: string): string {
  if (href.startsWith(`${SITE}/`)) return href.slice(SITE.length);
  const [target = "", anchor] = href.split("#");
  const path = toPath(target, file);
  if (target === "" || path === undefined) return href;
  const hash = anchor === undefined ? "" : `#${anchor}`;
  const page = rewrites[path];
  if (page !== undefined) return toRoute(page) + hash;
  if (!existsSync(join(root, path)))
    throw new Error(`${relative(root, file)} links to ${href}, which is missing`);
  return `${REPOSITORY}/${/\.\w+$/.test(path) ? "blob" : "tree"}/main/${path}${hash}`;
}

/** A picture's path from the file that shows it, so that it is part of the site. */
export function toPictureSource(source: string, file: string): string {
  const path = toPath(source, file);
  return path === undefined ? source : posix.join(".", relative(dirname(file), join(root, path)));
}

const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface SidebarLink {
  text: string;
  link: string;
}

export interface SidebarGroup {
  text: string;
  collapsed?: boolean;
  items: SidebarLink[];
}

const capitalise = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The groups and links of the table in docs/README.md, in its order. */
function readIndex(): SidebarGroup[] {
  const file = join(root, "docs/README.md");
  const groups: SidebarGroup[] = [];
  for (const [, task = "", cell = ""] of read("docs/README.md").matchAll(/^\| ([^|]*)\| ([^|]*)\|/gm)) {
    const links = [...cell.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, text = "", href = ""]) => ({
      text: capitalise(text),
      link: toSiteLink(href, file),
    }));
    if (links.length === 0) continue;
    if (task.trim() !== "") groups.push({ text: capitalise(task.trim()), items: [] });
    groups.at(-1)?.items.push(...links);
  }
  return groups;
}

const readTitle = (path: string): string => /^# (.+)$/m.exec(read(path))?.[1]?.replaceAll("`", "") ?? path;

/** A group with each page below a folder, by its title. */
function listFolder(folder: string): SidebarLink[] {
  return Object.entries(rewrites)
    .filter(([path]) => path.startsWith(`${folder}/`) && !path.endsWith("README.md"))
    .map(([path, page]) => ({ text: readTitle(path), link: toRoute(page) }))
    .sort((a, b) => a.text.localeCompare(b.text, "en"));
}

export const sidebar: Record<string, SidebarGroup[]> = {
  "/api/": [{ text: "API reference", items: listFolder("docs/api") }],
  "/": [...readIndex(), { text: "Decisions", collapsed: true, items: listFolder("docs/decisions") }],
};
