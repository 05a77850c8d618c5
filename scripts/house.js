// Measures the source: `node scripts/house.js` prints sizes and names of every room, and
// `test/package/architecture.test.ts` holds their limits.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** The folders whose source is part of the package. */
export const TOP_ROOMS = ["src", "adapters", "storage"];

/**
 * @typedef {{ file: string, name: string, line: number, lines: number, parameters: number,
 *   complexity: number, isComponent: boolean }} MeasuredFunction
 */

/** @param {string} folder @param {RegExp} [extension] */
export const filesBelow = (folder, extension = /\.tsx?$/) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => extension.test(name) && !name.includes("node_modules"))
    .map((name) => join(folder, name))
    .sort();

/** @param {string} file */
export const countLines = (file) => readFileSync(join(root, file), "utf8").split("\n").length - 1;

/** @param {string} file */
const parseFile = (file) =>
  ts.createSourceFile(file, readFileSync(join(root, file), "utf8"), ts.ScriptTarget.Latest, true);

/** @param {ts.Node} node */
const isFunction = (node) =>
  ts.isFunctionDeclaration(node) ||
  ts.isFunctionExpression(node) ||
  ts.isArrowFunction(node) ||
  ts.isMethodDeclaration(node) ||
  ts.isConstructorDeclaration(node) ||
  ts.isAccessor(node);

/** @param {any} node */
const getName = (node) => {
  if (node.name !== undefined) return node.name.getText();
  const { parent } = node;
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent))
    return parent.name.getText();
  if (ts.isCallExpression(parent)) return `${parent.expression.getText().slice(0, 40)}(…)`;
  return "(anonymous)";
};

const BRANCHES = new Set([
  ts.SyntaxKind.IfStatement,
  ts.SyntaxKind.ConditionalExpression,
  ts.SyntaxKind.ForStatement,
  ts.SyntaxKind.ForInStatement,
  ts.SyntaxKind.ForOfStatement,
  ts.SyntaxKind.WhileStatement,
  ts.SyntaxKind.DoStatement,
  ts.SyntaxKind.CaseClause,
  ts.SyntaxKind.CatchClause,
]);
const SHORT_CIRCUITS = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
]);

/**
 * Cyclomatic complexity by the rule of ESLint: one, and one more per branch; nested functions count
 * for themselves.
 *
 * @param {any} node
 */
const getComplexity = (node) => {
  let complexity = 1;
  /** @param {ts.Node} inner */
  const visit = (inner) => {
    if (isFunction(inner)) return;
    if (BRANCHES.has(inner.kind)) complexity += 1;
    if (ts.isBinaryExpression(inner) && SHORT_CIRCUITS.has(inner.operatorToken.kind)) complexity += 1;
    ts.forEachChild(inner, visit);
  };
  if (node.body !== undefined) ts.forEachChild(node.body, visit);
  return complexity;
};

/**
 * Lines that functions inside of this one take beyond their first: they are measured apart.
 *
 * @param {any} node
 * @param {ts.SourceFile} source
 * @returns {number}
 */
const getNestedLines = (node, source) => {
  let lines = 0;
  /** @param {ts.Node} inner */
  const visit = (inner) => {
    if (!isFunction(inner)) return ts.forEachChild(inner, visit);
    const { line: first } = source.getLineAndCharacterOfPosition(inner.getStart());
    lines += source.getLineAndCharacterOfPosition(inner.getEnd()).line - first;
  };
  ts.forEachChild(node, visit);
  return lines;
};

/** @param {string} file @returns {MeasuredFunction[]} */
export const measureFunctions = (file) => {
  const source = parseFile(file);
  /** @type {MeasuredFunction[]} */
  const measured = [];
  /** @param {any} node */
  const visit = (node) => {
    if (isFunction(node) && node.body !== undefined) {
      const first = source.getLineAndCharacterOfPosition(node.getStart()).line;
      const last = source.getLineAndCharacterOfPosition(node.getEnd()).line;
      measured.push({
        file,
        name: getName(node),
        line: first + 1,
        lines: last - first + 1 - getNestedLines(node, source),
        parameters: node.parameters.length,
        complexity: getComplexity(node),
        isComponent: file.endsWith(".tsx") && /^[A-Z]/.test(getName(node) ?? ""),
      });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return measured;
};

/**
 * The imports of a file that stay inside the project, as paths from its root.
 *
 * @param {string} file
 * @returns {string[]}
 */
export const listImports = (file) => {
  const text = readFileSync(join(root, file), "utf8");
  const specifiers = [
    ...text.matchAll(/^(?:import|export)\b[^;]*?from "(\.[^"]+)";$|\bimport\("(\.[^"]+)"\)/gm),
  ];
  return specifiers.map(([, from, dynamic]) => {
    const path = relative(root, resolve(root, dirname(file), from ?? dynamic ?? "")).replace(/\.js$/, ".ts");
    return existsSync(join(root, path)) ? path : path.replace(/\.ts$/, ".tsx");
  });
};

/**
 * The names that a file declares and exports; what it only passes on does not count.
 *
 * @param {string} file
 * @returns {string[]}
 */
export const listExportedNames = (file) => {
  /** @type {string[]} */
  const names = [];
  for (const statement of parseFile(file).statements) {
    const isExported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported) continue;
    if (ts.isVariableStatement(statement))
      for (const { name } of statement.declarationList.declarations) names.push(name.getText());
    else if ("name" in statement && statement.name !== undefined)
      names.push(/** @type {ts.Identifier} */ (statement.name).getText());
  }
  return [...new Set(names)];
};

/**
 * Strongly connected parts of a graph with more than one node (Tarjan).
 *
 * @param {Map<string, Set<string>>} graph
 */
export const findCycles = (graph) => {
  /** @type {string[][]} */
  const cycles = [];
  const index = new Map();
  const low = new Map();
  /** @type {string[]} */
  const stack = [];
  /** @param {string} node */
  const visit = (node) => {
    index.set(node, index.size);
    low.set(node, index.get(node));
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) {
        visit(next);
        low.set(node, Math.min(low.get(node), low.get(next)));
      } else if (stack.includes(next)) low.set(node, Math.min(low.get(node), index.get(next)));
    }
    if (low.get(node) !== index.get(node)) return;
    const part = stack.splice(stack.indexOf(node));
    if (part.length > 1) cycles.push(part.sort());
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return cycles;
};

/**
 * Which node imports which, where `toNode` says what node a file belongs to.
 *
 * @param {string[]} files
 * @param {(file: string) => string} toNode
 */
export const buildImportGraph = (files, toNode) => {
  /** @type {Map<string, Set<string>>} */
  const graph = new Map();
  for (const file of files) {
    const from = toNode(file);
    const targets = graph.get(from) ?? new Set();
    graph.set(from, targets);
    for (const imported of listImports(file)) if (toNode(imported) !== from) targets.add(toNode(imported));
  }
  return graph;
};

/**
 * Exported names that more than one module declares, with those modules.
 *
 * @param {string[]} files
 */
export const findSharedNames = (files) => {
  /** @type {Map<string, string[]>} */
  const declared = new Map();
  for (const file of files)
    for (const name of listExportedNames(file)) declared.set(name, [...(declared.get(name) ?? []), file]);
  return [...declared].filter(([, modules]) => modules.length > 1);
};

/** @param {number[]} numbers */
const getMedian = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/**
 * The room of a file: its folder. A file directly in the folder of a service is a room of its own,
 * since the ports at the bottom and the factory at the top stand there side by side.
 *
 * @param {string} file
 */
export const toRoom = (file) =>
  ["src", "src/webhooks", "src/content", "src/testing", "src/portal/app"].includes(dirname(file))
    ? file
    : dirname(file);

const print = () => {
  const files = TOP_ROOMS.flatMap((room) => filesBelow(room));
  const all = TOP_ROOMS.flatMap((room) => filesBelow(room, /\.(?:ts|lua)$/));
  const functions = files.flatMap(measureFunctions);
  const rooms = buildImportGraph(files, dirname);
  const layers = buildImportGraph(files, toRoom);
  const modules = buildImportGraph(files, (file) => file);
  const isVerbose = process.argv.includes("--list");
  /** @param {string} title @param {string[]} lines */
  const show = (title, lines) => {
    console.log(`${title}: ${lines.length}`);
    if (isVerbose) for (const line of lines) console.log(`    ${line}`);
  };
  for (const room of TOP_ROOMS) {
    const inRoom = all.filter((file) => file.startsWith(`${room}/`));
    console.log(
      `${room}: ${inRoom.length} files, ${inRoom.reduce((sum, file) => sum + countLines(file), 0)} lines`,
    );
  }
  console.log(
    `rooms (folders): ${rooms.size}; in src: ${[...rooms.keys()].filter((room) => room.startsWith("src")).length}`,
  );
  console.log(`arrows between rooms: ${[...rooms.values()].reduce((sum, targets) => sum + targets.size, 0)}`);
  console.log(`median file: ${getMedian(all.map(countLines))} lines`);
  show(
    "files above 350 lines",
    all.filter((file) => countLines(file) > 350).map((file) => `${file} ${countLines(file)}`),
  );
  /** @param {MeasuredFunction} f */
  const describe = (f) =>
    `${f.file}:${f.line} ${f.name} ${f.lines} lines, ${f.parameters} parameters, complexity ${f.complexity}`;
  /** @param {string} title @param {(f: MeasuredFunction) => boolean} test */
  const showFunctions = (title, test) => show(title, functions.filter(test).map(describe));
  showFunctions("functions above 60 lines", ({ lines }) => lines > 60);
  showFunctions("functions with more than 4 parameters", ({ parameters }) => parameters > 4);
  showFunctions("functions with a complexity above 12", ({ complexity }) => complexity > 12);
  show(
    "exported names declared more than once",
    findSharedNames(files).map(([name, where]) => `${name}: ${where.join(", ")}`),
  );
  show(
    "cycles between rooms",
    findCycles(layers).map((cycle) => cycle.join(", ")),
  );
  show(
    "cycles between files",
    findCycles(modules).map((cycle) => cycle.join(", ")),
  );
  console.log(`README: ${countLines("README.md")} lines`);
};

if (process.argv[1] === fileURLToPath(import.meta.url)) print();
