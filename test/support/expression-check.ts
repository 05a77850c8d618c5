/**
 * Judges regular expressions with recheck, and remembers the linear ones: judging all of the
 * project takes some seconds.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { checkSync } from "recheck/lib/browser.js";
import manifest from "recheck/package.json" with { type: "json" };

export interface Expression {
  readonly source: string;
  readonly flags: string;
}

/** Counted, never timed: the judgement is the same on a busy machine. */
const BOUNDS = {
  ...{ timeout: null, attackTimeout: null, incubationTimeout: null },
  ...{ attackLimit: 1_000_000, maxAttackStringSize: 10_000, incubationLimit: 5_000, maxGeneStringSize: 600 },
  ...{
    maxInitialGenerationSize: 100,
    maxGenerationSize: 30,
    crossoverSize: 10,
    mutationSize: 20,
    maxIteration: 5,
  },
} as const;

const root = resolve(import.meta.dirname, "..", "..");
const CACHE = resolve(root, "node_modules/.cache/postbell/linear-expressions.json");

/** Of the expression, the checker's version and the bounds it works within. */
const keyOf = ({ source, flags }: Expression): string =>
  createHash("sha256")
    .update(JSON.stringify([manifest.version, BOUNDS, source, flags]))
    .digest("base64url");

function readCache(): Set<string> {
  try {
    return new Set(JSON.parse(readFileSync(CACHE, "utf8")) as string[]);
  } catch {
    return new Set();
  }
}

const linear = readCache();
let isChanged = false;

/**
 * Without `*`, `+`, `?` and `{`: from each place where it may begin, it reads a fixed number of
 * characters once.
 */
const isFixed = (source: string): boolean =>
  !/[*+?{]/.test(
    source
      .replace(/\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\./g, "")
      .replace(/\[[^\]]*\]/g, "")
      .replace(/\(\?(?:[:=!]|<[=!]|<\w+>)/g, "("),
  );

/** Why the expression is refused; `undefined` for one that takes linear time. */
export function refusalOf(expression: Expression): string | undefined {
  if (isFixed(expression.source)) return undefined;
  const key = keyOf(expression);
  if (linear.has(key)) return undefined;
  const result = checkSync(expression.source, expression.flags, BOUNDS);
  if (result.status === "vulnerable") return result.complexity.summary;
  if (result.status === "unknown") return `not judged: ${result.error.kind}`;
  linear.add(key);
  isChanged = true;
  return undefined;
}

/** Remembers what was judged linear for the next run. */
export function saveJudged(): void {
  if (!isChanged) return;
  mkdirSync(dirname(CACHE), { recursive: true });
  const draft = `${CACHE}.${process.pid}`;
  writeFileSync(draft, JSON.stringify([...linear]));
  renameSync(draft, CACHE);
}
