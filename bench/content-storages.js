// `node bench/content-storages.js`: the content interface on SQLite, Redis and Postgres beside the
// same in memory, and how long a process takes to load a large site. BENCH_ROUNDS, BENCH_SECONDS:
// how much. BENCH_STORED_POSTS: the size of the large site.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asked, child, load, print, row, startServer } from "./content-load.js";
import { startPostgres } from "./postgres-server.js";
import { median, spread, startRedis } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2);
const POSTS = Number(process.env.BENCH_STORED_POSTS ?? 100_000);
const LIST = "/api/core/v2/posts";

/** The storages by name, each as `openContentStorage` takes it. */
async function startStorages() {
  const redis = await startRedis();
  const postgres = await startPostgres();
  if (postgres === undefined) console.log("Postgres is not on this machine and was not measured.");
  const dir = mkdtempSync(join(tmpdir(), "postbell-bench-"));
  const places = {
    SQLite: { sqlite: join(dir, "content") },
    Redis: { redis: redis.url },
    ...(postgres && { Postgres: { postgres: postgres.url } }),
  };
  const stop = async () => {
    redis.stop();
    await postgres?.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  return { places, stop };
}

/** A list of ten through Fastify, asked over `connections`, in turn in each round. */
async function compare(places) {
  const servers = { memory: await startServer("fastify") };
  for (const [place, address] of Object.entries(places)) {
    for (const consistency of ["strong", "eventual"]) {
      servers[`${place}, ${consistency}`] = await startServer("fastify", { ...address, consistency });
    }
  }
  console.log("\nA list of ten through Fastify: on each storage, and in memory");
  for (const connections of [10, 50]) {
    const results = Object.fromEntries(Object.keys(servers).map((name) => [name, []]));
    // The first round only warms up.
    for (let round = 0; round <= ROUNDS; round++) {
      const turn = Object.entries(servers);
      for (const [name, server] of round % 2 === 0 ? turn : turn.reverse()) {
        const result = await load(server, LIST, connections, SECONDS * 1_000);
        if (round > 0) results[name].push(result);
      }
    }
    print(
      Object.entries(results).map(([name, own]) => row(`${name}, ${connections} conn.`, own, results.memory)),
    );
  }
  for (const server of Object.values(servers)) server.stop();
  console.log("Goal: 0.7.");
}

async function starting(place, address) {
  const writer = child("content-start.js");
  await asked(writer, { ...address, posts: POSTS });
  writer.disconnect();
  const starts = [];
  for (let round = 0; round < ROUNDS; round++) {
    const process = child("content-start.js");
    starts.push(await asked(process, address));
    process.disconnect();
  }
  console.log(
    `\nStart of a process on ${place}, with ${POSTS} posts and a tenth as many pages, until its first response`,
  );
  const figures = (unit, values) => ({ [unit]: median(values).toFixed(1), spread: spread(values) });
  console.table({
    seconds: figures(
      "median",
      starts.map(({ seconds }) => seconds),
    ),
    "heap, MB": figures(
      "median",
      starts.map(({ heapBytes }) => heapBytes / 1e6),
    ),
    "highest resident memory, MB": figures(
      "median",
      starts.map(({ peakBytes }) => peakBytes / 1e6),
    ),
  });
  console.log("Goal: 10 s, 1000 MB.");
}

console.log(
  `Node ${process.version}, ${ROUNDS} rounds of ${SECONDS} s for each server; the load comes from another process, keep-alive on loopback; the servers of Redis, without persistence, and Postgres run on the same machine.`,
);
const { places, stop } = await startStorages();
await compare(places);
for (const [place, address] of Object.entries(places)) await starting(place, address);
await stop();
