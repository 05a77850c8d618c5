/**
 * Settles deliveries after their attempts: in batches, with retries while the storage is
 * unavailable.
 */

import { storageRetryDelayMs } from "../../core/storage-circuit.js";
import type { SettleResult } from "../store.js";
import type { AttemptResult } from "./attempt-result.js";
import type { DeliveryContext } from "./context.js";
import type { Flight } from "./flight.js";
import { createPauses } from "./pauses.js";
import { createRelease, type ReleaseClaims } from "./release.js";

const SETTLED_PER_CALL = 250;
/** Concurrent calls for one partition. Meanwhile further settlements collect for the next call. */
const CONCURRENT_CALLS = 2;

interface Unsettled {
  readonly flight: Flight;
  readonly result: AttemptResult;
}

/** The settlements of one call. */
interface Batch {
  readonly items: readonly Unsettled[];
  /** The number of failed calls with these settlements. */
  readonly failures: number;
}

/** The settlements for one partition of the storage. */
interface PartitionQueue {
  readonly waiting: Unsettled[];
  /** Settlements that failed before. They are retried apart from the others. */
  readonly failed: Batch[];
  running: number;
}

export interface SettlerContext extends DeliveryContext {
  /** Called with flights that are settled, or whose settlement is abandoned. */
  readonly onEnded: (flights: readonly Flight[]) => void;
  /** Called when an endpoint failed, with the due time of its next health step. */
  readonly onFailure: (dueAt: number) => void;
}

export interface Settler {
  /** Settles the delivery of a flight, together with others of the same turn of the event loop. */
  add(flight: Flight, result: AttemptResult): void;
  readonly release: ReleaseClaims;
  /** Ends the pauses between retries, so that cancelled flights are abandoned. */
  endPauses(): void;
}

/**
 * Logs and counts a settlement. A failed call may have stored some, which are then `gone` or
 * `stale`.
 */
function reportSettlement(
  { logger, telemetry, onFailure }: SettlerContext,
  { id, endpoint, outcome }: AttemptResult,
  settled: SettleResult | undefined,
  isRetry: boolean,
): void {
  if (settled === "stale")
    logger.warn(
      { delivery: id },
      isRetry
        ? "a settlement was discarded: its lease had expired, or an earlier call recorded it"
        : "a settlement was discarded: its lease had expired",
    );
  const isRecorded = settled === "settled" || (isRetry && settled === "gone");
  if (telemetry !== undefined && isRecorded && outcome.state !== "pending") {
    const reason = "reason" in outcome ? outcome.reason : "";
    telemetry.record("deliveriesEnded", 1, { state: outcome.state, reason });
  }
  if (endpoint !== null && !endpoint.ok) onFailure(endpoint.noticeAt);
}

export function createSettler(context: SettlerContext): Settler {
  const { store, clock, logger, outage, leaseMs, onEnded } = context;
  const queues = new Map<number, PartitionQueue>();
  const pauses = createPauses(clock);
  let isScheduled = false;

  const getQueue = (webhookId: string): PartitionQueue => {
    const partition = store.partitionOf(webhookId);
    let queue = queues.get(partition);
    if (queue === undefined) {
      queue = { waiting: [], failed: [], running: 0 };
      queues.set(partition, queue);
    }
    return queue;
  };

  /**
   * A 2xx stays true after its lease, so it is retried without limit. Any other result is discarded
   * after the lease: the next claim attempts the delivery again.
   */
  const isWorthRetry = ({ flight, result }: Unsettled): boolean =>
    !flight.isCancelled &&
    (result.outcome.state === "delivered" || clock.monotonic() - flight.claimedAt <= leaseMs);

  /**
   * Retries in halves: a settlement that the storage rejects delays fewer others with each retry.
   */
  const retry = async ({ items, failures }: Batch, queue: PartitionQueue): Promise<void> => {
    await pauses.wait(storageRetryDelayMs(failures));
    const cancelled = items.filter(({ flight }) => flight.isCancelled);
    const left = items.filter(({ flight }) => !flight.isCancelled);
    const middle = Math.ceil(left.length / 2);
    for (const half of [left.slice(0, middle), left.slice(middle)])
      if (half.length > 0) queue.failed.push({ items: half, failures: failures + 1 });
    if (cancelled.length > 0) onEnded(cancelled.map(({ flight }) => flight));
    fill(queue);
  };

  const record = async ({ items, failures }: Batch, queue: PartitionQueue): Promise<void> => {
    const now = store.now();
    for (const { result } of items) result.now = now;
    let ended = items;
    try {
      const results = await store.settle(items.map(({ result }) => result));
      outage.ended();
      for (const [index, { result }] of items.entries())
        reportSettlement(context, result, results[index], failures > 0);
    } catch (error) {
      outage.failed();
      for (const { result } of items)
        logger.warn({ delivery: result.id, error }, "a delivery could not be settled");
      const left = items.filter(isWorthRetry);
      ended = items.filter((item) => !left.includes(item));
      if (left.length > 0) void retry({ items: left, failures }, queue);
    }
    if (ended.length > 0) onEnded(ended.map(({ flight }) => flight));
  };

  /**
   * Returns the next failed settlements that are still worth a call: they may have waited for long.
   */
  const nextFailed = (queue: PartitionQueue): Batch | undefined => {
    for (let batch = queue.failed.shift(); batch !== undefined; batch = queue.failed.shift()) {
      const left = batch.items.filter(isWorthRetry);
      const dropped = batch.items.filter((item) => !left.includes(item));
      if (dropped.length > 0) onEnded(dropped.map(({ flight }) => flight));
      if (left.length > 0) return { ...batch, items: left };
    }
    return undefined;
  };

  const nextBatch = (queue: PartitionQueue): Batch | undefined => {
    const failed = nextFailed(queue);
    if (failed !== undefined || queue.waiting.length === 0) return failed;
    return { items: queue.waiting.splice(0, SETTLED_PER_CALL), failures: 0 };
  };

  const fill = (queue: PartitionQueue): void => {
    while (queue.running < CONCURRENT_CALLS) {
      const batch = nextBatch(queue);
      if (batch === undefined) return;
      queue.running += 1;
      void record(batch, queue).then(() => {
        queue.running -= 1;
        fill(queue);
      });
    }
  };

  const flush = (): void => {
    isScheduled = false;
    for (const queue of queues.values()) fill(queue);
  };

  return Object.freeze<Settler>({
    add(flight, result) {
      getQueue(result.webhookId).waiting.push({ flight, result });
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(flush);
    },
    release: createRelease(store, logger),
    endPauses: () => pauses.endAll(),
  });
}
