// `npm run test:conformance`: plays every recorded case in each combination of `COMBINATIONS`, on a
// site of its own. `node test/conformance/run.js [--namespace core|wp] [--host "Fastify 5"]
// [--storage SQLite] [--group a,b] [--case id,prefix*]` plays some cases or one combination.

import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { findProgram } from "../../scripts/databases-for-tests.js";
import { comparable, differences } from "./compare.js";
import { startHost } from "./host.js";
import { HOSTS } from "./hosts.js";
import { playCase } from "./play.js";
import { STORAGES } from "./storages.js";

/** All that were recorded, by the folder they are in; whoever adds or removes one changes this. */
const RECORDED = { cases: 869, "cases-4": 30, "cases-4/berlin": 1 };
/** The site that the cases of a folder need. */
const SITES = { cases: "plain", "cases-4": "own", "cases-4/berlin": "berlin" };
/** Of one failing case and of one of its steps, what is printed. */
const STEPS_SHOWN = 3;
const DIFFERENCES_SHOWN = 6;

const { values: options } = parseArgs({
  options: {
    namespace: { type: "string" },
    host: { type: "string" },
    storage: { type: "string" },
    group: { type: "string" },
    case: { type: "string" },
  },
});

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const fixtures = read("fixtures.json");
const readFolder = (folder) =>
  readdirSync(new URL(folder, import.meta.url))
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => read(`${folder}/${name}`))
    .map((one) => ({ ...one, folder }));
const recorded = Object.keys(RECORDED).flatMap(readFolder);

const matches = (pattern, id) =>
  pattern.endsWith("*") ? id.startsWith(pattern.slice(0, -1)) : id === pattern;

/** Every case; refuses to play fewer than were recorded. */
function all() {
  for (const [folder, count] of Object.entries(RECORDED)) {
    const found = recorded.filter((one) => one.folder === folder).length;
    if (found !== count) throw new Error(`${found} cases are in ${folder}, but ${count} were recorded`);
  }
  return recorded;
}

function chosen() {
  const groups = options.group?.split(",") ?? [];
  const patterns = options.case?.split(",") ?? [];
  return recorded.filter(
    ({ id, group }) => groups.includes(group) || patterns.some((pattern) => matches(pattern, id)),
  );
}

/** The steps of a case that are not as recorded. A set-up step that fails ends the case. */
async function failuresOf(one, target) {
  const facts = await playCase(one, target, fixtures);
  const failures = [];
  for (const [index, step] of one.steps.entries()) {
    const found = differences(comparable(step.expect), comparable(facts[index]));
    if (found.length === 0) continue;
    const query = step.query === undefined ? "" : ` ${JSON.stringify(step.query)}`;
    const request = `step ${index}: ${step.method} ${step.path}${query} as ${step.as ?? "anonymous"}`;
    failures.push({ request: step.setup ? `${request} (set-up)` : request, differences: found });
    if (step.setup) break;
  }
  return failures;
}

/** Prints what failed, then one line for the combination. Returns true if all passed. */
async function play(cases, combination) {
  let passed = 0;
  for (const folder of Object.keys(RECORDED)) {
    const inFolder = cases.filter((one) => one.folder === folder);
    if (inFolder.length > 0) passed += await playOnSite(inFolder, SITES[folder], combination);
  }
  const { namespace, host, storage } = combination;
  const failed = cases.length - passed;
  console.log(`${namespace}/v2, ${host}, ${storage}: ${passed} passed, ${failed} failed`);
  return failed === 0;
}

/** Returns how many cases passed. */
async function playOnSite(cases, site, { namespace, host, storage: place }) {
  const { open, stop } = await STORAGES[place]();
  const target = await startHost({ namespace, host, storage: await open(), site });
  let passed = 0;
  for (const one of cases) {
    const failures = await failuresOf(one, target);
    if (failures.length === 0) {
      passed++;
      continue;
    }
    console.log(`FAIL ${one.id}: ${one.title}`);
    for (const failure of failures.slice(0, STEPS_SHOWN)) {
      console.log(`  ${failure.request}`);
      for (const line of failure.differences.slice(0, DIFFERENCES_SHOWN)) console.log(`    ${line}`);
    }
  }
  await target.close();
  await stop();
  return passed;
}

/**
 * @param {string} option
 * @param {string} name
 * @param {object} known
 */
function requireOneOf(option, name, known) {
  if (Object.hasOwn(known, name)) return;
  throw new Error(`--${option} must be one of: ${Object.keys(known).join(", ")} (got ${name})`);
}

/** Says why this machine cannot start a storage. `undefined` if it can. */
function findObstacle(place) {
  if (place !== "Postgres") return undefined;
  try {
    findProgram("initdb");
    return undefined;
  } catch ({ message }) {
    return message;
  }
}

const cases = options.group || options.case ? chosen() : all();
if (cases.length === 0) throw new Error("no such case");
const isWhole = !options.namespace && !options.host && !options.storage;
const { namespace = "core", host = "node:http", storage = "memory" } = options;
requireOneOf("host", host, HOSTS);
requireOneOf("storage", storage, STORAGES);
/** Every host, every namespace and every storage, but not all of them with each other. */
const COMBINATIONS = [
  ...Object.keys(HOSTS).map((name) => ({ namespace: "core", host: name, storage: "memory" })),
  { namespace: "wp", host: "node:http", storage: "memory" },
  ...Object.keys(STORAGES)
    .filter((name) => name !== "memory")
    .map((name) => ({ namespace: "core", host: "node:http", storage: name })),
];
let ok = true;
for (const one of isWhole ? COMBINATIONS : [{ namespace, host, storage }]) {
  const obstacle = isWhole ? findObstacle(one.storage) : undefined;
  if (obstacle === undefined) ok = (await play(cases, one)) && ok;
  else console.log(`${one.namespace}/v2, ${one.host}, ${one.storage}: NOT RUN. ${obstacle}`);
}
process.exitCode = ok ? 0 : 1;
