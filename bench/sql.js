/**
 * `npm run bench`, third part: Postbell on a SQLite file and on Postgres, beside a bare loop and
 * beside what a developer would use on Postgres. Only ratios carry over to another machine.
 *
 * BENCH_ROUNDS, BENCH_DELIVERIES: how much. BENCH_BASE: the folder `dist` of another build, whose
 * claims and settlements are measured in turn with those of this one. BENCH_PENDING,
 * BENCH_ENDPOINTS: the size of the long queue. BENCH_KEPT: the deliveries after which the size of
 * the tables is printed.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Logger, makeWorkerUtils, run as runGraphile } from "graphile-worker";
import pg from "pg";
import { PgBoss } from "pg-boss";
import { createWebhooks, systemClock } from "postbell";
import { postgresStorage } from "postbell/postgres";
import { sqliteStorage } from "postbell/sqlite";
import { Pool } from "undici";
import { openDatabase } from "../examples/support/open-database.js";
import { startPostgres } from "./postgres-server.js";
import { CONCURRENCY, cert, ENDPOINTS, median, patient, post, spread, startReceiver } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const DELIVERIES = Number(process.env.BENCH_DELIVERIES ?? 20_000);
const PENDING = Number(process.env.BENCH_PENDING ?? 1_000_000);
const GROWTH_ENDPOINTS = Number(process.env.BENCH_ENDPOINTS ?? 10_000);
const KEPT = Number(process.env.BENCH_KEPT ?? 1_000_000);
const BULK = 200;
/** Makes the other bodies as long as Postbell's of the same event. */
const FILLER = "y".repeat(345);
const HOUR = 3_600_000;

const server = await startPostgres();
if (!server) console.log("Postgres is not on this machine: only SQLite is measured.");
const newPool = (max = 10) => new pg.Pool({ connectionString: server.url, max });
let made = 0;

const BUILDS = { new: { postgresStorage, sqliteStorage } };
if (process.env.BENCH_BASE) {
  const [postgres, sqlite] = ["postgres.js", "sqlite.js"].map((file) => join(process.env.BENCH_BASE, file));
  BUILDS.base = { ...(await import(postgres)), ...(await import(sqlite)) };
}

/** Opens an empty storage of each kind. */
const STORAGES = {
  async SQLite(build = "new") {
    const dir = mkdtempSync(join(tmpdir(), "postbell-bench-"));
    const database = await openDatabase(join(dir, "postbell.db"));
    const storage = BUILDS[build].sqliteStorage({ database });
    return {
      storage,
      bytes: async () => (await storage.check()).bytes,
      async close() {
        await storage.close();
        database.close();
        rmSync(dir, { recursive: true });
      },
    };
  },
  async Postgres(build = "new") {
    const schema = `bench_${++made}`;
    const storage = BUILDS[build].postgresStorage({ url: server.url, schema });
    await storage.migrate();
    return {
      storage,
      schema,
      bytes: async () => (await storage.check()).bytes,
      async close() {
        await storage.close();
        const pool = newPool(1);
        await pool.query(`DROP SCHEMA "${schema}" CASCADE`);
        await pool.end();
      },
    };
  },
};
if (!server) delete STORAGES.Postgres;

const batches = (count, size = BULK) =>
  Array.from({ length: Math.ceil(count / size) }, (_, index) =>
    Array.from({ length: Math.min(size, count - index * size) }, (_, offset) => index * size + offset),
  );

async function timed(work) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { ms: performance.now() - start, cpuMs: (user + system) / 1_000 };
}

const bodyOf = (index) => JSON.stringify({ id: "e", event: patient(index), filler: FILLER });

/** The code of a developer without durability, retries, access checks and guards. */
async function bareLoop(origin, count) {
  const pool = new Pool(origin, { connections: CONCURRENCY, connect: { ca: cert } });
  const body = Buffer.from(bodyOf(1));
  let next = 0;
  const lane = async () => {
    while (next < count) await post(pool, `/endpoint-${next++ % ENDPOINTS}`, body);
  };
  const cost = await timed(() => Promise.all(Array.from({ length: CONCURRENCY }, lane)));
  await pool.close();
  return cost;
}

const postbell = (kind) => async (origin, count) => {
  const { storage, close } = await STORAGES[kind]();
  const webhooks = createWebhooks({
    storage,
    access: { authenticate: () => null, canRead: () => true },
    destinations: { allowHttp: true, allowPrivateNetworks: true, ca: cert },
    // The others limit no endpoint, and a limit counts claims that wait and settlements too.
    delivery: { concurrency: CONCURRENCY, slowConcurrency: CONCURRENCY, perEndpoint: 10 * CONCURRENCY },
  });
  for (let index = 0; index < ENDPOINTS; index++) {
    const owner = { id: "key", account: `a${index}` };
    await webhooks.registrations.create({ subscriber: owner, url: `${origin}/endpoint-${index}` });
  }
  for (const batch of batches(count)) {
    await Promise.all(
      batch.map((index) =>
        webhooks.emit({
          type: "patient.updated",
          account: `a${index % ENDPOINTS}`,
          resource: patient(index),
        }),
      ),
    );
  }
  const cost = await timed(async () => {
    await webhooks.start();
    await webhooks.idle();
  });
  await webhooks.stop();
  await close();
  return cost;
};

/** One job per delivery, fetched and completed in batches by four loops with 16 requests each. */
async function pgBoss(origin, count) {
  const boss = new PgBoss({ connectionString: server.url, schema: `boss_${++made}`, max: 10 });
  boss.on("error", () => {});
  await boss.start();
  await boss.createQueue("deliver");
  for (const batch of batches(count)) {
    const jobs = batch.map((index) => ({
      data: { path: `/endpoint-${index % ENDPOINTS}`, body: bodyOf(index) },
    }));
    await boss.insert("deliver", jobs);
  }
  const http = new Pool(origin, { connections: CONCURRENCY });
  let done = 0;
  const loop = async () => {
    while (done < count) {
      const jobs = await boss.fetch("deliver", { batchSize: 16 });
      if (jobs.length === 0) continue;
      await Promise.all(jobs.map(({ data }) => post(http, data.path, data.body)));
      await boss.complete(
        "deliver",
        jobs.map(({ id }) => id),
      );
      done += jobs.length;
    }
  };
  const cost = await timed(() => Promise.all([loop(), loop(), loop(), loop()]));
  await http.close();
  await boss.stop({ graceful: false });
  return cost;
}

/** One job per delivery. `worker`: its settings beside the number of concurrent jobs. */
const graphileWorker = (worker) => async (origin, count) => {
  const schema = `graphile_${++made}`;
  const pgPool = newPool(CONCURRENCY);
  pgPool.on("error", () => {});
  pgPool.on("connect", (client) => client.on("error", () => {}));
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ pgPool, schema, logger });
  await utils.migrate();
  for (const batch of batches(count)) {
    await utils.addJobs(
      batch.map((index) => ({
        identifier: "deliver",
        payload: { path: `/endpoint-${index % ENDPOINTS}`, body: bodyOf(index) },
      })),
    );
  }
  const http = new Pool(origin, { connections: CONCURRENCY });
  let done = 0;
  let runner;
  const cost = await timed(
    () =>
      new Promise((resolve, reject) => {
        const deliver = async ({ path, body }) => {
          await post(http, path, body);
          if (++done === count) resolve();
        };
        runGraphile({
          pgPool,
          schema,
          logger,
          concurrency: CONCURRENCY,
          noHandleSignals: true,
          taskList: { deliver },
          preset: { worker },
        }).then((started) => {
          runner = started;
        }, reject);
      }),
  );
  await runner?.stop();
  await http.close();
  await utils.release();
  await pgPool.end();
  return cost;
};

/** A local queue, and completions in batches. */
const TUNED = { localQueue: { size: 500 }, completeJobBatchDelay: 1, failJobBatchDelay: 1 };

const ratios = (own, base) => own.map(({ ms }, round) => base[round].ms / ms);
const figure = (values) => `${median(values).toFixed(2)} (${spread(values)})`;

/** Delivers a backlog with each row in every round, in alternating order. */
async function backlog(protocol) {
  const rows = [
    ["bare loop", bareLoop],
    ...Object.keys(STORAGES).map((kind) => [kind, postbell(kind)]),
    ...(server && protocol === "plain"
      ? [
          ["pg-boss", pgBoss],
          ["graphile-worker", graphileWorker({})],
          ["graphile, tuned", graphileWorker(TUNED)],
        ]
      : []),
  ];
  const results = new Map(rows.map(([name]) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    const receiver = await startReceiver();
    const count = round === 0 ? Math.ceil(DELIVERIES / 4) : DELIVERIES;
    for (const [name, run] of round % 2 === 0 ? rows : [...rows].reverse()) {
      const cost = await run(receiver[protocol], count);
      if (round > 0) results.get(name).push(cost);
    }
    receiver.stop();
  }
  const table = Object.fromEntries(
    [...results].map(([name, own]) => {
      const of = (other) => (results.has(other) ? figure(ratios(own, results.get(other))) : "");
      return [
        name,
        {
          "per second": Math.round(median(own.map(({ ms }) => (DELIVERIES / ms) * 1_000))),
          "CPU µs": Math.round(median(own.map(({ cpuMs }) => (cpuMs / DELIVERIES) * 1_000))),
          "/ bare loop": of("bare loop"),
          "/ pg-boss": of("pg-boss"),
          "/ graphile-worker": of("graphile-worker"),
          "/ graphile, tuned": of("graphile, tuned"),
        },
      ];
    }),
  );
  console.log(`\nA backlog of ${DELIVERIES}, ${protocol === "tls" ? "HTTPS" : "plain HTTP"}, fan-out 1`);
  console.table(table);
}

/** The time of a transaction of the host with an emit, beside one with a plain INSERT. */
async function transactions() {
  const opened = await STORAGES.Postgres();
  const webhooks = createWebhooks({
    storage: opened.storage,
    access: { authenticate: () => null, canRead: () => true },
  });
  await webhooks.registrations.create({
    subscriber: { id: "key", account: "clinic" },
    url: "https://subscriber.example/",
  });
  const pool = newPool(2);
  await pool.query("CREATE TABLE records (id text); CREATE TABLE rows (id text PRIMARY KEY, body text)");
  const client = await pool.connect();
  const count = Math.min(500, DELIVERIES);
  const inTransaction = async (work) => {
    await client.query("BEGIN");
    await client.query("INSERT INTO records VALUES ($1)", [randomUUID()]);
    await work();
    await client.query("COMMIT");
  };
  const rows = {
    insert: () => client.query("INSERT INTO rows VALUES ($1, $2)", [randomUUID(), bodyOf(1)]),
    emit: () =>
      webhooks.emit(
        { type: "patient.updated", account: "clinic", resource: patient(1) },
        { transaction: client },
      ),
  };
  const results = { insert: [], emit: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, work] of Object.entries(rows)) {
      const cost = await timed(async () => {
        for (let index = 0; index < count; index++) await inTransaction(work);
      });
      if (round > 0) results[name].push(cost);
    }
  }
  client.release();
  await pool.query("DROP TABLE records, rows");
  await pool.end();
  await opened.close();
  const times = results.emit.map(({ ms }, round) => ms / results.insert[round].ms);
  console.log(
    `\nemit in the host's transaction / the same with one plain INSERT: ${figure(times)} times its time`,
  );
}

/** A store that is called directly, with a clock that `advance` moves. */
function openStore(storage, retention, perEndpoint = 5) {
  return storage.webhooks({
    clock: systemClock,
    logger: { debug() {}, info() {}, warn() {}, error: console.error },
    perEndpoint,
    retention,
  });
}

async function register(store, count, perAccount) {
  for (const batch of batches(count, 100)) {
    await Promise.all(
      batch.map((index) => {
        const now = store.now();
        const account = `a${Math.floor(index / perAccount)}`;
        const webhook = {
          ...{ id: store.newWebhookId(account), account, subscriberId: "key", status: "ENABLED" },
          ...{ url: "https://subscriber.example/", eventTypes: null, createdAt: now, updatedAt: now },
          ...{ secret: "secret", previousSecret: null, rotateAt: null, generation: 0 },
          ...{ failingSince: null, warnedAt: null, noticeAt: null },
        };
        return store.createWebhook({
          webhook,
          enabledLimit: 100,
          accountLimit: 100,
          idempotency: null,
          now,
        });
      }),
    );
  }
}

async function append(store, count, accounts, rememberMs = 24 * HOUR) {
  for (const batch of batches(count)) {
    await Promise.all(
      batch.map((index) =>
        store.append({
          events: [
            {
              ...{ id: randomUUID(), account: `a${index % accounts}`, type: "patient.updated" },
              ...{ digest: "d", payload: "x".repeat(200) },
            },
          ],
          rememberMs,
          now: store.now(),
        }),
      ),
    );
  }
}

/** Claims and settles `count` deliveries, `most` at a time of each lane. */
async function work(store, count, most = 100) {
  let settled = 0;
  while (settled < count) {
    const now = store.now();
    const { claims } = await store.claim({
      now,
      token: randomUUID(),
      leaseUntil: now + HOUR,
      room: { fast: most, slow: most },
    });
    if (claims.length === 0) break;
    await store.settle(
      claims.map((claim) => ({
        ...{ id: claim.id, webhookId: claim.webhook.id, account: claim.webhook.account },
        ...{ token: claim.token, now: store.now(), outcome: { state: "delivered" }, startedAt: now },
        attempt: {
          ...{ at: now, durationMs: 5, step: 0, isExtra: false, kind: "delivered" },
          ...{ status: 204, code: "HTTP_204", excerpt: null },
        },
        endpoint: { ok: true, generation: 0, at: now, noticeAt: now + HOUR, lane: "fast" },
      })),
    );
    settled += claims.length;
  }
  return settled;
}

/**
 * Has claims without room add up what the appends have counted: a thousand counts each. That is
 * part of the cost of appending, and not of what is measured here.
 */
async function addUp(store, pending) {
  for (let counted = 0; counted <= pending; counted += 1_000) {
    const now = store.now();
    const request = { now, token: randomUUID(), leaseUntil: now + HOUR, room: { fast: 0, slow: 0 } };
    await store.claim(request);
  }
  await work(store, 100);
}

const LONG = { keepMs: 72 * HOUR, events: 10_000_000 };
const PER_ACCOUNT = 10;

const SIZES = [200, 32];
const PAIRS = 4_000;

/** The time of a claim and a settlement for each delivery, without requests, by size of batch. */
async function pairs(kind) {
  const opened = await Promise.all(
    Object.keys(BUILDS).map(async (build) => {
      const { storage, close } = await STORAGES[kind](build);
      const store = openStore(storage, LONG, 10 * CONCURRENCY);
      await register(store, ENDPOINTS, 1);
      return { build, store, close };
    }),
  );
  const results = new Map();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const size of SIZES) {
      for (const { build, store } of round % 2 === 0 ? opened : [...opened].reverse()) {
        await append(store, PAIRS + 2 * BULK, ENDPOINTS);
        await addUp(store, PAIRS);
        let settled = 0;
        const { ms } = await timed(async () => {
          settled = await work(store, PAIRS, size);
        });
        await work(store, Number.POSITIVE_INFINITY, BULK);
        const name = `${build} ${size}`;
        if (round > 0) results.set(name, [...(results.get(name) ?? []), (ms * 1_000) / settled]);
      }
    }
  }
  for (const size of SIZES) {
    const own = results.get(`new ${size}`);
    const base = results.get(`base ${size}`);
    const times = base && own.map((us, round) => us / base[round]);
    console.log(
      `\n${kind}: claim and settle in batches of ${size}: ${figure(own)} µs for each delivery${
        times ? `; ${figure(times)} times that of BENCH_BASE, ${figure(base)} µs` : ""
      }`,
    );
  }
  for (const { close } of opened) await close();
}

async function openQueue(kind, pending) {
  const opened = await STORAGES[kind]();
  const store = openStore(opened.storage, LONG);
  await register(store, GROWTH_ENDPOINTS, PER_ACCOUNT);
  await append(store, pending / PER_ACCOUNT, GROWTH_ENDPOINTS / PER_ACCOUNT);
  await addUp(store, pending);
  return { ...opened, store };
}

async function growth(kind) {
  const few = Math.min(10_000, PENDING);
  const long = await openQueue(kind, PENDING);
  const sample = Math.min(2_000, Math.floor(few / (ROUNDS + 2)));
  const results = { short: [], long: [] };
  const short = await openQueue(kind, few);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, { store }] of Object.entries({ short, long })) {
      let settled = 0;
      const { ms } = await timed(async () => {
        settled = await work(store, sample);
      });
      if (round > 0) results[name].push(ms / settled);
    }
  }
  const times = results.long.map((ms, round) => ms / results.short[round]);
  console.log(
    `\n${kind}: claim and settle with ${PENDING} pending over ${GROWTH_ENDPOINTS} endpoints / with ${few}: ${figure(times)}; bytes of each pending delivery: ${Math.round((await long.bytes()) / PENDING)}`,
  );
  await short.close();
  await long.close();
}

/** The size after deliveries whose retention is over: what is freed has to be used again. */
async function size(kind) {
  const { storage, bytes, close } = await STORAGES[kind]();
  const store = openStore(storage, { keepMs: 1_000, events: 10_000 });
  await register(store, 10, 1);
  const sizes = [];
  for (let part = 1; part <= 10; part++) {
    for (let done = 0; done < KEPT / 10; done += 2_000) {
      await append(store, Math.min(2_000, KEPT / 10), 10, 1_000);
      await work(store, Number.POSITIVE_INFINITY);
    }
    sizes.push(`${Math.round((await bytes()) / 1e6)}`);
  }
  console.log(
    `\n${kind}: size in MB after each tenth of ${KEPT} deliveries, at most 10 000 events of an account kept: ${sizes.join(", ")}`,
  );
  await close();
}

try {
  await backlog("plain");
  await backlog("tls");
  if (server) await transactions();
  for (const kind of Object.keys(STORAGES)) await pairs(kind);
  for (const kind of Object.keys(STORAGES)) await growth(kind);
  for (const kind of Object.keys(STORAGES)) await size(kind);
} finally {
  await server?.stop();
}
