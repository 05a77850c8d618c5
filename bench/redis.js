/**
 * `npm run bench`, second part: Postbell on Redis beside what a developer would use instead, all in
 * turn in each round. Only ratios carry over to another machine. `npm run bench -- growth` measures
 * a long queue instead.
 *
 * BENCH_ROUNDS, BENCH_DELIVERIES: how much. BENCH_TLS=1: backlogs over HTTPS, and nothing else.
 * REDIS_URL: an empty database to use, and to flush, in place of a server of its own, which keeps
 * nothing on disk unless BENCH_APPENDFSYNC names a policy. BENCH_PENDING, BENCH_ENDPOINTS: the size
 * of the long queue.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { createWebhooks, systemClock } from "postbell";
import { redisStorage } from "postbell/redis";
import { Pool } from "undici";
import {
  CONCURRENCY,
  cert,
  ENDPOINTS,
  freePort,
  median,
  patient,
  post,
  quantile,
  spread,
  startReceiver,
  startRedis,
} from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const DELIVERIES = Number(process.env.BENCH_DELIVERIES ?? 20_000);
/** Webhooks that get each event. */
const FAN_OUTS = [1, 10, 15];
const IS_TLS = process.env.BENCH_TLS === "1";
const PENDING = Number(process.env.BENCH_PENDING ?? 1_000_000);
const GROWTH_ENDPOINTS = Number(process.env.BENCH_ENDPOINTS ?? 10_000);
/** As many ENABLED webhooks as an account may have. */
const PER_ACCOUNT = 15;
/** The default of `delivery.perEndpoint`. */
const PER_ENDPOINT = 5;
/**
 * Jobs that BullMQ adds with one call, and calls at a time: larger ones are no faster, and one at a
 * time is slower by a third.
 */
const BULK = 100;
const BULKS_AT_ONCE = 4;
/** Makes the other bodies as long as Postbell's of the same event. */
const FILLER = 345;
const DEADLINE_MS = 15_000;
const HOUR = 3_600_000;

/** The monotonic clock of the machine, in ms: the receiver's process reads the same one. */
const clockMs = () => Number(process.hrtime.bigint()) / 1e6;

const { url, stop } = process.env.REDIS_URL
  ? { url: process.env.REDIS_URL, stop() {} }
  : await startRedis(process.env.BENCH_APPENDFSYNC);
const redis = new Redis(url, { maxRetriesPerRequest: null });
if ((await redis.dbsize()) > 0) throw new Error("REDIS_URL names a database that is not empty.");

// INFO counts the commands inside scripts too, so those that clients send are counted where both
// contenders send them: in ioredis.
let clientCommands = 0;
const sendCommand = Reflect.get(Redis.prototype, "sendCommand");
Redis.prototype.sendCommand = function (...given) {
  clientCommands++;
  return sendCommand.apply(this, given);
};

async function readServer() {
  const info = await redis.info();
  const field = (name) => Number(new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1]);
  return {
    cpuMs: (field("used_cpu_user") + field("used_cpu_sys")) * 1000,
    commands: field("total_commands_processed"),
    netBytes: field("total_net_input_bytes") + field("total_net_output_bytes"),
    // Without the buffers of connections, which say nothing of what is stored.
    memory: field("used_memory") - field("mem_clients_normal"),
  };
}

/**
 * Measures the wall clock, and the processor time of this process and of the server, for `work`.
 */
async function measure(work) {
  const server = await readServer();
  const sent = clientCommands;
  const cpu = process.cpuUsage();
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const sentBy = clientCommands - sent;
  const after = await readServer();
  return {
    ms,
    nodeMs: (user + system) / 1000,
    redisMs: after.cpuMs - server.cpuMs,
    commands: sentBy,
    inScripts: Math.max(0, after.commands - server.commands - sentBy),
    netBytes: after.netBytes - server.netBytes,
    memory: after.memory - server.memory,
  };
}

/** Calls `work` for each item, so many at a time. */
async function inLanes(items, work, lanes = CONCURRENCY) {
  let next = 0;
  const lane = async () => {
    while (next < items.length) await work(items[next++]);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

const webhook = (account, address) => ({ account, url: address });

/** About ten endpoints, as accounts with `fanOut` webhooks each. */
function fanOutWebhooks(origin, fanOut) {
  const accounts = Math.max(1, Math.floor(ENDPOINTS / fanOut));
  return Array.from({ length: accounts * fanOut }, (_, index) =>
    webhook(`a${Math.floor(index / fanOut)}`, `${origin}/endpoint-${index}`),
  );
}

const accountsOf = (webhooks) => [...new Set(webhooks.map(({ account }) => account))];

const newEvent = (account, index) => ({
  id: randomUUID(),
  type: "patient.updated",
  account,
  resource: patient(index),
});

/** Events for these accounts in turn. */
const eventsFor = (accounts, count) =>
  Array.from({ length: count }, (_, index) => newEvent(accounts[index % accounts.length], index));

/**
 * The body of a sender without a library: as long as Postbell's body, and recognised in the same
 * way.
 */
const notification = ({ id, resource }) => ({
  id,
  timestamp: Date.now(),
  event: resource,
  filler: "y".repeat(FILLER),
});

/** `urlsOf(account)`: where its events go. */
function directory(webhooks) {
  const urls = new Map();
  for (const { account, url } of webhooks) urls.set(account, [...(urls.get(account) ?? []), new URL(url)]);
  return (account) => urls.get(account) ?? [];
}

/** One undici pool for each origin. */
function openPools() {
  const pools = new Map();
  return {
    of(origin) {
      if (!pools.has(origin)) {
        const timeouts = { headersTimeout: DEADLINE_MS, bodyTimeout: DEADLINE_MS };
        pools.set(origin, new Pool(origin, { connections: CONCURRENCY, connect: { ca: cert }, ...timeouts }));
      }
      return pools.get(origin);
    },
    close: () => Promise.all([...pools.values()].map((pool) => pool.destroy())),
  };
}

// Each contender opens for a list of webhooks, and then: `emit` stores events as fast as it can,
// `start` lets deliveries begin, `drained` resolves once as many as given have ended since the
// start.

/** The code of a developer who needs neither durability nor retries: sign, POST, next. */
async function openLoop(webhooks) {
  const urlsOf = directory(webhooks);
  const pools = openPools();
  const queue = [];
  const lanes = new Set();
  let next = 0;
  let isStarted = false;
  const lane = async () => {
    while (next < queue.length) {
      const { origin, pathname, body } = queue[next++];
      await post(pools.of(origin), pathname, body);
    }
  };
  const fill = () => {
    while (isStarted && lanes.size < CONCURRENCY && next < queue.length) {
      const running = lane().finally(() => lanes.delete(running));
      lanes.add(running);
    }
  };
  return {
    async emit(events) {
      for (const event of events) {
        const body = Buffer.from(JSON.stringify(notification(event)));
        for (const { origin, pathname } of urlsOf(event.account)) queue.push({ origin, pathname, body });
      }
      fill();
    },
    start() {
      isStarted = true;
      fill();
    },
    drained: () => Promise.all(lanes),
    close: () => pools.close(),
  };
}

/**
 * BullMQ with one job for each delivery, tuned: bulk adds, 64 jobs at a time, nothing kept, the
 * fast client.
 */
async function openBullmq(webhooks) {
  const urlsOf = directory(webhooks);
  const pools = openPools();
  const connection = { url, maxRetriesPerRequest: null };
  const options = {
    attempts: 14,
    backoff: { type: "custom" },
    removeOnComplete: true,
    removeOnFail: true,
  };
  const queue = new Queue("deliveries", { connection });
  const send = async ({ data: { origin, pathname, body } }) => {
    const status = await post(pools.of(origin), pathname, Buffer.from(JSON.stringify(body)));
    if (status < 200 || status > 299) throw new Error(`HTTP ${status}`);
  };
  const worker = new Worker("deliveries", send, {
    connection,
    concurrency: CONCURRENCY,
    autorun: false,
    settings: { backoffStrategy: () => HOUR / 4 },
  });
  // Jobs in flight at the end are aborted, which BullMQ reports here.
  worker.on("error", () => {});
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  let ended = 0;
  let onEnded = () => {};
  for (const outcome of ["completed", "failed"]) {
    worker.on(outcome, () => {
      ended++;
      onEnded();
    });
  }
  return {
    async emit(events) {
      const jobs = events.flatMap((event) => {
        const body = notification(event);
        return urlsOf(event.account).map(({ origin, pathname }) => ({
          name: "delivery",
          data: { origin, pathname, body },
          opts: options,
        }));
      });
      const bulks = Array.from({ length: Math.ceil(jobs.length / BULK) }, (_, index) =>
        jobs.slice(index * BULK, (index + 1) * BULK),
      );
      await inLanes(bulks, (bulk) => queue.addBulk(bulk), BULKS_AT_ONCE);
    },
    start() {
      // Its promise ends with the worker.
      void worker.run();
    },
    drained: (count) =>
      new Promise((resolve) => {
        onEnded = () => ended >= count && resolve();
        onEnded();
      }),
    async close() {
      await worker.close(true);
      await queue.close();
      await pools.close();
    },
  };
}

async function openPostbell(webhooks, perEndpoint = CONCURRENCY) {
  const storage = redisStorage({ url });
  const service = createWebhooks({
    storage,
    access: { authenticate: () => null, canRead: () => true },
    destinations: { allowHttp: true, allowPrivateNetworks: true, ca: cert },
    delivery: {
      concurrency: CONCURRENCY,
      slowConcurrency: CONCURRENCY,
      perEndpoint,
      deadlineMs: DEADLINE_MS,
    },
  });
  await inLanes(webhooks, ({ account, url }) =>
    service.registrations.create({ subscriber: { id: "key", account }, url }),
  );
  return {
    emit: (events) => inLanes(events, (event) => service.emit(event)),
    start: () => service.start(),
    drained: () => service.idle(),
    async close() {
      await service.stop({ graceMs: 0 });
      await storage.close();
    },
  };
}

const LOOP = "bare loop: HMAC + undici Pool";
const BULLMQ = "BullMQ, one job per delivery";
const POSTBELL = "Postbell on Redis";
const FIVE_EACH = "Postbell on Redis, five at a time per endpoint";
const CONTENDERS = new Map([
  [LOOP, openLoop],
  [BULLMQ, openBullmq],
  [POSTBELL, openPostbell],
]);
const DURABLE = [BULLMQ, POSTBELL];
const IN_BURSTS = [LOOP, BULLMQ, POSTBELL, FIVE_EACH];

/** Opens a contender on an empty database, and closes it whatever happens. */
async function using(name, webhooks, work, perEndpoint) {
  await redis.flushdb("SYNC");
  const open = name === FIVE_EACH ? (given) => openPostbell(given, PER_ENDPOINT) : CONTENDERS.get(name);
  const contender = await open(webhooks, perEndpoint);
  try {
    return await work(contender);
  } finally {
    await contender.close();
  }
}

/**
 * Everything stored first, then everything delivered: what each costs, and what lies in Redis
 * between.
 */
const burst = (receiver, fanOut, count) => (name) => {
  const webhooks = fanOutWebhooks(IS_TLS ? receiver.tls : receiver.plain, fanOut);
  const events = eventsFor(accountsOf(webhooks), Math.ceil(count / fanOut));
  const deliveries = events.length * fanOut;
  return using(name, webhooks, async (contender) => {
    await receiver.collect();
    const emitted = await measure(() => contender.emit(events));
    const delivered = await measure(async () => {
      await contender.start();
      await contender.drained(deliveries);
    });
    const { count: received } = await receiver.collect();
    if (received < deliveries) throw new Error(`${name}: ${received} of ${deliveries} deliveries arrived`);
    return { events: events.length, deliveries, emitted, delivered };
  });
};

/** Events are stored while those before them are delivered, as fast as both go. */
const together = (receiver, fanOut, count) => (name) => {
  const webhooks = fanOutWebhooks(receiver.plain, fanOut);
  const events = eventsFor(accountsOf(webhooks), Math.ceil(count / fanOut));
  const deliveries = events.length * fanOut;
  return using(name, webhooks, async (contender) => {
    await receiver.collect();
    await contender.start();
    const cost = await measure(async () => {
      await contender.emit(events);
      await contender.drained(deliveries);
    });
    const { count: received } = await receiver.collect();
    if (received < deliveries) throw new Error(`${name}: ${received} of ${deliveries} deliveries arrived`);
    return { deliveries, ...cost };
  });
};

/** Emits `events` one by one, one every `everyMs`, and says when each was. */
async function pace(contender, events, everyMs) {
  const sentAt = new Map();
  const emits = [];
  const start = clockMs();
  for (const [index, event] of events.entries()) {
    const wait = start + index * everyMs - clockMs();
    if (wait > 0) await sleep(wait);
    sentAt.set(event.id, clockMs());
    emits.push(contender.emit([event]));
  }
  await Promise.all(emits);
  return sentAt;
}

/** Until `count` receipts are in, but no longer than `ms`. */
async function receiptsWithin(receiver, count, ms) {
  const end = clockMs() + ms;
  const receipts = [];
  for (;;) {
    receipts.push(...(await receiver.collect()).receipts);
    if (receipts.length >= count || clockMs() > end) return receipts;
    await sleep(20);
  }
}

/**
 * Emit → receipt of each event that `sentAt` holds; of one that has not come, how long it has
 * waited so far.
 */
function latencies(sentAt, receipts) {
  const now = clockMs();
  const arrivedAt = new Map();
  for (const [id, at] of receipts) if (!arrivedAt.has(id)) arrivedAt.set(id, at);
  const values = [...sentAt].map(([id, at]) => (arrivedAt.get(id) ?? now) - at);
  return { p50: quantile(values, 0.5), p99: quantile(values, 0.99), arrived: arrivedAt.size / sentAt.size };
}

const WARM_UP_EVENTS = 20;
const timedWebhooks = (origin, count) =>
  Array.from({ length: count }, (_, index) => webhook(`a${index}`, `${origin}/timed-${index}`));

/**
 * Starts, opens the connections with a few events of the `healthy` accounts, then paces the events.
 */
async function paced(contender, receiver, { healthy, events, everyMs }) {
  await contender.start();
  await receiver.collect();
  await pace(contender, eventsFor(healthy, WARM_UP_EVENTS), 10);
  await receiptsWithin(receiver, WARM_UP_EVENTS, 5_000);
  const isHealthy = new Set(healthy);
  const timed = new Set(events.filter(({ account }) => isHealthy.has(account)).map(({ id }) => id));
  let receipts;
  let sentAt;
  const cost = await measure(async () => {
    sentAt = await pace(contender, events, everyMs);
    for (const id of sentAt.keys()) if (!timed.has(id)) sentAt.delete(id);
    receipts = await receiptsWithin(receiver, timed.size, 1_000);
  });
  return { ...latencies(sentAt, receipts), commandsPerEvent: cost.commands / events.length };
}

const LIGHT_EVERY_MS = 10;

const lightLoad = (receiver, count) => (name) => {
  const webhooks = timedWebhooks(receiver.plain, ENDPOINTS);
  const healthy = accountsOf(webhooks);
  return using(name, webhooks, (contender) =>
    paced(contender, receiver, { healthy, events: eventsFor(healthy, count), everyMs: LIGHT_EVERY_MS }),
  );
};

/** Nine of ten endpoints at a steady load, while the tenth hangs, or is not there. */
const besideHanging = (receiver, count) => (name, isDisturbed) => {
  const webhooks = timedWebhooks(receiver.plain, ENDPOINTS - 1);
  const healthy = accountsOf(webhooks);
  const tenth = webhook("a9", `${receiver.plain}/hang`);
  const all = isDisturbed ? [...webhooks, tenth] : webhooks;
  const events = eventsFor([...healthy, tenth.account], count);
  return using(
    name,
    all,
    (contender) => paced(contender, receiver, { healthy, events, everyMs: 2 }),
    PER_ENDPOINT,
  );
};

/**
 * The throughput of nine endpoints with a backlog, while the tenth has as much and hangs, or is not
 * there.
 */
const backlogBesideHanging = (receiver, count) => (name, isDisturbed) => {
  const webhooks = timedWebhooks(receiver.plain, ENDPOINTS - 1);
  const tenth = webhook("a9", `${receiver.plain}/hang`);
  const events = eventsFor([...accountsOf(webhooks), tenth.account], count);
  const expected = events.filter(({ account }) => account !== tenth.account).length;
  return using(
    name,
    isDisturbed ? [...webhooks, tenth] : webhooks,
    async (contender) => {
      await contender.emit(events);
      await receiver.collect();
      const start = clockMs();
      await contender.start();
      const receipts = await receiptsWithin(receiver, expected, 60_000);
      const lastAt = Math.max(...receipts.slice(-1).map(([, at]) => at));
      return { perSecond: (receipts.length / (lastAt - start)) * 1000, arrived: receipts.length / expected };
    },
    PER_ENDPOINT,
  );
};

/**
 * Ten endpoints at a light load, while events of thousands that refuse every connection come in
 * between, or not.
 */
const besideDead = (receiver, count, dead, deadPort) => (name, isDisturbed) => {
  const live = timedWebhooks(receiver.plain, ENDPOINTS);
  const healthy = accountsOf(live);
  const refusing = Array.from({ length: isDisturbed ? dead : 0 }, (_, index) =>
    webhook(`dead${Math.floor(index / PER_ACCOUNT)}`, `http://127.0.0.1:${deadPort}/endpoint-${index}`),
  );
  const deadEvents = eventsFor(accountsOf(refusing), Math.ceil(refusing.length / PER_ACCOUNT));
  const liveEvents = eventsFor(healthy, count);
  // Spread evenly over the time of the others.
  const before = (index) => Math.floor((index * deadEvents.length) / count);
  const events = liveEvents.flatMap((event, index) => [
    event,
    ...deadEvents.slice(before(index), before(index + 1)),
  ]);
  const everyMs = (LIGHT_EVERY_MS * count) / events.length;
  return using(
    name,
    [...live, ...refusing],
    (contender) => paced(contender, receiver, { healthy, events, everyMs }),
    PER_ENDPOINT,
  );
};

function printTable(title, rows, note) {
  const columns = Object.keys(rows[0]);
  console.log(`\n### ${title}\n`);
  console.log(`| ${columns.join(" | ")} |`);
  console.log(`|${columns.map(() => "---").join("|")}|`);
  for (const row of rows) console.log(`| ${columns.map((column) => row[column]).join(" | ")} |`);
  if (note) console.log(`\n${note}`);
}

const figure = (values, digits = 0) => median(values).toFixed(digits);
const withSpread = (values, digits = 2) => `${figure(values, digits)} (${spread(values, digits)})`;
/** The ratios of two lists of rounds, each of its own round. */
const ratios = (own, base) => own.map((value, round) => value / base[round]);
const ratio = (own, base) => (base === undefined ? "–" : withSpread(ratios(own, base)));

/**
 * Runs each of `cases` in each round, in turn and every other round backwards. The first round only
 * warms up, and the receiver stays the same: whoever came first to a fresh one would pay for
 * compiling it.
 */
async function inRounds(title, cases, run) {
  const results = new Map(cases.map(([label]) => [label, []]));
  const receiver = await startReceiver();
  for (let round = 0; round <= ROUNDS; round++) {
    process.stderr.write(`${title}: ${round === 0 ? "warm-up" : `round ${round} of ${ROUNDS}`}\n`);
    for (const [label, ...given] of round % 2 === 0 ? cases : [...cases].reverse()) {
      const result = await run(receiver, round === 0 ? 0.25 : 1, ...given);
      if (round > 0) results.get(label).push(result);
    }
  }
  receiver.stop();
  return (label, read) => results.get(label).map(read);
}

async function togethers() {
  const fanOuts = [1, 10];
  const results = await inRounds(
    "storing and delivering",
    fanOuts.flatMap((fanOut) => DURABLE.map((name) => [`${name}, ${fanOut}`, fanOut, name])),
    (receiver, part, fanOut, name) => together(receiver, fanOut, Math.ceil(DELIVERIES * part))(name),
  );
  const rate = ({ deliveries, ms }) => (deliveries / ms) * 1000;
  const micros = ({ deliveries, nodeMs, redisMs }) => ((nodeMs + redisMs) / deliveries) * 1000;
  printTable(
    "Storing and delivering at the same time",
    fanOuts.flatMap((fanOut) =>
      DURABLE.map((name) => ({
        "fan-out": fanOut,
        contender: name,
        "deliveries/s": figure(results(`${name}, ${fanOut}`, rate)),
        "/ BullMQ": ratio(results(`${name}, ${fanOut}`, rate), results(`${BULLMQ}, ${fanOut}`, rate)),
        "CPU µs, Node and Redis": figure(results(`${name}, ${fanOut}`, micros)),
      })),
    ),
    "Goal: 3.",
  );
}

async function bursts() {
  const cases = FAN_OUTS.flatMap((fanOut) => IN_BURSTS.map((name) => [`${name}, ${fanOut}`, fanOut, name]));
  const results = await inRounds("bursts", cases, (receiver, part, fanOut, name) =>
    burst(receiver, fanOut, Math.ceil(DELIVERIES * part))(name),
  );
  const rowsOf = (names, row) =>
    FAN_OUTS.flatMap((fanOut) =>
      names.map((name) => ({
        "fan-out": fanOut,
        contender: name,
        ...row((read, of = name) => results(`${of}, ${fanOut}`, read), name),
      })),
    );

  const deliverRate = ({ deliveries, delivered }) => (deliveries / delivered.ms) * 1000;
  const nodeMicros = ({ deliveries, delivered }) => (delivered.nodeMs / deliveries) * 1000;
  const redisMicros = ({ deliveries, delivered }) => (delivered.redisMs / deliveries) * 1000;
  // Redis is idle beside the loop, but its timers cost something.
  const micros = (of) => (result) => nodeMicros(result) + (of === LOOP ? 0 : redisMicros(result));
  printTable(
    "Delivering a backlog",
    rowsOf(IN_BURSTS, (of, name) => ({
      "deliveries/s": figure(of(deliverRate)),
      "/ bare loop": ratio(of(deliverRate), of(deliverRate, LOOP)),
      "/ BullMQ": ratio(of(deliverRate), of(deliverRate, BULLMQ)),
      "CPU µs, Node": figure(of(nodeMicros)),
      "CPU µs, Redis": name === LOOP ? "–" : figure(of(redisMicros)),
      "CPU / bare loop": ratio(of(micros(name)), of(micros(LOOP), LOOP)),
      "BullMQ's CPU / own": ratio(of(micros(BULLMQ), BULLMQ), of(micros(name))),
    })),
    "Goals for Postbell: 0.8 of the loop, 3 times BullMQ, CPU at most 1.75 of the loop's.",
  );

  const emitRate = ({ events, emitted }) => (events / emitted.ms) * 1000;
  printTable(
    "Storing events",
    rowsOf(DURABLE, (of) => ({
      "events/s": figure(of(emitRate)),
      "/ BullMQ": ratio(of(emitRate), of(emitRate, BULLMQ)),
      "CPU µs per event, Node": figure(of(({ events, emitted }) => (emitted.nodeMs / events) * 1000)),
      "CPU µs per event, Redis": figure(of(({ events, emitted }) => (emitted.redisMs / events) * 1000)),
    })),
    "Goals: 2, and 5 at a fan-out of ten. BullMQ adds in bulks of 100 jobs; Postbell's events are emitted one by one, 64 at a time.",
  );

  const per = (phase, what) => (result) => result[phase][what] / result.deliveries;
  const both = (what) => (result) => per("emitted", what)(result) + per("delivered", what)(result);
  printTable(
    "Commands, network and memory of Redis, per delivery",
    rowsOf(DURABLE, (of) => ({
      "client commands": withSpread(of(both("commands"))),
      "to store": figure(of(per("emitted", "commands")), 2),
      "to deliver": figure(of(per("delivered", "commands")), 2),
      "inside scripts": figure(of(both("inScripts")), 1),
      "bytes of network": figure(of(both("netBytes"))),
      "bytes of memory while pending": withSpread(of(per("emitted", "memory")), 0),
    })),
    "Goals: 0.5 client commands; 2 900 bytes of memory, and 500 at a fan-out of ten.",
  );
}

async function lightLoads() {
  const count = Math.max(100, Math.ceil(DELIVERIES / 20));
  const results = await inRounds(
    "light load",
    [...CONTENDERS.keys()].map((name) => [name, name]),
    (receiver, part, name) => lightLoad(receiver, Math.ceil(count * part))(name),
  );
  const p50 = ({ p50 }) => p50;
  const p99 = ({ p99 }) => p99;
  printTable(
    `Light load: an event every ${LIGHT_EVERY_MS} ms, emit → receipt`,
    [...CONTENDERS.keys()].map((name) => ({
      contender: name,
      "p50 ms": withSpread(results(name, p50)),
      "p50 / bare loop": ratio(results(name, p50), results(LOOP, p50)),
      "p99 ms": withSpread(results(name, p99)),
      "client commands per delivery":
        name === LOOP ? "–" : withSpread(results(name, ({ commandsPerEvent }) => commandsPerEvent)),
    })),
    "Goals: a p50 of at most twice the loop's; 4 client commands.",
  );
}

/** Each name calm and disturbed, and the disturbed rounds as ratios of the calm ones. */
async function isolation(title, disturbance, names, run, columns, note) {
  const results = await inRounds(
    title,
    names.flatMap((name) => [
      [`${name}, calm`, name, false],
      [`${name}, disturbed`, name, true],
    ]),
    run,
  );
  const rows = names.flatMap((name) => {
    const calm = (read) => results(`${name}, calm`, read);
    const disturbed = (read) => results(`${name}, disturbed`, read);
    const row = (label, of, base) =>
      Object.assign({ contender: name, [disturbance]: label }, ...columns.map((column) => column(of, base)));
    return [row("no", calm), row("yes", disturbed, calm)];
  });
  printTable(title, rows, note);
}

const column = (title, name, digits) => (of, calm) => {
  const read = (result) => result[name];
  return {
    [title]: withSpread(of(read), digits),
    [`${name === "perSecond" ? "" : `${name} `}yes / no`]: ratio(of(read), calm?.(read)),
  };
};
const arrivedColumn = (of) => ({
  "arrived %": figure(
    of(({ arrived }) => arrived * 100),
    1,
  ),
});
const latencyColumns = [column("p50 ms", "p50", 2), column("p99 ms", "p99", 2), arrivedColumn];

async function isolations() {
  const steady = Math.max(250, Math.ceil(DELIVERIES / 4));
  const light = Math.max(100, Math.ceil(DELIVERIES / 20));
  const dead = Math.ceil(DELIVERIES / 2);
  const deadPort = await freePort();
  await isolation(
    "Nine of ten endpoints with a backlog",
    "the tenth hangs",
    [POSTBELL],
    (receiver, part, ...given) => backlogBesideHanging(receiver, Math.ceil(DELIVERIES * part))(...given),
    [column("deliveries/s", "perSecond", 0), arrivedColumn],
    "Goal: 0.98.",
  );
  await isolation(
    "Nine of ten endpoints at 500 events/s for ten, emit → receipt",
    "the tenth hangs",
    DURABLE,
    (receiver, part, ...given) => besideHanging(receiver, Math.ceil(steady * part))(...given),
    latencyColumns,
    "Goal: a p99 ratio of at most 2. Deliveries that are missing a second after the end count with their wait so far.",
  );
  await isolation(
    `Ten endpoints at 100 events/s, next to ${dead} that refuse connections and get one event each`,
    "with dead endpoints",
    DURABLE,
    (receiver, part, ...given) =>
      besideDead(receiver, Math.ceil(light * part), Math.ceil(dead * part), deadPort)(...given),
    latencyColumns,
  );
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** A store with enabled webhooks, and as many pending deliveries of 15 to an event as asked for. */
async function openQueue(prefix, pending) {
  const storage = redisStorage({ url, prefix, limits: { pending: 2 * PENDING } });
  const store = storage.webhooks({
    clock: systemClock,
    logger: silent,
    perEndpoint: PER_ENDPOINT,
    retention: { keepMs: 72 * HOUR, events: 10_000 },
  });
  const accounts = Array.from(
    { length: Math.ceil(GROWTH_ENDPOINTS / PER_ACCOUNT) },
    (_, index) => `${prefix}${index}`,
  );
  const records = accounts.flatMap((account) =>
    Array.from({ length: PER_ACCOUNT }, (_, index) => webhookRecord(store, account, index)),
  );
  await inLanes(records, (webhook) =>
    store.createWebhook({
      webhook,
      enabledLimit: PER_ACCOUNT,
      accountLimit: PER_ACCOUNT,
      idempotency: null,
      now: store.now(),
    }),
  );
  const indexes = Array.from({ length: Math.ceil(pending / PER_ACCOUNT) }, (_, index) => index);
  const filling = await measure(() =>
    inLanes(indexes, (index) => appendEvent(store, accounts[index % accounts.length], index)),
  );
  return { storage, store, bytesPerPending: filling.memory / (indexes.length * PER_ACCOUNT) };
}

const webhookRecord = (store, account, index) => ({
  id: store.newWebhookId(account),
  account,
  subscriberId: "key",
  url: `https://example.com/${account}/${index}`,
  status: "ENABLED",
  eventTypes: null,
  createdAt: store.now(),
  updatedAt: store.now(),
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  previousSecret: null,
  rotateAt: null,
  generation: 1,
  failingSince: null,
  warnedAt: null,
  noticeAt: null,
});

const appendEvent = (store, account, index) => {
  const { id, type, resource } = newEvent(account, index);
  const payload = JSON.stringify(notification({ id, resource }));
  const event = { id, account, type, digest: id, payload };
  return store.append({ events: [event], rememberMs: 24 * HOUR, now: store.now() });
};

const settlementNow = (store, { id, token, step, isExtra, webhook }) => {
  const now = store.now();
  return {
    id,
    webhookId: webhook.id,
    account: webhook.account,
    token,
    now,
    outcome: { state: "delivered" },
    startedAt: now,
    attempt: {
      at: now,
      durationMs: 1,
      step,
      isExtra,
      kind: "delivered",
      status: 200,
      code: "HTTP_200",
      excerpt: null,
    },
    endpoint: { ok: true, generation: webhook.generation, at: now, noticeAt: now + 72 * HOUR, lane: "slow" },
  };
};

/**
 * Claims a hundred at a time and settles them as delivered, until `count` are. All stay in the slow
 * lane, where new endpoints begin, so that every claim has the same room.
 */
async function work(store, count) {
  let settled = 0;
  for (let turn = 0; settled < count; turn++) {
    const now = store.now();
    const room = { fast: 0, slow: 100 };
    const { claims } = await store.claim({ now, token: `bench.${turn}`, leaseUntil: now + 60_000, room });
    if (claims.length === 0) throw new Error(`nothing to claim after ${settled} of ${count}`);
    await store.settle(claims.map((claim) => settlementNow(store, claim)));
    settled += claims.length;
  }
  return settled;
}

async function growth() {
  const few = Math.min(10_000, PENDING, GROWTH_ENDPOINTS);
  const sample = Math.ceil(few / 2);
  await redis.flushdb("SYNC");
  const long = await openQueue("long", PENDING);
  const results = { short: [], long: [] };
  const memory = { short: [], long: [long.bytesPerPending] };
  const run = async ({ store }) => {
    let settled = 0;
    const cost = await measure(async () => {
      settled = await work(store, sample);
    });
    const micros = (ms) => (ms / settled) * 1000;
    return { wall: micros(cost.ms), node: micros(cost.nodeMs), redis: micros(cost.redisMs) };
  };
  for (let round = 0; round <= ROUNDS; round++) {
    process.stderr.write(`growth: ${round === 0 ? "warm-up" : `round ${round} of ${ROUNDS}`}\n`);
    const short = await openQueue(`short${round}`, few);
    memory.short.push(short.bytesPerPending);
    const queues = Object.entries({ short, long });
    for (const [name, queue] of round % 2 === 0 ? queues : queues.reverse()) {
      const result = await run(queue);
      if (round > 0) results[name].push(result);
    }
    await short.storage.close();
  }
  await long.storage.close();
  const of = (name, part) => results[name].map((result) => result[part]);
  const row = (name, pending) => ({
    pending,
    "claim + settle, µs": withSpread(of(name, "wall"), 0),
    "/ shorter": ratio(of(name, "wall"), name === "long" ? of("short", "wall") : undefined),
    "CPU µs, Node": figure(of(name, "node")),
    "CPU µs, Redis": withSpread(of(name, "redis"), 0),
    "Redis / shorter": ratio(of(name, "redis"), name === "long" ? of("short", "redis") : undefined),
    "bytes of Redis memory each": figure(memory[name]),
  });
  printTable(
    `A long queue: deliveries to ${GROWTH_ENDPOINTS} endpoints, fan-out ${PER_ACCOUNT}, a hundred claimed at a time`,
    [row("short", few), row("long", PENDING)],
    "Goal: 1.5.",
  );
}

const isGrowth = process.argv.includes("growth") || process.env.BENCH_GROWTH === "1";
const { redis_version: version } = Object.fromEntries(
  (await redis.info("server")).split("\r\n").map((line) => line.split(":")),
);
console.log(
  `\nNode ${process.version}, Redis ${version}, ${ROUNDS} rounds, 2 kB bodies, concurrency ${CONCURRENCY}, ${IS_TLS ? "HTTPS" : "plain HTTP"} on loopback. Medians (smallest–largest); a ratio is of its own round.`,
);
if (isGrowth) await growth();
else if (IS_TLS) await bursts();
else {
  await bursts();
  await togethers();
  await lightLoads();
  await isolations();
}
await redis.flushdb("SYNC");
redis.disconnect();
stop();
