/** The project's own source as syntax trees, for tests that look at all of it. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { root, TOP_ROOMS } from "../../scripts/house.js";

export interface SourceFile {
  /** From the project's root. */
  readonly path: string;
  readonly text: string;
}

export const sourceFiles = (): readonly SourceFile[] =>
  TOP_ROOMS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.[cm]?[jt]sx?$/.test(name))
      .map((name) => {
        const path = join(folder, name).replaceAll("\\", "/");
        return { path, text: readFileSync(join(root, path), "utf8") };
      }),
  );

/** Calls `visit` with each node of the file. */
export function eachNode({ path, text }: SourceFile, visit: (node: ts.Node) => void): void {
  const walk = (node: ts.Node): void => {
    visit(node);
    ts.forEachChild(node, walk);
  };
  walk(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
}
