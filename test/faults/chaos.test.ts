/**
 * Workers and Redis are killed, again and again, under load. `CHAOS_LOAD=10` emits ten times as
 * much.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { startRedis } from "../support/redis-server.js";
import { balanced, emptyStorage, openChecker } from "./support/checker.js";
import { openLedger } from "./support/ledger.js";
import { startSubscriber } from "./support/ledger-subscriber.js";
import { startWorker, type Worker, type WorkerOptions } from "./support/worker-host.js";
import { expireLeases, ownersOf } from "./support/worker-leases.js";

const LOAD = Number(process.env["CHAOS_LOAD"] ?? 1);
const ENDPOINTS = 15;
const EVENTS = 400 * LOAD;
const WORKERS = 3;
const WORKER_KILLS = 20;
const REDIS_KILLS = 3;
const DRAIN_MS = 60_000 * LOAD;
/** An endpoint takes this long, so that a kill meets some requests on their way. */
const ANSWER_MS = 20;

/** 300 to 600 ms, the same in each run. */
const pauseMs = (kill: number): number => 300 + ((kill * 97) % 301);

it(
  "loses nothing, and repeats only deliveries in flight, when 20 workers and Redis three times are killed",
  async () => {
    const server = await startRedis({ persistence: "aof-always" });
    onTestFinished(() => server.stop());
    let requests = 0;
    const subscriber = await startSubscriber({
      answer: async () => {
        const status = requests++ % 5 === 0 ? 500 : 204;
        await sleep(ANSWER_MS);
        return status;
      },
    });
    const prefix = "chaos";
    const options: WorkerOptions = {
      redis: server.url,
      prefix,
      ca: subscriber.ca,
      webhooks: {
        delivery: { deadlineMs: 10_000, leaseMs: 40_000 },
        retry: { intervalsMs: [200, 300, 400], everyMs: 500, windowMs: 300_000 },
      },
    };
    const ledger = openLedger(options, subscriber);
    const checker = openChecker(server.url, prefix);
    for (let endpoint = 0; endpoint < ENDPOINTS; endpoint++) await ledger.register(`/${endpoint}`);

    const launch = async (): Promise<Worker> => {
      const worker = await startWorker(options);
      await worker.start();
      return worker;
    };
    const workers = await Promise.all(Array.from({ length: WORKERS }, launch));

    const dead: string[] = [];
    let underWay = 0;
    /**
     * Leases of dead workers end at once instead of expiring; each lease counts as one attempt that
     * the kill may have cut off.
     */
    const giveBack = async (): Promise<void> => {
      underWay += await expireLeases(checker.redis, prefix, dead).catch(() => 0);
    };

    let isOver = false;
    const emitting = (async () => {
      for (let event = 0; event < EVENTS || !isOver; event += LOAD) {
        // After that at the usual rate, since workers that are killed all the time would let the
        // backlog grow up to its limit.
        const burst = event < EVENTS ? LOAD : 1;
        await Promise.all(Array.from({ length: burst }, () => ledger.emitUntilStored()));
        await sleep(ANSWER_MS);
      }
    })();

    let redisKills = 0;
    for (let kill = 1; kill <= WORKER_KILLS; kill++) {
      await sleep(pauseMs(kill));
      const worker = workers.shift();
      if (!worker) throw new Error("There is always a worker.");
      await worker.kill();
      dead.push(...ownersOf(worker));
      workers.push(await launch());
      await giveBack();
      if (kill % Math.floor(WORKER_KILLS / REDIS_KILLS) === 0) {
        await server.kill();
        redisKills++;
        await server.restart();
      }
    }
    isOver = true;
    await emitting;
    await giveBack();
    await checker.drained(DRAIN_MS);

    for (const worker of workers) worker.signal("SIGTERM");
    const exits = await Promise.all(workers.map(({ exited }) => exited));
    const books = await checker.books(ledger, subscriber);
    console.log(
      `chaos: deliveries ${books.deliveries}, worker kills ${WORKER_KILLS}, Redis kills ${redisKills}, in flight at kills ${underWay}, lost ${books.lost}, duplicates ${books.duplicates}, books: pending ${books.pending}, leased ${books.leased}, repaired ${books.repaired}`,
    );
    expect(books).toMatchObject(balanced);
    expect(books.deliveries).toBeGreaterThanOrEqual(ENDPOINTS * EVENTS);
    expect(redisKills).toBe(REDIS_KILLS);
    expect(books.duplicates).toBeLessThanOrEqual(underWay);
    expect(exits).toEqual(workers.map(() => ({ code: 0, signal: null })));
    expect(await checker.leftovers(ledger)).toEqual(emptyStorage(prefix));
  },
  120_000 + 2 * DRAIN_MS,
);
