// `npm run bench`: deliveries per second, as ratios against a bare loop in the same run. Absolute
// figures are those of the machine it runs on.
import { createWebhooks } from "postbell";
import { memoryStorage } from "postbell/memory";
import { Pool } from "undici";
import { CONCURRENCY, cert, ENDPOINTS, median, patient, post, spread, startReceiver } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const DELIVERIES = Number(process.env.BENCH_DELIVERIES ?? 20_000);
/** Deliveries of the round that only warms up. */
const WARM_UP = 5_000;

/** Creates a stopwatch that adds up wall clock and CPU of this process. */
function createStopwatch() {
  let ms = 0;
  let cpuMs = 0;
  return {
    async time(work) {
      const cpu = process.cpuUsage();
      const start = performance.now();
      await work();
      ms += performance.now() - start;
      const { user, system } = process.cpuUsage(cpu);
      cpuMs += (user + system) / 1000;
    },
    result: (count) => ({ perSecond: (count / ms) * 1000, cpuMicros: (cpuMs / count) * 1000 }),
  };
}

/**
 * The code of a developer without durability, retries, access checks and guards: sign, POST, next.
 */
async function bareLoop(origin, count) {
  const pool = new Pool(origin, { connections: CONCURRENCY, connect: { ca: cert } });
  const body = Buffer.from(JSON.stringify({ id: "e", event: patient(1), filler: "y".repeat(300) }));
  let next = 0;
  const lane = async () => {
    while (next < count) {
      await post(pool, `/endpoint-${next++ % ENDPOINTS}`, body);
    }
  };
  const watch = createStopwatch();
  await watch.time(() => Promise.all(Array.from({ length: CONCURRENCY }, lane)));
  await pool.close();
  return watch.result(count);
}

/** Events with a FHIR resource: `canRead` is called for it at each attempt. */
const RESOURCES = {
  options: { access: { authenticate: () => null, canRead: () => true } },
  event: (index) => ({
    type: "patient.updated",
    account: `a${index % ENDPOINTS}`,
    resource: patient(index),
  }),
};

/** Events of a type of the host, with the same bytes as data. No right is asked for. */
const PLAIN = {
  options: { events: { "order.paid": {} }, access: { authenticate: () => null } },
  event: (index) => ({ type: "order.paid", account: `a${index % ENDPOINTS}`, data: patient(index) }),
};

/** Opens a service with one webhook per account; `paths[i]` is the endpoint of account i. */
async function openService({ options, origin, paths, perEndpoint }) {
  const webhooks = createWebhooks({
    ...options,
    storage: memoryStorage(),
    destinations: { allowHttp: true, allowPrivateNetworks: true, ca: cert },
    delivery: { concurrency: CONCURRENCY, slowConcurrency: CONCURRENCY, perEndpoint },
  });
  for (const [index, path] of paths.entries()) {
    await webhooks.registrations.create({
      subscriber: { id: "key", account: `a${index}` },
      url: origin + path,
    });
  }
  return webhooks;
}

const endpointPaths = Array.from({ length: ENDPOINTS }, (_, index) => `/endpoint-${index}`);

/**
 * Emits everything, then starts and delivers it. `measured` selects what is timed: "deliver" (the
 * work that the bare loop does too), "emit", or "both". Connections are opened in the timed part,
 * as those of the bare loop are.
 */
const postbell =
  (measured, { options, event } = RESOURCES) =>
  async (origin, count) => {
    const webhooks = await openService({ options, origin, paths: endpointPaths, perEndpoint: CONCURRENCY });
    const watch = createStopwatch();
    const unmeasured = (work) => work();
    const measure = (work) => watch.time(work);
    const emitting = measured === "deliver" ? unmeasured : measure;
    const delivering = measured === "emit" ? unmeasured : measure;
    await emitting(async () => {
      for (let index = 0; index < count; index++) await webhooks.emit(event(index));
    });
    await delivering(async () => {
      await webhooks.start();
      await webhooks.idle();
    });
    await webhooks.stop();
    return watch.result(count);
  };

/**
 * Measures nine healthy endpoints, while the tenth gets events too and hangs, or is DISABLED.
 */
const nineOfTen = (hangs) => async (origin, count) => {
  const { options, event } = RESOURCES;
  const paths = [...endpointPaths.slice(0, 9), "/hang"];
  const webhooks = await openService({ options, origin, paths, perEndpoint: 5 });
  await webhooks.start();
  if (!hangs) {
    // The same number of events is emitted and stored, but nothing is sent to it.
    const [tenth] = (await webhooks.registrations.list({ account: "a9" })).items;
    await webhooks.registrations.update({ id: tenth.id, status: "DISABLED" });
  }
  const healthy = Math.floor(count / 9) * 9;
  const lastOfEach = [];
  for (let index = 0; index < healthy; index++) {
    const { deliveries } = await webhooks.emit({ ...event(index), account: `a${index % 9}` });
    lastOfEach[index % 9] = deliveries[0].id;
    if (index % 9 === 0) await webhooks.emit({ ...event(index), account: "a9" });
  }
  const watch = createStopwatch();
  await watch.time(async () => {
    for (;;) {
      const states = await Promise.all(lastOfEach.map((id) => webhooks.deliveries.get(id)));
      if (states.every(({ state }) => state === "delivered")) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
  await webhooks.stop({ graceMs: 0 });
  return watch.result(healthy);
};

/** Runs all rows in every round, in alternating order. The first round only warms up. */
async function runRounds(protocol, rows) {
  const results = new Map(rows.map(([name]) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    const receiver = await startReceiver();
    const count = round === 0 ? Math.min(WARM_UP, DELIVERIES) : DELIVERIES;
    for (const [name, run] of round % 2 === 0 ? rows : [...rows].reverse()) {
      const result = await run(receiver[protocol], count);
      if (round > 0) results.get(name).push(result);
    }
    receiver.stop();
  }
  return results;
}

/** Summarises the rounds of one row in relation to the baseline. */
function summarise(own, base) {
  const ratios = own.map(({ perSecond }, round) => perSecond / base[round].perSecond);
  const cpu = own.map(({ cpuMicros }, round) => cpuMicros / base[round].cpuMicros);
  return {
    "per second": Math.round(median(own.map(({ perSecond }) => perSecond))),
    ratio: median(ratios).toFixed(2),
    spread: spread(ratios),
    "CPU µs": Math.round(median(own.map(({ cpuMicros }) => cpuMicros))),
    "CPU ratio": median(cpu).toFixed(2),
  };
}

async function compare(title, protocol, rows, goal) {
  const results = await runRounds(protocol, rows);
  const base = results.get(rows[0][0]);
  console.log(`\n${title}`);
  console.table(Object.fromEntries(rows.map(([name]) => [name, summarise(results.get(name), base)])));
  console.log(goal);
}

console.log(
  `Node ${process.version}, ${ROUNDS} rounds of ${DELIVERIES} deliveries, 2 kB bodies, concurrency ${CONCURRENCY}, ${ENDPOINTS} endpoints on loopback.`,
);
console.log(
  "Every contender opens its connections in the timed part: 64 for all deliveries of a round do not matter.",
);
console.log(
  "Ratios compare with the baseline of the same round (the first row). Medians, with the smallest and the largest.",
);

const LOOP = ["bare loop: HMAC + undici Pool", bareLoop];
const DELIVER = ["postbell: deliver", postbell("deliver")];
await compare("Deliveries over HTTPS, memory storage", "tls", [LOOP, DELIVER], "Goal: 1.0.");
await compare(
  "Deliveries over plain HTTP, memory storage",
  "plain",
  [
    LOOP,
    DELIVER,
    ["postbell: emit and deliver", postbell("both")],
    ["postbell: emit alone", postbell("emit")],
    ["postbell without canRead: deliver", postbell("deliver", PLAIN)],
    ["postbell without canRead: emit and deliver", postbell("both", PLAIN)],
    ["postbell without canRead: emit alone", postbell("emit", PLAIN)],
  ],
  "Goal: 1.0 for delivering.",
);
await compare(
  "Nine healthy endpoints of ten, over HTTPS",
  "tls",
  [
    ["the tenth is disabled", nineOfTen(false)],
    ["the tenth hangs", nineOfTen(true)],
  ],
  "Goal: 0.98.",
);
