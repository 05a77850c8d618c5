// `node bench/content-redis.js`: the content interface on Redis beside the same in memory, and how
// long a process takes to load a large site. BENCH_ROUNDS, BENCH_SECONDS: how much.
// BENCH_REDIS_POSTS: the size of the large site.
import { asked, child, load, print, row, startServer } from "./content-load.js";
import { median, spread, startRedis } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2);
const POSTS = Number(process.env.BENCH_REDIS_POSTS ?? 100_000);
const LIST = "/api/core/v2/posts";

/** A list of ten through Fastify, asked over `connections`, in turn in each round. */
async function compare(redis) {
  const servers = {
    memory: await startServer("fastify"),
    strong: await startServer("fastify", { redis: redis.url, consistency: "strong" }),
    eventual: await startServer("fastify", { redis: redis.url, consistency: "eventual" }),
  };
  console.log("\nA list of ten through Fastify: on Redis, and in memory");
  for (const connections of [10, 50]) {
    const results = { memory: [], strong: [], eventual: [] };
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

async function starting(redis) {
  const writer = child("content-start.js");
  await asked(writer, { redis: redis.url, posts: POSTS });
  writer.disconnect();
  const starts = [];
  for (let round = 0; round < ROUNDS; round++) {
    const process = child("content-start.js");
    starts.push(await asked(process, { redis: redis.url }));
    process.disconnect();
  }
  console.log(
    `\nStart of a process on Redis, with ${POSTS} posts and a tenth as many pages, until its first response`,
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
  `Node ${process.version}, ${ROUNDS} rounds of ${SECONDS} s for each server; the load comes from another process, keep-alive on loopback; Redis on the same machine, without persistence.`,
);
const redis = await startRedis();
await compare(redis);
await starting(redis);
redis.stop();
