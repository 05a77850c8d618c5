/**
 * Compiles real responses of the routes that WordPress has, in each context, against `wp-types`,
 * the types that TypeScript programs use for WordPress's REST interface.
 */

import { resolve } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";
import type { JsonObject } from "../../src/schema/types.js";
import type { CallOptions } from "../support/content-call.js";
import { idOf, ROLES } from "../support/content-site.js";
import { siteWith } from "../support/image-site.js";
import { plain } from "../support/images.js";

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts"],
  types: [],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
};

/** JSON has texts, which cannot be assigned to an enumeration even if it lists them. */
const withoutEnums = (text: string | undefined): string | undefined =>
  text
    ?.replaceAll(/\b(WP_\w+_Name)\.(\w+);/g, '"$2";')
    .replace(/export (?:const )?enum (\w+) \{([^}]*)\}/g, (_, name: string, members: string) => {
      const values = [...members.matchAll(/= ((?:"[^"]*"|'[^']*'|-?\d+))/g)].map(([, value]) => value);
      return `export type ${name} = ${values.join(" | ")};`;
    });

/** Returns the messages of the compiler, each with the line that it is about. */
function compile(source: string): readonly string[] {
  const name = resolve(import.meta.dirname, "responses.ts");
  const disk = ts.createCompilerHost(OPTIONS);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (file) => resolve(file) === name || disk.fileExists(file),
    readFile: (file) => (resolve(file) === name ? source : withoutEnums(disk.readFile(file))),
    getSourceFile(file, target) {
      const text = this.readFile(file);
      return text === undefined ? undefined : ts.createSourceFile(file, text, target);
    },
  };
  const program = ts.createProgram([name], OPTIONS, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const line = file?.getLineAndCharacterOfPosition(start).line ?? 0;
    const about = file?.text.split("\n")[line]?.slice(0, 100);
    return `${about}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
  });
}

/**
 * Replaces what WordPress itself sends unlike the types: it writes an object without members as
 * `[]`, its autosaves have a `preview_link`, and categories of patterns are a list of ids.
 */
function withoutDifferences(name: string, value: unknown): unknown {
  const isEmptyList = Array.isArray(value) && value.length === 0;
  if (name === "preview_link" || name === "wp_pattern_category") return undefined;
  if (!isEmptyList) return value;
  return TEXTS.has(name) ? undefined : OBJECTS.has(name) ? {} : value;
}

const TEXTS: ReadonlySet<string> = new Set(["title", "content", "excerpt"]);
const OBJECTS: ReadonlySet<string> = new Set(["meta", "provides_context", "supports", "example"]);

/** Responses that are compiled: a route that is lost would otherwise not be noticed. */
const COMPILED = 110;

const AVATARS = Object.fromEntries([24, 48, 96].map((size) => [size, `https://example.org/${size}.png`]));

const editor = {
  blockTypes: [{ name: "clinic/today", title: "Today", isDynamic: true, attributes: {} }],
  renderBlock: () => "<p>today</p>",
};

it("has the types that are published for WordPress, in every response", async () => {
  const site = siteWith({
    editor,
    menuLocations: { primary: { description: "Main" } },
    settings: { values: { email: "site@example.org" } },
    users: ROLES.map((role) => ({
      ...{ id: idOf(role), slug: role, name: role, roles: [role] },
      avatarUrls: AVATARS,
    })),
  });
  const call = async (request: string, more: Omit<CallOptions, "as"> = {}) => {
    const { status, body } = await site.call(request, { as: "administrator", ...more });
    expect([request, Math.floor(status / 100), body.code]).toEqual([request, 2, undefined]);
    return body;
  };
  const create = async (path: string, body: JsonObject): Promise<number> =>
    (await call(`POST /${path}`, { body })).id;
  const media = (await site.send("heart.jpg", await plain(700, 500).jpeg().toBuffer())).body.id;
  const category = await create("categories", { name: "News" });
  await create("tags", { name: "Tag" });
  const text = { title: "T", content: "C", excerpt: "E", status: "publish" };
  const post = await create("posts", { ...text, categories: [category], featured_media: media });
  await create(`posts/${post}`, { content: "changed" });
  const [{ id: revision }] = await call(`GET /posts/${post}/revisions`);
  const autosave = await create(`posts/${post}/autosaves`, { content: "unsaved" });
  const page = await create("pages", text);
  const block = await create("blocks", { ...text, wp_pattern_category: [] });
  const navigation = await create("navigation", text);
  const menu = await create("menus", { name: "Main", locations: ["primary"] });
  const item = await create("menu-items", {
    ...{ title: "Home", menus: menu, status: "publish" },
    ...{ type: "post_type", object: "page", object_id: page },
  });

  /** The route with the type of its response; `contexts`: of its query. */
  const responses: readonly (readonly [route: string, type: string, contexts?: readonly string[]])[] = [
    ["posts", "Posts"],
    [`posts/${post}`, "Post"],
    [`posts/${post}/revisions`, "Revisions"],
    [`posts/${post}/revisions/${revision}`, "Revision"],
    [`posts/${post}/autosaves`, "Revisions"],
    [`posts/${post}/autosaves/${autosave}`, "Revision"],
    ["pages", "Pages"],
    [`pages/${page}`, "Page"],
    ["media", "Attachments"],
    [`media/${media}`, "Attachment"],
    ["blocks", "Blocks"],
    [`blocks/${block}`, "Block"],
    ["navigation", "Navigation_Menus"],
    [`navigation/${navigation}`, "Navigation_Menu"],
    ["menus", "Menus"],
    [`menus/${menu}`, "Menu"],
    ["menu-items", "Menu_Items"],
    [`menu-items/${item}`, "Menu_Item"],
    ["menu-locations", "Menu_Locations"],
    ["menu-locations/primary", "Menu_Location"],
    ["categories", "Categories"],
    [`categories/${category}`, "Category"],
    ["tags", "Tags"],
    ["wp_pattern_category", "Terms"],
    ["taxonomies", "Taxonomies", ["view", "edit"]],
    ["taxonomies/category", "Taxonomy"],
    ["types", "Types", ["view", "edit"]],
    ["types/post", "Type"],
    ["statuses", "Statuses", ["view", "edit"]],
    ["statuses/publish", "Status"],
    ["users", "Users"],
    ["users/1", "User"],
    ["users/me", "User"],
    ["search", "Search_Results", ["view", "embed"]],
    ["settings", "Settings", [""]],
    ["themes", "Themes", [""]],
    ["block-types", "Block_Types"],
    ["block-types/clinic/today", "Block_Type"],
    ["block-patterns/patterns", "Block_Patterns", [""]],
    ["block-patterns/categories", "Block_Pattern_Categories", [""]],
    ["block-renderer/clinic/today", "Rendered_Block", ["edit"]],
    ["templates", "Templates", ["edit"]],
  ];
  const lines = [
    'import type * as wp from "wp-types";',
    "type Embedded<T> = T extends readonly (infer Item)[] ? Partial<Item>[] : Partial<T>;",
  ];
  for (const [route, type, contexts = ["view", "embed", "edit"]] of responses) {
    for (const context of contexts) {
      const query = context === "" ? {} : { context };
      const response = JSON.stringify(await call(`GET /${route}`, { query }), withoutDifferences);
      const published = `wp.WP_REST_API_${type}`;
      const expected = context === "embed" ? `Embedded<${published}>` : published;
      lines.push(`/* ${route} ${context} */ export const r${lines.length}: ${expected} = ${response};`);
    }
  }
  expect(lines.length).toBe(COMPILED + 2);
  expect(compile(lines.join("\n"))).toEqual([]);
});
