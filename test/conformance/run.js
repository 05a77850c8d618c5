// `npm run test:conformance`: plays every recorded case on a host of its own, once in each
// namespace, and once more on Redis. `node test/conformance/run.js [--namespace core|wp] [--redis]
// [--group a,b] [--case id,prefix*]` plays some.

import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { redisStorage } from "postbell/redis";
import { startRedis } from "../../scripts/private-redis.js";
import { comparable, differences } from "./compare.js";
import { startHost } from "./host.js";
import { playCase } from "./play.js";

/** All that were recorded; whoever adds or removes one changes this. */
const RECORDED = 830;
/** Of one failing case and of one of its steps, what is printed. */
const STEPS_SHOWN = 3;
const DIFFERENCES_SHOWN = 6;

const { values: options } = parseArgs({
  options: {
    namespace: { type: "string" },
    redis: { type: "boolean", default: false },
    group: { type: "string" },
    case: { type: "string" },
  },
});

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const fixtures = read("fixtures.json");
const recorded = readdirSync(new URL("cases", import.meta.url)).flatMap((name) => read(`cases/${name}`));

const matches = (pattern, id) =>
  pattern.endsWith("*") ? id.startsWith(pattern.slice(0, -1)) : id === pattern;

/** Every case; refuses to play fewer than were recorded. */
function all() {
  if (recorded.length === RECORDED) return recorded;
  throw new Error(`${recorded.length} cases are there, but ${RECORDED} were recorded`);
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

/** Returns true if all passed. The last line that it prints is `N passed, N failed`. */
async function play(cases, { namespace, redis }) {
  const storage = redis && redisStorage({ url: redis.url, prefix: `conformance-${randomUUID()}` });
  const target = await startHost(namespace, storage);
  const groups = new Map();
  for (const one of cases) {
    const failures = await failuresOf(one, target);
    const group = groups.get(one.group) ?? { passed: 0, failed: 0 };
    groups.set(one.group, group);
    if (failures.length === 0) {
      group.passed++;
      continue;
    }
    group.failed++;
    console.log(`FAIL ${one.id}: ${one.title}`);
    for (const failure of failures.slice(0, STEPS_SHOWN)) {
      console.log(`  ${failure.request}`);
      for (const line of failure.differences.slice(0, DIFFERENCES_SHOWN)) console.log(`    ${line}`);
    }
  }
  await target.close();
  const sum = (key) => [...groups.values()].reduce((total, group) => total + group[key], 0);
  console.log(`\n${target.namespace}${redis ? " on Redis" : ""}:`);
  for (const [name, { passed, failed }] of groups) console.log(`${name}: ${passed} passed, ${failed} failed`);
  console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
  return sum("failed") === 0 && sum("passed") === cases.length;
}

const cases = options.group || options.case ? chosen() : all();
if (cases.length === 0) throw new Error("no such case");
const isWhole = !options.namespace && !options.redis;
const redis = options.redis || isWhole ? await startRedis() : undefined;
const runs = isWhole
  ? [{ namespace: "core" }, { namespace: "wp" }, { namespace: "core", redis }]
  : [{ namespace: options.namespace ?? "core", redis }];
let ok = true;
for (const run of runs) ok = (await play(cases, run)) && ok;
redis?.stop();
process.exitCode = ok ? 0 : 1;
