/**
 * Workers and the server of their storage are killed, again and again, under load. With
 * `CHAOS_LOAD=10` ten times as much is emitted.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { balanced, openChecker } from "./checker.js";
import { openLedger } from "./ledger.js";
import { startSubscriber } from "./ledger-subscriber.js";
import type { StorageUnderTest } from "./storage-under-test.js";
import { startWorker, type Worker, type WorkerOptions } from "./worker-host.js";
import { ownersOf } from "./worker-leases.js";

const LOAD = Number(process.env["CHAOS_LOAD"] ?? 1);
const ENDPOINTS = 15;
const EVENTS = 400 * LOAD;
const WORKER_KILLS = 20;
const SERVER_KILLS = 3;
const DRAIN_MS = 60_000 * LOAD;
/** An endpoint takes this long, so that a kill meets some requests on their way. */
const ANSWER_MS = 20;

/** 300 to 600 ms, the same in each run. */
const pauseMs = (kill: number): number => 300 + ((kill * 97) % 301);

export interface ChaosOptions {
  readonly start: () => Promise<StorageUnderTest>;
  /** How many processes deliver at the same time. */
  readonly workers: number;
}

/** Declares the test on one storage. */
export function describeChaos({ start, workers: count }: ChaosOptions): void {
  it(
    "loses nothing, and repeats only deliveries in flight, when 20 workers and the server three times are killed",
    async () => {
      const on = await start();
      onTestFinished(() => on.stop());
      const { server } = on;
      let requests = 0;
      const subscriber = await startSubscriber({
        answer: async () => {
          const status = requests++ % 5 === 0 ? 500 : 204;
          await sleep(ANSWER_MS);
          return status;
        },
      });
      const options: WorkerOptions = {
        storage: await on.fresh(),
        ca: subscriber.ca,
        webhooks: {
          delivery: { deadlineMs: 10_000, leaseMs: 40_000 },
          // Longer than the whole run: what ends as failed would count as lost.
          retry: { intervalsMs: [200, 300, 400], everyMs: 500 * LOAD, windowMs: 300_000 * LOAD },
          // A worker that starts while the server restarts waits for it.
          awaitStorage: false,
        },
      };
      const ledger = openLedger(on, options, subscriber);
      const checker = openChecker(on, options.storage);
      for (let endpoint = 0; endpoint < ENDPOINTS; endpoint++) await ledger.register(`/${endpoint}`);

      const launch = async (): Promise<Worker> => {
        const worker = await startWorker(options);
        await worker.start();
        return worker;
      };
      const workers = await Promise.all(Array.from({ length: count }, launch));

      const dead: string[] = [];
      let underWay = 0;
      /**
       * Leases of dead workers end at once instead of expiring; each lease counts as one attempt
       * that the kill may have cut off.
       */
      const giveBack = async (): Promise<void> => {
        underWay += await checker.inspector.expireLeases(dead).catch(() => 0);
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

      let serverKills = 0;
      for (let kill = 1; kill <= WORKER_KILLS; kill++) {
        await sleep(pauseMs(kill));
        const worker = workers.shift();
        if (!worker) throw new Error("There is always a worker.");
        await worker.kill();
        dead.push(...ownersOf(worker));
        workers.push(await launch());
        await giveBack();
        if (server && kill % Math.floor(WORKER_KILLS / SERVER_KILLS) === 0) {
          await server.kill();
          serverKills++;
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
        `chaos on ${on.kind}: deliveries ${books.deliveries}, worker kills ${WORKER_KILLS}, server kills ${serverKills}, in flight at kills ${underWay}, lost ${books.lost}, duplicates ${books.duplicates}, books: pending ${books.pending}, leased ${books.leased}, faults ${books.faults.length}`,
      );
      expect(books).toMatchObject(balanced);
      expect(books.deliveries).toBeGreaterThanOrEqual(ENDPOINTS * EVENTS);
      expect(serverKills).toBe(server ? SERVER_KILLS : 0);
      expect(books.duplicates).toBeLessThanOrEqual(underWay);
      expect(exits).toEqual(workers.map(() => ({ code: 0, signal: null })));
      expect(await checker.leftovers(ledger)).toEqual([]);
    },
    120_000 + 2 * DRAIN_MS,
  );
}
