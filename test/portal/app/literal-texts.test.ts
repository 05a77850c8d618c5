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
    const code = [...files, "src/portal/page.ts"].map((file) => readFileSync(file, "utf8")).join("\n");
    const listUnused = (table: object, path: string[]): string[] =>
      Object.entries(table).flatMap(([name, entry]: [string, string | object]) => {
        if (typeof entry === "object" && !("other" in entry)) return listUnused(entry, [...path, name]);
        // A group that is read by a key that the API or the view gives uses all of its texts.
        const isUsed = code.includes(`${path.at(-1)}[`) || new RegExp(`\\b${name}\\b`).test(code);
        return isUsed ? [] : [[...path, name].join(".")];
      });
    const groups = ["audit", "failures", "reasons", "fields", "statuses", "overlaps", "hints", "kinds"];
    expect(
      listUnused(english, []).filter((path) => !groups.some((name) => path.includes(`${name}.`))),
    ).toEqual([]);
  });
});
