/**
 * Finds the error codes in the source of the content service, and looks for each in the OpenAPI
 * document. Every test compares the responses that it gets; this one finds codes that none gets.
 */

import ts from "typescript";
import { expect, it } from "vitest";
import type { JsonObject } from "../../../src/schema/types.js";
import { contentSite } from "../../support/content-site.js";
import { eachNode, type SourceFile, sourceFiles } from "../../support/source-files.js";

interface FoundCode {
  readonly code: string;
  /** Empty if the status is not written next to the code. */
  readonly statuses: readonly number[];
  readonly file: string;
}

const CODE = /^[a-z]+(?:_[a-z]+)+$/;
const isMessage = (node: ts.Node | undefined): boolean =>
  node !== undefined &&
  (ts.isStringLiteral(node) || ts.isTemplateLiteral(node)) &&
  /^["'`][A-Z]/.test(node.getText());

/** A code is written before a sentence, as arguments of a call or members of a tuple. */
function codesIn(source: SourceFile): readonly FoundCode[] {
  const found: FoundCode[] = [];
  eachNode(source, (node) => {
    const isCall = ts.isCallExpression(node) || ts.isNewExpression(node);
    const parts = isCall ? node.arguments : ts.isArrayLiteralExpression(node) ? node.elements : undefined;
    const callee = isCall ? node.expression.getText() : "";
    if (parts === undefined || callee.includes("PostbellError")) return;
    for (const [index, part] of parts.entries()) {
      const isCode = ts.isStringLiteral(part) && CODE.test(part.text);
      if (!isCode || (callee !== "refusal" && !isMessage(parts[index + 1]))) continue;
      const status = Number(parts[index - 1]?.getText());
      const statuses = callee === "refusal" ? [401, 403] : Number.isInteger(status) ? [status] : [];
      found.push({ code: part.text, statuses, file: source.path });
    }
  });
  return found;
}

/** The codes of each status of the document. */
function documentedCodes(): ReadonlyMap<number, ReadonlySet<string>> {
  const { components } = contentSite().openApi() as { components: { responses: JsonObject } };
  const errors = Object.entries(components.responses).filter(([name]) => name.startsWith("Error"));
  return new Map(
    errors.map(([name, response]) => {
      const { content } = response as unknown as {
        content: { "application/json": { schema: { properties: { code: { enum: readonly string[] } } } } };
      };
      const { code } = content["application/json"].schema.properties;
      return [Number(name.replace("Error", "")), new Set(code.enum)];
    }),
  );
}

it("describes each error code in the source with its status", () => {
  const documented = documentedCodes();
  const all = new Set([...documented.values()].flatMap((codes) => [...codes]));
  const found = sourceFiles()
    .filter(({ path }) => path.startsWith("src/content/"))
    .flatMap(codesIn);
  const missing = found.filter(({ code, statuses }) =>
    statuses.length === 0 ? !all.has(code) : statuses.some((status) => !documented.get(status)?.has(code)),
  );
  expect(missing).toEqual([]);
  expect(found.length).toBeGreaterThan(80);
  expect(found.filter(({ statuses }) => statuses.length > 0).length).toBeGreaterThan(60);
});
