/**
 * The environment of a test with processes: a storage, an endpoint, a host that emits, a checker,
 * and workers as it needs them.
 */

import { type Checker, openChecker } from "./checker.js";
import { type Ledger, openLedger } from "./ledger.js";
import { type Subscriber, type SubscriberOptions, startSubscriber } from "./ledger-subscriber.js";
import type { StorageUnderTest } from "./storage-under-test.js";
import { startWorker, type Worker, type WorkerOptions } from "./worker-host.js";
import { ownersOf } from "./worker-leases.js";

/**
 * Retries follow within half a second; the deadline is far longer than a busy machine holds an
 * answer up.
 */
export const QUICK = {
  delivery: { deadlineMs: 10_000, leaseMs: 40_000 },
  retry: { intervalsMs: [400], everyMs: 500, windowMs: 60_000, jitter: 0 },
} as const;

export interface Scene {
  readonly options: WorkerOptions;
  readonly subscriber: Subscriber;
  readonly ledger: Ledger;
  readonly checker: Checker;
  /** A worker that does not deliver yet. */
  readonly prepare: (changes?: Partial<WorkerOptions>) => Promise<Worker>;
  /** A worker that delivers. */
  readonly launch: (changes?: Partial<WorkerOptions>) => Promise<Worker>;
  /** Ends what these workers hold under lease; how much that was. */
  readonly expire: (...workers: readonly Worker[]) => Promise<number>;
}

export async function openScene(
  on: StorageUnderTest,
  {
    subscriber: answers,
    ...changes
  }: Partial<WorkerOptions> & { readonly subscriber?: SubscriberOptions } = {},
): Promise<Scene> {
  const subscriber = await startSubscriber(answers);
  const options: WorkerOptions = {
    storage: await on.fresh(),
    ca: subscriber.ca,
    webhooks: QUICK,
    ...changes,
  };
  const checker = openChecker(on, options.storage);
  const prepare: Scene["prepare"] = (more) => startWorker({ ...options, ...more });
  return {
    options,
    subscriber,
    ledger: openLedger(on, options, subscriber),
    checker,
    prepare,
    async launch(more) {
      const worker = await prepare(more);
      await worker.start();
      return worker;
    },
    expire: (...workers) => checker.inspector.expireLeases(workers.flatMap(ownersOf)),
  };
}
