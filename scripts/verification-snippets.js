// The programs of docs/guides/subscribe.md that verify a signature, for the page of the portal. The
// guide's tests run them.

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

const GUIDE = resolve("docs", "guides", "subscribe.md");
const BLOCK = /^```(\w+) verifies\n([\s\S]*?)^```$/gm;

/** The languages on the page, in its order, by the language of the guide's blocks. */
const LANGUAGES = { js: "Node", python: "Python", php: "PHP", go: "Go" };

/** Returns the guide's file, and the module behind `virtual:verification-snippets`. */
export async function loadSnippets() {
  const blocks = [...(await readFile(GUIDE, "utf8")).matchAll(BLOCK)];
  const snippets = Object.entries(LANGUAGES).map(([name, language]) => {
    // The last one in a language needs no package.
    const found = blocks.findLast(([, block]) => block === name);
    if (found === undefined) throw new Error(`${GUIDE} has no program in ${language} that verifies.`);
    return { language, code: found[2].trimEnd() };
  });
  return { file: GUIDE, code: `export const snippets = ${JSON.stringify(snippets)};\n` };
}
