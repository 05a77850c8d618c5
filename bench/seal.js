/**
 * Measures the cost of `sealEvents`: the time of an emit with it as a ratio of one without it, in
 * turn in each round, on memory and on Redis. One event at a time, and in lists of 50.
 *
 * BENCH_ROUNDS, BENCH_EVENTS: how much. REDIS_URL: an empty database to use in place of a server of
 * its own.
 */
import { randomUUID } from "node:crypto";
import { createWebhooks } from "postbell";
import { memoryStorage } from "postbell/memory";
import { redisStorage } from "postbell/redis";
import { median, patient, startRedis } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const EVENTS = Number(process.env.BENCH_EVENTS ?? 4_000);
const LIST = 50;
const SUBSCRIBER = { id: "key-1", account: "clinic-1" };

const { url, stop } = process.env.REDIS_URL
  ? { url: process.env.REDIS_URL, stop() {} }
  : await startRedis(process.env.BENCH_APPENDFSYNC);

const STORAGES = {
  memory: () => memoryStorage({ limits: { pending: 1_000_000, pendingPerAccount: 1_000_000 } }),
  Redis: () => redisStorage({ url, prefix: randomUUID(), sealKeys: [Buffer.alloc(32, 1)] }),
};

/** Returns the milliseconds that `EVENTS` emits take, `atOnce` in one call. */
async function measure(create, sealEvents, atOnce) {
  const storage = create();
  const access = { authenticate: () => null, canRead: () => true };
  const webhooks = createWebhooks({ storage, access, sealEvents, logger: false });
  await webhooks.registrations.create({ subscriber: SUBSCRIBER, url: "https://hooks.example.com/a" });
  const event = (index) => ({
    type: "patient.updated",
    account: SUBSCRIBER.account,
    resource: patient(index),
  });
  const emit = (index) =>
    webhooks.emit(atOnce === 1 ? event(index) : Array.from({ length: atOnce }, (_, n) => event(index + n)));
  await emit(0);
  const began = performance.now();
  for (let index = 0; index < EVENTS; index += atOnce) await emit(index);
  const ms = performance.now() - began;
  await storage.close();
  return ms;
}

for (const [name, create] of Object.entries(STORAGES)) {
  for (const atOnce of [1, LIST]) {
    const ratios = [];
    const perEvent = { false: [], true: [] };
    for (let round = 0; round <= ROUNDS; round++) {
      const [plain, sealed] = [await measure(create, false, atOnce), await measure(create, true, atOnce)];
      // The first round warms up.
      if (round === 0) continue;
      ratios.push(sealed / plain);
      perEvent.false.push((plain / EVENTS) * 1_000);
      perEvent.true.push((sealed / EVENTS) * 1_000);
    }
    const [plain, sealed] = [median(perEvent.false), median(perEvent.true)].map((us) => us.toFixed(1));
    const ratio = median(ratios).toFixed(2);
    console.log(`${name}, ${atOnce} at once: ${plain} µs, sealed ${sealed} µs for an event: ${ratio} times`);
  }
}
stop();
