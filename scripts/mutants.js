// Plants 200 faults, one at a time, in the code that decides about deliveries and rights, and runs
// the tests of that code. A fault that no test notices is printed. Run it on a clone: it changes
// files.
//
//   node scripts/mutants.js             all groups
//   node scripts/mutants.js queue       one group
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { filesBelow, root } from "./house.js";

const DELIVERY = ["test/webhooks/delivery", "test/storage/memory/storage.test.ts", "test/storage/queue"];

/** The files of a group, the tests that should notice a fault in them, and the number of faults. */
const GROUPS = {
  queue: { files: filesBelow("storage/queue"), tests: DELIVERY, faults: 50 },
  outcome: {
    files: ["outcome.ts", "endpoint-health.ts", "explanation.ts", "slots.ts"].map(
      (file) => `src/webhooks/delivery/${file}`,
    ),
    tests: ["test/webhooks/delivery"],
    faults: 40,
  },
  schedule: {
    files: ["src/webhooks/delivery/retry-schedule.ts", "src/core/retry.ts"],
    tests: ["test/webhooks/delivery", "test/core/retry.test.ts"],
    faults: 20,
  },
  signature: { files: filesBelow("src/signature"), tests: ["test/signature", "test/receiver"], faults: 30 },
  addresses: {
    files: ["src/outbound/address-policy.ts"],
    tests: ["test/outbound/address-policy.isolated.test.ts", "test/outbound/outbound.isolated.test.ts"],
    faults: 30,
  },
  permissions: {
    files: filesBelow("src/content/auth"),
    tests: ["test/content/auth", "test/content/users", "test/content/authenticate.test.ts"],
    faults: 30,
  },
};

const SWAPS = new Map([
  ["<", "<="],
  ["<=", "<"],
  [">", ">="],
  [">=", ">"],
  ["===", "!=="],
  ["!==", "==="],
  ["+", "-"],
  ["-", "+"],
  ["*", "/"],
  ["/", "*"],
  ["&&", "||"],
  ["||", "&&"],
  ["??", "&&"],
  ["min", "max"],
  ["max", "min"],
  ["some", "every"],
  ["every", "some"],
  ["true", "false"],
  ["false", "true"],
]);

/** Returns the text that takes the node's place, or undefined where no fault is planted. */
const mutate = (/** @type {ts.Node} */ node, /** @type {string} */ text) => {
  if (ts.isBinaryExpression(node)) {
    const operator = node.operatorToken.getText();
    const swapped = SWAPS.get(operator);
    const joinsTexts = operator === "+" && /["'`]/.test(text);
    if (!swapped || joinsTexts) return undefined;
    return `${node.left.getText()} ${swapped} ${node.right.getText()}`;
  }
  if (ts.isPrefixUnaryExpression(node) && text.startsWith("!")) return text.slice(1);
  if (ts.isNumericLiteral(node)) return `(${text} + 1)`;
  if (node.kind === ts.SyntaxKind.TrueKeyword || node.kind === ts.SyntaxKind.FalseKeyword)
    return SWAPS.get(text);
  if (ts.isIdentifier(node) && ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) {
    return SWAPS.get(text);
  }
  if (ts.isConditionalExpression(node)) {
    return `(${node.condition.getText()}) ? ${node.whenFalse.getText()} : ${node.whenTrue.getText()}`;
  }
  if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) return ";";
  return undefined;
};

/** Lists the faults that can be planted in a file; types and texts of errors are left alone. */
const listFaults = (/** @type {string} */ file) => {
  const source = readFileSync(join(root, file), "utf8");
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  /** @type {{ file: string, line: number, from: string, to: string, mutated: string }[]} */
  const faults = [];
  const visit = (/** @type {ts.Node} */ node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isThrowStatement(node)) return;
    const from = node.getText();
    const to = mutate(node, from);
    if (to !== undefined && to !== from) {
      const line = tree.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      const mutated = source.slice(0, node.getStart()) + to + source.slice(node.getEnd());
      faults.push({ file, line, from, to, mutated });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return faults;
};

/** Takes `count` items at equal distances. */
const spread = (/** @type {ReturnType<typeof listFaults>} */ items, /** @type {number} */ count) =>
  items.length <= count
    ? items
    : Array.from({ length: count }, (_, index) => items[Math.floor((index * items.length) / count)]);

const passes = (/** @type {string[]} */ tests) => {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const projects = ["--project", "shared", "--project", "isolated"];
  const run = spawnSync(process.execPath, [vitest, "run", ...projects, "--bail=1", ...tests], {
    cwd: root,
    timeout: 120_000,
  });
  // A fault that makes a loop endless is noticed too.
  return run.status === 0;
};

const chosen = process.argv.slice(2);
let planted = 0;
let survived = 0;
for (const [name, { files, tests, faults }] of Object.entries(GROUPS)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  if (!passes(tests)) throw new Error(`The tests of ${name} fail without a fault.`);
  let alive = 0;
  const list = spread(files.flatMap(listFaults), faults);
  for (const { file, line, from, to, mutated } of list) {
    const path = join(root, file);
    const source = readFileSync(path, "utf8");
    writeFileSync(path, mutated);
    try {
      if (!passes(tests)) continue;
      alive += 1;
      const short = (/** @type {string} */ text) => text.replace(/\s+/g, " ").slice(0, 60);
      console.log(`  ${file}:${line}  ${short(from)}  →  ${short(to)}`);
    } finally {
      writeFileSync(path, source);
    }
  }
  planted += list.length;
  survived += alive;
  console.log(`${name}: ${list.length - alive} of ${list.length} faults noticed`);
}
console.log(`all: ${planted - survived} of ${planted} faults noticed`);
