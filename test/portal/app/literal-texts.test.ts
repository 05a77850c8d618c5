/** No file of the page has texts of its own: they would stay English in every language. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { english } from "../../../src/portal/texts/en.js";

const ROOT = "src/portal/app";
const files = readdirSync(ROOT, { recursive: true })
  .map(String)
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => join(ROOT, name));

/** Names of keys, and what HTTP and programs call things in every language. */
const NAMES = new Set([
  ...["Arrow", "Enter", "Escape", "Esc", "Home", "End", "Tab", "Files"],
  ...["Meta+K", "Control+K", "Ctrl K", "Postbell", "UTC"],
]);
/** Constants of code and of names that are the same in every language. */
const CONSTANTS = new Set(["STATUS_TEXTS", "RECEIVER", "CONTROLS", "TYPING", "buildFigure"]);
/** Attributes that hold no text for a reader. */
const TECHNICAL =
  /^(?:class|id|role|type|kind|rel|href|sandbox|d|x|y|points|viewBox|transform|patternTransform|for|name|method)$/;

const isText = (text: string): boolean =>
  /\p{L}{2,},? \p{L}+/u.test(text.trim()) || /^\p{Lu}\p{Ll}+\b[^/]*$/u.test(text.trim());

/** True for a text that a program reads: an import, a type, an attribute such as a class. */
function isTechnical(node: ts.Node): boolean {
  for (let at = node.parent; at !== undefined; at = at.parent) {
    if (ts.isImportDeclaration(at) || ts.isExportDeclaration(at) || ts.isTypeNode(at)) return true;
    if (ts.isJsxAttribute(at)) return TECHNICAL.test(at.name.getText());
    if (ts.isNewExpression(at) && at.expression.getText() === "Error") return !/texts/.test(at.getText());
    if (ts.isVariableDeclaration(at) && CONSTANTS.has(at.name.getText())) return true;
    if (
      ts.isCallExpression(at) &&
      /(?:querySelector(?:All)?|closest|matches|matchMedia)$/.test(at.expression.getText())
    )
      return true;
    if (ts.isFunctionDeclaration(at) && at.name?.text === "buildCurlCommand") return true;
    if (ts.isBindingElement(at) && at.propertyName?.getText() === "class") return true;
    if (ts.isPropertyAssignment(at) && /^(?:class|kind)$/.test(at.name.getText())) return true;
  }
  return false;
}

/** Returns the texts that stand in a source file, each with its line. */
function findTexts(file: string, source: string): string[] {
  const parsed = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const note = (node: ts.Node, text: string): void => {
    const { line } = parsed.getLineAndCharacterOfPosition(node.getStart());
    found.push(`${file}:${line + 1} ${text.trim()}`);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node)) {
      const tag = ts.isJsxElement(node.parent) ? node.parent.openingElement.tagName.getText() : "";
      if (/\p{L}/u.test(node.text) && !NAMES.has(node.text.trim()) && tag !== "code" && tag !== "kbd")
        note(node, node.text);
    } else if (
      ts.isStringLiteralLike(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddle(node) ||
      ts.isTemplateTail(node)
    ) {
      if (
        isText(node.text) &&
        !NAMES.has(node.text.replace(/(?:Down|Up|Left|Right)$/, "")) &&
        !isTechnical(node)
      )
        note(node, node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(parsed);
  return found;
}

describe("the sources of the page", () => {
  it("have no text that is not in the table", () => {
    expect(files.length).toBeGreaterThan(40);
    expect(files.flatMap((file) => findTexts(file, readFileSync(file, "utf8")))).toEqual([]);
  });

  it.each([
    "<p>Hello</p>",
    '<a title="Open it">{x}</a>',
    '<b>{isOpen ? "Close it" : x}</b>',
    `<b>{\`\${count} files left\`}</b>`,
    'say("The webhook was deleted.")',
    'const label = "Delete"',
    'throw new Error(texts.a ?? "The file is too large")',
  ])("would be refused with %s", (source) => {
    expect(
      findTexts("a.tsx", `const view = () => { ${source.startsWith("<") ? `return ${source}` : source} }`),
    ).toHaveLength(1);
  });

  it("use every text of the table", () => {
    const uses = [...files, "src/portal/page.ts"].map((file) => findUses(readFileSync(file, "utf8")));
    expect(listTexts(english).filter((path) => !uses.some((isUsed) => isUsed(path)))).toEqual([]);
  });

  it.each([
    ["const a = texts.page.skip", "page.skip"],
    ["const words = texts.page; show(words.skip)", "page.skip"],
    ["const { page } = texts; show(page.skip)", "page.skip"],
    ["const { page: words } = texts; show(words.skip)", "page.skip"],
    ["const { skip, ...rest } = texts.page", "page.skip"],
    ['const NAMES = ["menu"]; show(texts.frame[name])', "frame.menu"],
    ["show(texts.health[name])", "health.failing"],
  ])("use with %s the text %s", (code, path) => {
    expect(findUses(code)(path)).toBe(true);
  });

  it.each([
    "const skip = texts.page.notFound",
    "const words = texts.frame; show(words.skip)",
    "show(texts.content.skip)",
    "show(texts.page[name])",
  ])("would not use page.skip with %s", (code) => {
    expect(findUses(code)("page.skip")).toBe(false);
  });
});

/** Groups whose texts are named by values of the API: all of them are used. */
const KEYED = [
  ...["audit", "failures", "reasons", "health", "accounts.kinds", "activity.fields"],
  ...["content.fields", "content.hints", "content.kinds", "content.statuses"],
  ...["errors.byField", "errors.byCode", "errors.byStatus"],
  ...["diagnosis.titles", "diagnosis.fixes", "diagnosis.hints", "diagnosis.reasons", "diagnosis.steps"],
];

/** Lists the paths of all texts of a table. */
const listTexts = (table: object, path: string[] = []): string[] =>
  Object.entries(table).flatMap(([name, entry]: [string, string | object]) =>
    typeof entry === "object" && !("other" in entry)
      ? listTexts(entry, [...path, name])
      : [[...path, name].join(".")],
  );

/**
 * Returns a function that says if a source uses the text of a path. It follows names that stand for
 * a group (`const words = texts.page`). With `texts.page[name]` a source uses the texts of the
 * group that it names anywhere.
 */
function findUses(code: string): (path: string) => boolean {
  /** The paths that a name stands for: several functions may use the same name. */
  const names = new Map<string, Set<string>>([
    ["texts", new Set([""])],
    // Of src/portal/page.ts.
    ["table", new Set([""])],
    ["errors", new Set(["errors"])],
  ]);
  const join = (path: string, name: string): string => (path === "" ? name : `${path}.${name}`);
  const resolve = (chain: string): string[] => {
    const [root = "", ...rest] = chain.split(".");
    return [...(names.get(root) ?? [])].map((path) => rest.reduce(join, path));
  };
  const used = new Set<string>();
  const keyed = new Set<string>();
  const addName = (name: string, path: string): void => {
    names.set(name, new Set([...(names.get(name) ?? []), path]));
    used.add(path);
  };
  for (const [, pattern = "", name = "", chain = ""] of code.matchAll(
    /(?:const|let) (?:\{([^{}]*)\}|(\w+)) = ([\w.]+)(?=[;\s]|$)/g,
  ))
    for (const path of resolve(chain)) {
      if (name !== "") addName(name, path);
      for (const part of pattern.split(",").map((each) => each.trim())) {
        const [from = "", to = from] = part.split(/\s*:\s*/);
        if (part.startsWith("...")) keyed.add(path);
        else if (from !== "") addName(to, join(path, from));
      }
    }
  for (const [, chain = "", end] of code.matchAll(/(?<![\w.])(\w+(?:\.\w+)*)(\[| as )?/g))
    for (const path of resolve(chain)) {
      used.add(path);
      if (end !== undefined) keyed.add(path);
    }
  return (path) => {
    const [group, name] = [path.slice(0, path.lastIndexOf(".")), path.slice(path.lastIndexOf(".") + 1)];
    if (used.has(path)) return true;
    if (KEYED.some((each) => path.startsWith(`${each}.`))) return true;
    return keyed.has(group) && new RegExp(`\\b${name}\\b`).test(code);
  };
}
