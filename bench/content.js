// `node bench/content.js`: the content interface, as ratios against a server that sends the very same bytes from a constant, and its growth with
// the number of posts. Absolute figures are those of the machine it runs on.
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { median, spread } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** How long one server is asked, each time. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2);
/** The smallest one is what the others are compared with. */
const SIZES = (process.env.BENCH_POSTS ?? "1000,10000,100000").split(",").map(Number);
if (!SIZES.every((size) => size >= 1_000))
  throw new Error("BENCH_POSTS: the lists that are asked for need 1000 posts");

const LIST = "/api/core/v2/posts";
const SINGLE = "/api/core/v2/posts/1";
const CONNECTIONS = [1, 10, 50];
/** Set by Node itself for each answer and each connection. */
const OF_THE_SERVER = new Set(["date", "connection", "keep-alive", "content-length"]);

const child = (file, ...args) => fork(new URL(file, import.meta.url), args, { execArgv: ["--expose-gc"] });

function asked(process, message) {
  return new Promise((resolve, reject) => {
    const ended = (code, signal) => {
      reject(new Error(`a process of the benchmark ended with ${code ?? signal}`));
    };
    process.once("exit", ended);
    process.once("message", (reply) => {
      process.off("exit", ended);
      resolve(reply);
    });
    process.send(message);
  });
}

async function startServer(framework, constants) {
  const process = child("content-server.js", framework);
  const { origin } = await asked(process, { constants });
  const cpuMicros = async () => {
    const { user, system } = (await asked(process, "cpu")).cpu;
    return user + system;
  };
  return { origin, cpuMicros, stop: () => process.disconnect() };
}

/** One connection that sends `request` again and again. All answers are equally long, so that they need only be counted. */
async function connection(origin, request, size) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let received = 0;
  let count = 0;
  let isOver = false;
  const done = new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`${origin} closed a connection`)));
    socket.on("data", (chunk) => {
      if (received === 0 && chunk.toString("latin1", 9, 12) !== "200") {
        reject(new Error(chunk.toString("latin1")));
      }
      received += chunk.length;
      if (received < size) return;
      if (received > size) reject(new Error(`an answer of ${received} bytes instead of ${size}`));
      received = 0;
      count++;
      if (isOver) resolve(count);
      else socket.write(request);
    });
  });
  return {
    start: () => socket.write(request),
    async stop() {
      isOver = true;
      const result = await done;
      socket.removeAllListeners("close").destroy();
      return result;
    },
  };
}

/** Asks for `path` as fast as it can over `connections`. */
async function load({ origin, cpuMicros }, path, connections, ms) {
  const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const size = await sizeOf(origin, request);
  const lanes = await Promise.all(
    Array.from({ length: connections }, () => connection(origin, request, size)),
  );
  const cpuBefore = await cpuMicros();
  const start = performance.now();
  for (const lane of lanes) lane.start();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const counts = await Promise.all(lanes.map((lane) => lane.stop()));
  const elapsed = performance.now() - start;
  const count = counts.reduce((sum, one) => sum + one);
  return {
    perSecond: (count / elapsed) * 1_000,
    cpuMicros: ((await cpuMicros()) - cpuBefore) / count,
  };
}

/** Of a whole answer, head and body. */
async function sizeOf(origin, request) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.write(request);
  let text = "";
  for await (const chunk of socket) {
    text += chunk.toString("latin1");
    const end = text.indexOf("\r\n\r\n") + 4;
    const [, length] = /content-length: (\d+)/i.exec(text) ?? [];
    if (end > 3 && length !== undefined) return end + Number(length);
  }
  throw new Error(`no length in ${text}`);
}

/** What the constant has to send in place of `path`. */
async function constantOf(origin, path) {
  const response = await fetch(origin + path);
  const headers = [...response.headers].filter(([name]) => !OF_THE_SERVER.has(name));
  return [path, { headers: Object.fromEntries(headers), body: await response.text() }];
}

const row = (name, own, base) => {
  const ratios = own.map(({ perSecond }, round) => perSecond / base[round].perSecond);
  const cpu = own.map(({ cpuMicros }, round) => cpuMicros / base[round].cpuMicros);
  return {
    name,
    "per second": Math.round(median(own.map(({ perSecond }) => perSecond))),
    ratio: median(ratios).toFixed(2),
    spread: spread(ratios),
    "CPU µs": median(own.map(({ cpuMicros }) => cpuMicros)).toFixed(1),
    "CPU ratio": median(cpu).toFixed(2),
  };
};

const print = (rows) => {
  console.table(Object.fromEntries(rows.map(({ name, ...figures }) => [name, figures])));
};

/** `questions`: [name, path, connections]. */
async function compare(framework, questions) {
  const postbell = await startServer(framework);
  const constants = await Promise.all([LIST, SINGLE].map((path) => constantOf(postbell.origin, path)));
  const constant = await startServer(framework, constants);
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
  console.log(`\n${title}: the content interface, and the same bytes and headers from a constant`);
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
  console.log("\nLists in-process, no answer from the cache of answers: a post is changed before each pass");
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
    "Ratios to the time with the fewest posts. Goal: 1.5, but for the search in texts, which reads all of them.",
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
console.log("A ratio is of the same round's constant; medians, with the smallest and the largest.");

await compare(
  "fastify",
  CONNECTIONS.flatMap((connections) => [
    [`list of ten, ${connections} conn.`, LIST, connections],
    [`single post, ${connections} conn.`, SINGLE, connections],
  ]),
);
for (const framework of ["express", "koa"]) await compare(framework, [["list of ten, 10 conn.", LIST, 10]]);
await growth();
