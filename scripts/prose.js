// Finds phrases that the language of the house avoids: `node scripts/prose.js [folder…]` prints
// them, and `test/package/language.test.ts` allows none.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { root, TOP_ROOMS } from "./house.js";

/** Comments, docstrings, messages, titles of tests and pages: everything a reader meets. */
export const PROSE_ROOMS = [
  ...TOP_ROOMS,
  "test",
  "bench",
  "scripts",
  "examples",
  "docs",
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  ".ci/run",
];

/** Recorded data, generated pages, and the two files that list the phrases. */
const EXEMPT =
  /^(?:docs\/api\/|test\/data\/|test\/conformance\/(?:cases|fixtures)|scripts\/prose\.js$|test\/package\/language\.test\.ts$)/;

const RULES = [
  { phrase: "under way", pattern: /\bunder[ -]way\b/i, instead: "in flight, running" },
  { phrase: "anew", pattern: /\banew\b/i, instead: "again, new" },
  { phrase: "is none", pattern: /\b(?:is|are|was|were) none\b/, instead: "there is no …, is missing" },
  { phrase: "put off", pattern: /\bput(?:s|ting)? off\b/i, instead: "reschedule, postpone" },
  { phrase: "of which", pattern: /\bof which\b/i, instead: "a sentence of its own" },
  { phrase: "as far as", pattern: /\bas far as\b/i, instead: "a plain condition" },
  {
    phrase: "the interface document",
    pattern: /\binterface document\b/i,
    instead: "the registration API, the OpenAPI document, or the rule itself",
  },
  { phrase: "asked again", pattern: /\basked again\b/i, instead: "retried, called again" },
  {
    phrase: "the reference",
    pattern: /\bthe reference(?:'s|\b(?! (?:to|that|of|in|slot|form|is|are|site|resolves|points)))/i,
    instead: "WordPress, the API reference",
  },
  { phrase: "What …", pattern: /^\s*(?:\/\*\*|\*|\/\/) What /, instead: "Returns …, Describes …" },
  { phrase: "Whether …", pattern: /^\s*(?:\/\*\*|\*|\/\/) Whether /, instead: "True if …" },
];

/** The widest line of a comment: prose wraps at 100 columns, and a link or a table may not. */
const WIDEST_COMMENT = 100;

/** @param {string} path */
const listFiles = (path) =>
  statSync(join(root, path)).isDirectory()
    ? readdirSync(join(root, path), { recursive: true, encoding: "utf8" })
        .filter((name) => /\.(?:[cm]?[jt]s|lua|sql|md)$/.test(name) && !/node_modules|^\.guides/.test(name))
        .map((name) => join(path, name))
    : [path];

/** @param {readonly string[]} [rooms] */
export const findForbiddenPhrases = (rooms = PROSE_ROOMS) => {
  /** @type {string[]} */
  const found = [];
  for (const file of rooms.flatMap(listFiles).filter((path) => !EXEMPT.test(path))) {
    const lines = readFileSync(join(root, file), "utf8").split("\n");
    for (const [index, line] of lines.entries()) {
      // A phrase may be broken over two lines of a comment or paragraph.
      const next = (lines[index + 1] ?? "").replace(/^\s*(?:\/\/|--|\*(?!\/))?\s*/, "");
      for (const { phrase, pattern, instead } of RULES)
        if (pattern.test(line) || (!pattern.test(next) && pattern.test(`${line} ${next}`)))
          found.push(`${file}:${index + 1} "${phrase}" → ${instead}: ${line.trim().slice(0, 120)}`);
      const isComment = /^\s*(?:\/\/|\/?\*)/.test(line) && /\.(?:[cm]?[jt]s|lua)$/.test(file);
      if (isComment && line.length > WIDEST_COMMENT && !/https?:|\||eslint|biome-ignore/.test(line))
        found.push(`${file}:${index + 1} comment of ${line.length} columns, at most ${WIDEST_COMMENT}`);
    }
  }
  return found;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const rooms = process.argv.slice(2).map((path) => relative(root, resolve(path)));
  const found = findForbiddenPhrases(rooms.length > 0 ? rooms : PROSE_ROOMS);
  for (const line of found) console.log(line);
  console.log(`${found.length} found`);
}
