import ts from "typescript";
import { afterAll, describe, expect, it } from "vitest";
import { type Expression, refusalOf, saveJudged } from "../support/expression-check.js";
import { eachNode, type SourceFile, sourceFiles } from "../support/source-files.js";

/**
 * Expressions that are refused and stay, with the reason why no input can make them slow. Prefer to
 * write the expression differently: a maximum of the text in front of it is easily lost.
 */
const EXCEPTIONS: readonly { readonly file: string; readonly expression: string; readonly reason: string }[] =
  [
    {
      file: "src/json-schema/data-formats.ts",
      expression: 'new RegExp(text, "u")',
      reason: "only checks the syntax of a text of bounded length; it never matches",
    },
    {
      file: "src/json-schema/pattern.ts",
      expression: 'new RegExp(source, "u")',
      reason: "only checks the syntax of a pattern of the host; it never matches",
    },
    {
      file: "src/json-schema/pattern.ts",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the source of a program
      expression: 'new RegExp(`^${atom}$`, "u")',
      reason: "one class or character of a pattern, matched against one character",
    },
  ];

interface FoundExpression extends Expression {
  /** As it stands in the file. */
  readonly text: string;
}

/** Methods that make an expression of a text. */
const TAKES_EXPRESSION: ReadonlySet<string> = new Set(["match", "matchAll", "search"]);

const constantOf = (node: ts.Node | undefined): string | undefined =>
  node !== undefined && ts.isStringLiteralLike(node) ? node.text : undefined;

/** The expressions of a file, including those whose source is known only at run time. */
function expressionsOf(file: SourceFile): {
  readonly known: readonly FoundExpression[];
  readonly unknown: readonly string[];
} {
  const known: FoundExpression[] = [];
  const unknown: string[] = [];
  eachNode(file, (node) => {
    const text = node.getText();
    if (ts.isRegularExpressionLiteral(node)) {
      const end = text.lastIndexOf("/");
      known.push({ source: text.slice(1, end), flags: text.slice(end + 1), text });
      return;
    }
    if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return;
    const [first, second] = node.arguments ?? [];
    const isConstructor = /^(?:globalThis\.)?RegExp$/.test(node.expression.getText());
    const isMethod =
      ts.isPropertyAccessExpression(node.expression) && TAKES_EXPRESSION.has(node.expression.name.text);
    const source = constantOf(first);
    const flags = second === undefined ? "" : constantOf(second);
    if (source !== undefined && (isConstructor || isMethod)) known.push({ source, flags: flags ?? "", text });
    else if (isConstructor && !(first && ts.isRegularExpressionLiteral(first))) unknown.push(text);
  });
  return { known, unknown };
}

function refusedIn(file: SourceFile): readonly string[] {
  const { known, unknown } = expressionsOf(file);
  const slow = known.flatMap((expression) => {
    const refusal = refusalOf(expression);
    return refusal === undefined ? [] : [{ text: expression.text, refusal }];
  });
  return [...slow, ...unknown.map((text) => ({ text, refusal: "only known when it runs" }))]
    .filter(({ text }) => !EXCEPTIONS.some((one) => one.file === file.path && one.expression === text))
    .map(({ text, refusal }) => `${file.path}: ${text}: ${refusal}`);
}

afterAll(saveJudged);

const inSource = (text: string): readonly string[] => refusedIn({ path: "src/example.ts", text });

const files = sourceFiles();
const withExpressions = files.filter((file) => {
  const { known, unknown } = expressionsOf(file);
  return known.length + unknown.length > 0;
});

describe("the check of regular expressions", () => {
  it.each([
    ["/\\/+$/", "quadratic where it may begin anywhere"],
    ["/<(\\/?)([a-zA-Z][^\\s/<>]*)[^<>]*>|<[!?/][^<>]*>/y", "two parts that take the same characters"],
    ["/^(?:a+)+$/", "exponential"],
    ['new RegExp("a*a*$")', "made of a text"],
    ['RegExp("a+$", "g")', "made without new"],
    ['text.match("a+$")', "made by a method"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source of a program
    ["new RegExp(`^${name}$`)", "made of a variable"],
  ])("refuses %s, %s", (text) => {
    expect(inSource(`const found = ${text};`)).toHaveLength(1);
  });

  it("accepts linear expressions, and does not take a division or a comment for one", () => {
    expect(inSource("const found = [/^[a-z]+$/, /[^\\s]/g, a / b / c]; // not /a+$/")).toEqual([]);
  });

  it("finds the expressions of the project", () => {
    expect(files.length).toBeGreaterThan(300);
    expect(withExpressions.flatMap((file) => expressionsOf(file).known).length).toBeGreaterThan(200);
  });
});

describe("the regular expressions", () => {
  it.each(withExpressions.map((file) => [file.path, file] as const))(
    "of %s are linear",
    (_path, file) => {
      expect(refusedIn(file)).toEqual([]);
    },
    120_000,
  );

  it("have no exception that is gone", () => {
    const gone = EXCEPTIONS.filter(({ file, expression }) => {
      const found = files.find(({ path }) => path === file);
      const { known = [], unknown = [] } = found === undefined ? {} : expressionsOf(found);
      return ![...known.map(({ text }) => text), ...unknown].includes(expression);
    });
    expect(gone).toEqual([]);
  });
});
