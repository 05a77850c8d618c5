/**
 * `node bench/soak.js [--minutes 30] [--storage postgres]` keeps two workers under a steady load
 * and prints, every half minute, what may grow: memory, handles, tables. Completed events are kept
 * for two minutes, so that their number is steady soon. In the end each figure is compared: its
 * median in the second quarter of the run with that in the last.
 *
 * BENCH_RATE: events a second, 60 unless set.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import pg from "pg";
import { postgresStorage } from "postbell/postgres";
import { startLoad, waitFor } from "./faults-load.js";
import { startPostgres } from "./postgres-server.js";
import { median, startRedis } from "./support.js";

process.env.NODE_ENV ??= "production";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "30" }, storage: { type: "string", default: "postgres" } },
});
const PER_SECOND = Number(process.env.BENCH_RATE ?? 60);
const KEPT_MS = 120_000;
const SAMPLE_MS = 30_000;
const samples = Math.max(4, Math.round((Number(values.minutes) * 60_000) / SAMPLE_MS));
/** A figure that is not more than a tenth above what it was is called flat. */
const FLAT = 1.1;

const OPEN = {
  async postgres() {
    const server = await startPostgres();
    if (server === undefined) throw new Error("There is no Postgres on this machine.");
    const storage = postgresStorage({ url: server.url });
    await storage.migrate();
    await storage.close();
    const client = new pg.Client(server.url);
    await client.connect();
    const SIZES = `SELECT sum(pg_table_size(c.oid))::float8 / 1e6 AS tables, sum(pg_indexes_size(c.oid))::float8 / 1e6 AS indexes
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'postbell' AND c.relkind = 'r'`;
    return {
      storage: { kind: "postgres", url: server.url },
      sizes: async () => {
        const { rows } = await client.query(SIZES);
        return { "tables MB": rows[0].tables, "indexes MB": rows[0].indexes };
      },
      close: async () => {
        await client.end();
        await server.stop();
      },
    };
  },
  async redis() {
    const server = await startRedis();
    const client = new Redis(server.url);
    return {
      storage: { kind: "redis", url: server.url },
      sizes: async () => {
        const memory = /used_memory:(\d+)/.exec(await client.info("memory"))?.[1];
        return { "Redis MB": Number(memory) / 1e6, keys: await client.dbsize() };
      },
      close: async () => {
        client.disconnect();
        server.stop();
      },
    };
  },
  async sqlite() {
    const folder = mkdtempSync(join(tmpdir(), "postbell-soak-"));
    return {
      storage: { kind: "sqlite", file: join(folder, "postbell.db") },
      sizes: async () =>
        Object.fromEntries(
          readdirSync(folder).map((name) => [`${name} MB`, statSync(join(folder, name)).size / 1e6]),
        ),
      close: async () => rmSync(folder, { recursive: true, force: true }),
    };
  },
};

/** Both workers together: the larger one counts. */
async function usageOf(workers) {
  const all = await Promise.all(workers.map((worker) => worker.call("usage")));
  const most = (name) => Math.max(...all.map((usage) => usage[name]));
  return { "RSS MB": most("rss") / 1e6, "heap MB": most("heapUsed") / 1e6, handles: most("handles") };
}

const opened = await OPEN[values.storage]();
const load = await startLoad({
  perSecond: PER_SECOND,
  storage: opened.storage,
  webhooks: { retention: { keepMs: KEPT_MS } },
  settings: { execArgv: ["--expose-gc"] },
});
const rows = [];
const begun = performance.now();
console.log(`${PER_SECOND} events a second by two workers on ${values.storage}, Node ${process.version}\n`);
for (let number = 1; number <= samples; number++) {
  await sleep(begun + number * SAMPLE_MS - performance.now());
  const row = { ...(await usageOf(load.workers)), ...(await opened.sizes()), waiting: load.missing().length };
  rows.push(row);
  if (number === 1)
    console.log(`| s | ${Object.keys(row).join(" | ")} |\n|---|${"---|".repeat(Object.keys(row).length)}`);
  const cells = Object.values(row).map((figure) => (Number.isInteger(figure) ? figure : figure.toFixed(1)));
  console.log(`| ${Math.round((performance.now() - begun) / 1_000)} | ${cells.join(" | ")} |`);
}
await load.pause();
const isDrained = await waitFor(() => load.missing().length === 0, 30_000);

const quarter = Math.floor(rows.length / 4);
console.log("\n| Figure | Second quarter | Last quarter | |\n|---|---|---|---|");
for (const name of Object.keys(rows[0])) {
  const of = (list) => median(list.map((row) => row[name] ?? 0));
  const [early, late] = [of(rows.slice(quarter, 2 * quarter)), of(rows.slice(-quarter))];
  const verdict = late <= early * FLAT || late - early < 1 ? "flat" : `${(late / early).toFixed(2)} times`;
  console.log(`| ${name} | ${early.toFixed(1)} | ${late.toFixed(1)} | ${verdict} |`);
}
const lost = load.missing().length;
console.log(
  `\npromised ${load.promised.size}, ${isDrained ? "lost" : "not delivered"} ${lost}, repeated ${load.repeated()}, refused ${[...load.refused.values()].reduce((sum, count) => sum + count, 0)}`,
);
await load.close();
await opened.close();
process.exit();
