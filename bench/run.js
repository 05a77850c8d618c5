// `npm run bench`: deliveries per second, as ratios against a bare loop in the same run. Absolute figures are those of the machine it runs on.
import { fork } from "node:child_process";
import { createHmac } from "node:crypto";
import { createWebhooks } from "postbell";
import { memoryStorage } from "postbell/memory";
import { Pool } from "undici";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const DELIVERIES = Number(process.env.BENCH_DELIVERIES ?? 15_000);
const CONCURRENCY = 64;
const ENDPOINTS = 10;

const patient = (index) => ({
  resourceType: "Patient",
  id: `p${index}`,
  name: [{ family: "Example", given: ["Anna", "Maria"] }],
  text: { status: "generated", div: "x".repeat(1_400) },
});

const startReceiver = () =>
  new Promise((resolve) => {
    const child = fork(new URL("./receiver.js", import.meta.url));
    child.once("message", ({ port }) =>
      resolve({ origin: `http://127.0.0.1:${port}`, stop: () => child.disconnect() }),
    );
  });

/** Milliseconds of wall clock and of this process's CPU that `work` takes. */
async function measure(work) {
  globalThis.gc?.();
  const cpu = process.cpuUsage();
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { ms, cpuMs: (user + system) / 1000 };
}

/** What a developer writes who needs no durability, no retry and no guard: sign, POST, next. */
async function bareLoop(origin, count) {
  const pool = new Pool(origin, { connections: CONCURRENCY });
  const body = Buffer.from(JSON.stringify({ id: "e", event: patient(1), filler: "y".repeat(300) }));
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const path = `/endpoint-${next++ % ENDPOINTS}`;
      const timestamp = Math.floor(Date.now() / 1000);
      const signature = createHmac("sha256", "secret").update(`${timestamp}.`).update(body).digest("hex");
      const response = await pool.request({
        path,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-service-signature": `t=${timestamp}, s=${signature}`,
        },
        body,
      });
      await response.body.dump();
    }
  };
  const result = await measure(() => Promise.all(Array.from({ length: CONCURRENCY }, lane)));
  await pool.close();
  return { perSecond: (count / result.ms) * 1000, cpuMicros: (result.cpuMs / count) * 1000 };
}

const access = { authenticate: () => null, canRead: () => true };

/** A service with one webhook in each of ten accounts; `paths[i]` is the endpoint of account i. */
async function service(origin, paths, options = {}) {
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access,
    destinations: { allowHttp: true, allowPrivateNetworks: true },
    delivery: { concurrency: CONCURRENCY, perEndpoint: CONCURRENCY },
    ...options,
  });
  for (const [index, path] of paths.entries()) {
    await webhooks.registrations.create({ id: "key", account: `a${index}` }, { url: origin + path });
  }
  return webhooks;
}

const endpointPaths = Array.from({ length: ENDPOINTS }, (_, index) => `/endpoint-${index}`);

const event = (index) => ({
  type: "patient.updated",
  account: `a${index % ENDPOINTS}`,
  resource: patient(index),
});

/** Delivers a backlog that was emitted before: what the loop does, plus storage, schedule, access, lanes and the guarded client. */
async function postbellDrain(origin, count) {
  const webhooks = await service(origin, endpointPaths);
  for (let index = 0; index < count; index++) await webhooks.emit(event(index));
  const result = await measure(async () => {
    await webhooks.start();
    await webhooks.idle();
  });
  await webhooks.stop();
  return { perSecond: (count / result.ms) * 1000, cpuMicros: (result.cpuMs / count) * 1000 };
}

/** The same with emitting inside the measured time. */
async function postbellEmitAndDeliver(origin, count) {
  const webhooks = await service(origin, endpointPaths);
  await webhooks.start();
  const result = await measure(async () => {
    for (let index = 0; index < count; index++) {
      await webhooks.emit(event(index));
      // Lets the loop turn, as a host that emits on requests does.
      if (index % CONCURRENCY === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await webhooks.idle();
  });
  await webhooks.stop();
  return { perSecond: (count / result.ms) * 1000, cpuMicros: (result.cpuMs / count) * 1000 };
}

/** Emits per second alone, nothing delivered. */
async function emitOnly(origin, count) {
  const webhooks = await service(origin, endpointPaths);
  const result = await measure(async () => {
    for (let index = 0; index < count; index++) await webhooks.emit(event(index));
  });
  return { perSecond: (count / result.ms) * 1000, cpuMicros: (result.cpuMs / count) * 1000 };
}

/** Throughput of nine healthy endpoints, the tenth of ten hanging (or healthy and without events). */
async function nineOfTen(origin, count, hangs) {
  const webhooks = await service(origin, [...endpointPaths.slice(0, 9), "/hang"], {
    delivery: { concurrency: CONCURRENCY, perEndpoint: 5 },
  });
  let left = 0;
  for (let index = 0; index < count; index++) {
    const account = index % 9;
    await webhooks.emit({ ...event(index), account: `a${account}` });
    left++;
    if (hangs && index % 9 === 0) await webhooks.emit({ ...event(index), account: "a9" });
  }
  const { webhooks: registered } = await webhooks.registrations.list({ account: "a0" });
  if (registered.length !== 1) throw new Error("one webhook an account");
  const healthyDone = async () => {
    for (;;) {
      const pending = await Promise.all(
        healthy.map((id) => webhooks.deliveries.list({ webhookId: id, state: "pending", limit: 1 })),
      );
      if (pending.every(({ deliveries }) => deliveries.length === 0)) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const healthy = [];
  for (let index = 0; index < 9; index++) {
    const { webhooks: own } = await webhooks.registrations.list({ account: `a${index}` });
    healthy.push(own[0].id);
  }
  const result = await measure(async () => {
    await webhooks.start();
    await healthyDone();
  });
  await webhooks.stop({ graceMs: 0 });
  return { perSecond: (left / result.ms) * 1000, cpuMicros: (result.cpuMs / left) * 1000 };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const spread = (values) => `${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)}`;

async function compare(title, baseline, contenders, goal) {
  const rows = [baseline, ...contenders];
  const results = new Map(rows.map(({ name }) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    // A receiver of its own for each round, and the first round only warms up.
    const receiver = await startReceiver();
    for (const { name, run } of round % 2 === 0 ? rows : [...rows].reverse()) {
      const result = await run(receiver.origin, round === 0 ? Math.ceil(DELIVERIES / 4) : DELIVERIES);
      if (round > 0) results.get(name).push(result);
    }
    receiver.stop();
  }
  console.log(`\n${title}`);
  const base = results.get(baseline.name);
  console.table(
    Object.fromEntries(
      rows.map(({ name }) => {
        const own = results.get(name);
        const ratios = own.map(({ perSecond }, round) => perSecond / base[round].perSecond);
        return [
          name,
          {
            "per second": Math.round(median(own.map(({ perSecond }) => perSecond))),
            "CPU µs each": Math.round(median(own.map(({ cpuMicros }) => cpuMicros))),
            ratio: median(ratios).toFixed(2),
            spread: spread(ratios),
          },
        ];
      }),
    ),
  );
  console.log(goal);
}

console.log(
  `Node ${process.version}, ${ROUNDS} rounds of ${DELIVERIES} deliveries, 2 kB bodies, concurrency ${CONCURRENCY}, ${ENDPOINTS} endpoints, plain HTTP on loopback.`,
);
console.log("Ratios are of the rounds' own baseline, medians with their smallest and largest value.");

await compare(
  "Deliveries, memory storage",
  { name: "bare loop: HMAC + undici Pool", run: bareLoop },
  [
    { name: "postbell: deliver a backlog", run: postbellDrain },
    { name: "postbell: emit and deliver", run: postbellEmitAndDeliver },
    { name: "postbell: emit only", run: emitOnly },
  ],
  "Goal: a backlog at 0.9 of the loop.",
);
await compare(
  "Nine healthy endpoints, the tenth hangs",
  { name: "without the tenth", run: (origin, count) => nineOfTen(origin, count, false) },
  [{ name: "with it hanging", run: (origin, count) => nineOfTen(origin, count, true) }],
  "Goal: 0.98.",
);
