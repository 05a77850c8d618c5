// `node bench/content.js`: the content interface, as ratios against a server that sends the very
// same bytes from a constant, and its growth with the number of posts. Absolute figures are those
// of the machine it runs on.

import { asked, child, load, print, row, startServer } from "./content-load.js";
import { measureRendering } from "./content-rendering.js";
import { median, spread } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** How long one server is asked, each time. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2);
/** The smallest one is what the others are compared with. */
const SIZES = (process.env.BENCH_POSTS ?? "1000,10000,100000").split(",").map(Number);
if (!SIZES.every((size) => size >= 1_000))
  throw new Error("BENCH_POSTS must be at least 1000: the lists need as many posts");

const LIST = "/api/core/v2/posts";
const SINGLE = "/api/core/v2/posts/1";
const CONNECTIONS = [1, 10, 50];
/** Set by Node itself for each answer and each connection. */
const OF_THE_SERVER = new Set(["date", "connection", "keep-alive", "content-length"]);

/** Returns the bytes that the constant server sends for `path`. */
async function constantOf(origin, path) {
  const response = await fetch(origin + path);
  const headers = [...response.headers].filter(([name]) => !OF_THE_SERVER.has(name));
  return [path, { headers: Object.fromEntries(headers), body: await response.text() }];
}

/** `questions`: [name, path, connections]. */
async function compare(framework, questions) {
  const postbell = await startServer(framework);
  const constants = await Promise.all([LIST, SINGLE].map((path) => constantOf(postbell.origin, path)));
  const constant = await startServer(framework, { constants });
  const results = questions.map(() => ({ constant: [], postbell: [] }));
  // The first round only warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, [, path, connections]] of questions.entries()) {
      const servers = Object.entries({ constant, postbell });
      for (const [name, server] of round % 2 === 0 ? servers : servers.reverse()) {
        const result = await load(server, path, connections, SECONDS * 1_000);
        if (round > 0) results[index][name].push(result);
      }
    }
  }
  postbell.stop();
  constant.stop();
  const title = { fastify: "Fastify", express: "Express", koa: "Koa" }[framework];
  console.log(`\n${title}: content API, compared with a constant response of the same bytes and headers`);
  print(
    questions.flatMap(([name], index) => [
      row(`${name}: constant`, results[index].constant, results[index].constant),
      row(`${name}: postbell`, results[index].postbell, results[index].constant),
    ]),
  );
  console.log("Goal: 0.85.");
}

async function growth() {
  const sites = await Promise.all(
    SIZES.map(async (posts) => {
      const process = child("content-growth.js");
      return { posts, process, heapPerPost: (await asked(process, { posts })).heapPerPost };
    }),
  );
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const results = [];
    for (const { process } of sites) results.push((await asked(process, { round })).micros);
    if (round > 0) rounds.push(results);
  }
  for (const { process } of sites) process.disconnect();

  const [small, ...larger] = SIZES;
  const microsOf = (name, index) => rounds.map((results) => results[index][name]);
  console.log("\nLists in-process, without the response cache: a post changes before each pass");
  print(
    Object.keys(rounds[0][0]).map((name) => ({
      name,
      [`µs at ${small}`]: Math.round(median(microsOf(name, 0))),
      ...Object.fromEntries(
        larger.flatMap((size, index) => {
          const ratios = rounds.map((results) => results[index + 1][name] / results[0][name]);
          return [
            [`at ${size}`, median(ratios).toFixed(2)],
            [`spread at ${size}`, spread(ratios)],
          ];
        }),
      ),
    })),
  );
  console.log(
    "Ratios to the time with the fewest posts. Goal: 1.5, except for the search in texts, which reads all posts.",
  );
  console.log("\nHeap");
  print(
    sites.map(({ posts, heapPerPost }) => ({
      name: `${posts} posts`,
      "bytes per post": Math.round(heapPerPost),
    })),
  );
}

console.log(
  `Node ${process.version}, ${ROUNDS} rounds of ${SECONDS} s for each server; the load comes from another process, keep-alive on loopback.`,
);
console.log(
  "Ratios compare with the constant of the same round. Medians, with the smallest and the largest.",
);

await compare(
  "fastify",
  CONNECTIONS.flatMap((connections) => [
    [`list of ten, ${connections} conn.`, LIST, connections],
    [`single post, ${connections} conn.`, SINGLE, connections],
  ]),
);
for (const framework of ["express", "koa"]) await compare(framework, [["list of ten, 10 conn.", LIST, 10]]);
await growth();
console.log("\nContents rendered again: a record of the site changes before each response");
print(await measureRendering());
