// Measures the source: `node scripts/house.js` prints its size, its noise and its rooms, with
// `--list` also where they break a rule. `test/package/architecture.test.ts` allows no cycle and no
// exported name twice; lint warns of long files and functions.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** The folders whose source is part of the package. */
export const TOP_ROOMS = ["src", "adapters", "storage"];

/** The languages that the product is written in. */
const PRODUCT = /\.(?:tsx?|lua|css|sql)$/;

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

/** @param {string[]} files */
const sumLines = (files) => files.reduce((sum, file) => sum + countLines(file), 0);

/** @param {Iterable<Set<string>>} targets */
const countArrows = (targets) => [...targets].reduce((sum, { size }) => sum + size, 0);

/**
 * Prints how often the source has what readers have to look past.
 *
 * @param {string[]} files
 */
const printNoise = (files) => {
  const text = files.map((file) => readFileSync(join(root, file), "utf8")).join("");
  /** @param {RegExp} pattern */
  const count = (pattern) => text.match(pattern)?.length ?? 0;
  /** @param {RegExp} pattern */
  const perThousandLines = (pattern) => ((count(pattern) * 1_000) / sumLines(files)).toFixed(1);
  console.log(`readonly per 1 000 lines: ${perThousandLines(/\breadonly\b/g)}`);
  console.log(`Pick< per 1 000 lines: ${perThousandLines(/\bPick</g)}`);
  console.log(`spread literals: ${count(/\.\.\.[[{]/g)}`);
  console.log(`own and given: ${count(/\b(?:own|given)\b/g)}`);
  console.log(`names in most…: ${count(/\bmost[A-Z]\w*/g)}`);
};

/** Prints how many files each walk passes, that through Redis only where there is a server. */
const printWalks = async () => {
  const [{ listWalks }, { startRedis }] = await Promise.all([
    import("./walk.js"),
    import("./private-redis.js"),
  ]);
  const redis = await startRedis().catch(() => undefined);
  try {
    for (const [walk, passed] of Object.entries(await listWalks(redis?.url)))
      console.log(`files of the walk, ${walk}: ${passed?.length}`);
  } finally {
    redis?.stop();
  }
};

const print = async () => {
  const files = TOP_ROOMS.flatMap((room) => filesBelow(room));
  const product = TOP_ROOMS.flatMap((room) => filesBelow(room, PRODUCT));
  const isVerbose = process.argv.includes("--list");
  /** @param {string} title @param {string[]} lines */
  const show = (title, lines) => {
    console.log(`${title}: ${lines.length}`);
    if (isVerbose) for (const line of lines) console.log(`    ${line}`);
  };
  for (const room of TOP_ROOMS) {
    const inRoom = product.filter((file) => file.startsWith(`${room}/`));
    console.log(`${room}: ${inRoom.length} files, ${sumLines(inRoom)} lines`);
  }
  console.log(`product (.ts .tsx .lua .css .sql): ${product.length} files, ${sumLines(product)} lines`);
  const lua = product.filter((file) => file.endsWith(".lua"));
  console.log(`Lua: ${lua.length} files, ${sumLines(lua)} lines`);
  printNoise(files);
  const rooms = buildImportGraph(files, dirname);
  console.log(`rooms (folders): ${rooms.size}; arrows between them: ${countArrows(rooms.values())}`);
  console.log(`median file: ${getMedian(product.map(countLines))} lines`);
  show(
    "files above 350 lines",
    product.filter((file) => countLines(file) > 350).map((file) => `${file} ${countLines(file)}`),
  );
  show(
    "exported names declared more than once",
    findSharedNames(files).map(([name, where]) => `${name}: ${where.join(", ")}`),
  );
  show(
    "cycles between rooms",
    findCycles(buildImportGraph(files, toRoom)).map((cycle) => cycle.join(", ")),
  );
  show(
    "cycles between files",
    findCycles(buildImportGraph(files, (file) => file)).map((cycle) => cycle.join(", ")),
  );
  await printWalks();
};

if (process.argv[1] === fileURLToPath(import.meta.url)) await print();
