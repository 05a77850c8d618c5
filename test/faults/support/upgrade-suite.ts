/** Processes of the release before are replaced by those of this commit under load, and back. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanced, openChecker } from "./checker.js";
import { KEY, patientEvent } from "./ledger.js";
import { startSubscriber } from "./ledger-subscriber.js";
import { buildPrevious, findPreviousTag, type PreviousBuild } from "./previous-build.js";
import { startForTests } from "./start-for-tests.js";
import type { StorageAddress, StorageUnderTest } from "./storage-under-test.js";
import { eventually, startWorker, type Worker } from "./worker-host.js";
import { QUICK } from "./worker-scene.js";

const WORKERS = 3;
const ENDPOINTS = 3;
/** Emitted while all processes are of one build. */
const EVENTS_PER_PHASE = 60;

/** An address where not even the tables are: this commit has nothing to do with their creation. */
async function createEmpty(on: StorageUnderTest): Promise<StorageAddress> {
  const address = await on.fresh();
  return address.kind === "postgres" ? { ...address, schema: `${address.schema}_before` } : address;
}

/** Emits without a pause through whichever worker takes calls, and notes what is promised. */
function startLoad(workers: () => readonly Worker[]) {
  const promised = new Set<string>();
  const problems: unknown[] = [];
  let isOver = false;
  const run = async (): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      const live = workers();
      const event = patientEvent();
      try {
        const emitted = await live[turn % live.length]?.emit(event);
        for (const { id } of emitted?.deliveries ?? []) promised.add(id);
      } catch (error) {
        // The process ended before it answered, so nothing was promised.
        if ((error as { code?: string }).code !== "died") problems.push(error);
      }
    }
  };
  const running = run();
  const end = async (): Promise<void> => {
    isOver = true;
    await running;
  };
  return { promised, problems, end };
}

/** Declares the test on one storage. */
export function describeUpgrade(start: () => Promise<StorageUnderTest>): void {
  const on = startForTests(start);
  const tag = findPreviousTag();
  let previous: PreviousBuild | undefined;
  beforeAll(() => {
    previous = buildPrevious(tag);
  });
  afterAll(() => previous?.remove());

  describe(`from ${tag ?? "a copy of this build, since no release came before it"}`, () => {
    it("is made and undone under load, process by process: nothing lost, all signed", async () => {
      const subscriber = await startSubscriber();
      const storage = await createEmpty(on());
      const before = { storage, ca: subscriber.ca, webhooks: QUICK, program: previous?.program };
      const after = { ...before, program: undefined };
      const first = await startWorker(before);
      await first.migrate();
      for (let endpoint = 0; endpoint < ENDPOINTS; endpoint++) {
        const url = subscriber.url(`/${endpoint}`);
        const { webhook, secret } = await first.create({ subscriber: KEY, url });
        subscriber.trust(webhook.id, secret);
      }
      let workers: readonly Worker[] = [first, await startWorker(before), await startWorker(before)];
      expect(workers).toHaveLength(WORKERS);
      await Promise.all(workers.map((worker) => worker.start()));

      const load = startLoad(() => workers);
      const emitSome = async (): Promise<void> => {
        const sofar = load.promised.size;
        const enough = sofar + EVENTS_PER_PHASE * ENDPOINTS;
        await eventually(() => load.promised.size >= enough, "events are emitted");
      };
      const replaceAll = async (by: typeof before | typeof after): Promise<void> => {
        for (const worker of workers) {
          const next = await startWorker(by);
          await next.migrate();
          await next.start();
          workers = [...workers.filter((other) => other !== worker), next];
          worker.signal("SIGTERM");
          expect(await worker.exited).toEqual({ code: 0, signal: null });
        }
      };
      await emitSome();
      await replaceAll(after);
      await emitSome();
      await replaceAll(before);
      await emitSome();
      await load.end();
      expect(load.problems).toEqual([]);

      const checker = openChecker(on(), storage);
      await checker.drained();
      const { deliveries, duplicates, ...books } = await checker.books(load, subscriber);
      expect(books).toEqual(balanced);
      expect(duplicates).toBe(0);
      expect(deliveries).toBeGreaterThanOrEqual(3 * EVENTS_PER_PHASE * ENDPOINTS);
    });
  });
}
