/**
 * `node bench/faults.js [name…]` drives the same load through each fault and prints a row for it:
 * what was promised (emits that resolved), what was lost, what came twice, and how long it took
 * until deliveries flowed again. A name is that of a fault or the beginning of one; without names
 * all faults run, one after another. `--list` prints their names.
 *
 * BENCH_RATE: events a second, 120 unless set. BENCH_PENDING: deliveries that wait at the start,
 * 1 000 000 unless set. BENCH_BETTER_SQLITE3: the path of an installed better-sqlite3, another
 * build of SQLite. BENCH_LOG=1 prints what the workers log.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startLoad, waitFor } from "./faults-load.js";
import { outboundFaults } from "./faults-outbound.js";
import { postgresFaults } from "./faults-postgres.js";
import { redisFaults } from "./faults-redis.js";
import { sqliteFaults } from "./faults-sqlite.js";

process.env.NODE_ENV ??= "production";

const PER_SECOND = Number(process.env.BENCH_RATE ?? 120);
const BEFORE_MS = 8_000;
const FAULT_MS = 8_000;
/** The load goes on for so long after deliveries flow again. */
const AFTER_MS = 4_000;
/** A run is given up so long after the fault. Longer than a lease of a process that died. */
const PATIENCE_MS = 65_000;

/**
 * A fault: `open` makes its storage and returns the address of it, `hurt`, `heal`, `close`, and
 * what else differs from the defaults of `measure`. It returns `{ skip }` with the reason where the
 * machine lacks something.
 */
const FAULTS = [...sqliteFaults, ...redisFaults, ...postgresFaults, ...outboundFaults];

const seconds = (ms) => (ms === undefined ? "never" : (ms / 1_000).toFixed(1));
const list = (counts) => [...counts].map(([what, count]) => `${count} ${what}`).join(", ");

/** When deliveries flow again: the first one after which a second brings half the load. */
function flowsAt(arrivals, from) {
  const times = arrivals.filter(({ at }) => at >= from).map(({ at }) => at);
  const enough = PER_SECOND / 2;
  return times.find((at, index) => (times[index + enough - 1] ?? Number.POSITIVE_INFINITY) <= at + 1_000);
}

/** The longest time without any delivery. */
function longestSilence(arrivals, from, until) {
  const times = arrivals.map(({ at }) => at).filter((at) => at > from && at < until);
  return Math.max(...[...times, until].map((at, index) => at - (times[index - 1] ?? from)));
}

async function drive(load, scene) {
  const { beforeMs = BEFORE_MS, faultMs = FAULT_MS, patienceMs = PATIENCE_MS } = scene;
  const flow = () => (scene.isFlow ? load.endpoint.arrivals.filter(scene.isFlow) : load.endpoint.arrivals);
  await sleep(beforeMs);
  const hurtAt = performance.now();
  await scene.hurt?.(load);
  await sleep(faultMs);
  await scene.heal?.(load);
  const healedAt = performance.now();
  const hasRecovered = () => flowsAt(flow(), healedAt) !== undefined;
  if (await waitFor(hasRecovered, patienceMs)) await sleep(AFTER_MS);
  const endedAt = performance.now();
  await load.pause();
  await waitFor(() => load.missing().length === 0, healedAt + patienceMs - endedAt);
  const lastAt = load.endpoint.arrivals.at(-1)?.at ?? healedAt;
  const flowAt = flowsAt(flow(), healedAt);
  return {
    flows: flowAt === undefined ? undefined : flowAt - healedAt,
    silence: longestSilence(load.endpoint.arrivals, hurtAt, endedAt),
    drained: load.missing().length === 0 ? Math.max(0, lastAt - healedAt) : undefined,
  };
}

async function measure(scene) {
  const load = await startLoad({ perSecond: PER_SECOND, ...scene.load, storage: scene.storage });
  try {
    const { flows, silence, drained } = await drive(load, scene);
    const pending = await load.listPending(load.missing()).catch(() => undefined);
    const missing = load.missing();
    const lost = missing.filter((id) => !pending?.has(id)).length;
    const note = await scene.note?.(load);
    return [
      load.promised.size,
      pending === undefined ? `${lost}, or pending` : lost,
      pending === undefined ? "storage unreachable" : missing.length - lost,
      load.repeated(),
      list(load.refused) || 0,
      seconds(flows),
      seconds(silence),
      seconds(drained),
      note ?? "",
    ];
  } finally {
    await load.close();
  }
}

async function run({ name, what, open }) {
  let scene;
  let cells;
  try {
    scene = await open();
    cells = scene.skip ? [`skipped: ${scene.skip}`] : await measure(scene);
  } catch (error) {
    cells = [`failed: ${error.message}`];
  } finally {
    await scene?.close?.();
  }
  console.log(`| \`${name}\` | ${what} | ${cells.join(" | ")} |`);
}

const names = process.argv.slice(2).filter((name) => name !== "--list");
const chosen = FAULTS.filter(({ name }) => names.length === 0 || names.some((each) => name.startsWith(each)));
if (process.argv.includes("--list")) {
  for (const { name, what } of chosen) console.log(`${name}: ${what}`);
  process.exit();
}
console.log(`${PER_SECOND} events a second by two workers, Node ${process.version}\n`);
console.log(
  "| Fault | What happens | Promised | Lost | Pending at the end | Repeated | Refused | Flows again after, s | Longest silence, s | All delivered after, s | Note |",
);
console.log("|---|---|---|---|---|---|---|---|---|---|---|");
for (const fault of chosen) await run(fault);
process.exit();
