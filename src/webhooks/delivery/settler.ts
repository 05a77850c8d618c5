/**
 * Settles deliveries after their attempts: in batches, with retries while the storage is
 * unavailable. Also gives claims back without an attempt.
 */

import type { Clock, Timer } from "../../core/clock.js";
import { storageRetryDelayMs } from "../../core/storage-circuit.js";
import type { ServiceBase } from "../config/config.js";
import { publishDeliveries } from "../diagnostics.js";
import type { Claim, SettleResult } from "../store.js";
import type { HealthSteps } from "./endpoint-health.js";
import { type AttemptResult, buildAttemptResult, isTest, reschedule } from "./outcome.js";
import type { Flight } from "./slots.js";

const SETTLED_PER_CALL = 250;
/** Concurrent calls for one partition. Meanwhile further settlements collect for the next call. */
const CONCURRENT_CALLS = 2;

/** Measures how long claims and settlements have failed: since the first failed call in a row. */
export interface StorageOutage {
  /** Reports a failed call. */
  failed(): void;
  /** Reports a successful call. */
  ended(): void;
  /** Returns 0 if the last call succeeded. */
  ms(): number;
}

export function createOutage(clock: Clock): StorageOutage {
  let since: number | undefined;
  return Object.freeze<StorageOutage>({
    failed() {
      since ??= clock.monotonic();
    },
    ended() {
      since = undefined;
    },
    ms: () => (since === undefined ? 0 : clock.monotonic() - since),
  });
}

interface Unsettled {
  flight: Flight;
  result: AttemptResult;
}

/** The settlements of one call. */
interface Batch {
  items: readonly Unsettled[];
  /** The number of failed calls with these settlements. */
  failures: number;
}

/** The settlements for one partition of the storage. */
interface PartitionQueue {
  waiting: Unsettled[];
  /** Settlements that failed before. They are retried apart from the others. */
  failed: Batch[];
  running: number;
}

export interface Settler {
  /** Settles the delivery of a flight, together with others of the same turn of the event loop. */
  add(flight: Flight, result: AttemptResult): void;
  /**
   * Gives claims back, due after `delayMs` (default 0). Never rejects: at worst the leases expire.
   */
  release(claims: readonly Claim[], delayMs?: number): Promise<void>;
  /** Tries everything that waits for its next try once more, at once. Never rejects. */
  settlePaused(): Promise<void>;
  /** Abandons what waits for its next try. */
  dropPaused(): void;
}

/** True if a settlement was stored: by a call that failed, if it is `gone` at a retry. */
const isRecorded = (settled: SettleResult | undefined, isRetry: boolean): boolean =>
  settled === "settled" || (isRetry && settled === "gone");

/** Reports the deliveries that ended without success, except tests. */
function reportEnds(
  { audit }: ServiceBase,
  { items, failures }: Batch,
  results: readonly SettleResult[],
): void {
  const ends = items.flatMap(({ flight: { claim }, result }, index) => {
    const { state } = result.outcome;
    const isEnd = (state === "failed" || state === "withheld") && !isTest(claim);
    return isEnd && isRecorded(results[index], failures > 0) ? [{ claim, result }] : [];
  });
  audit.recordEnds(ends);
}

/**
 * Logs and counts a settlement. A failed call may have stored some, which are then `gone` or
 * `stale`.
 */
function reportSettlement(
  { logger, telemetry }: ServiceBase,
  { id, outcome }: AttemptResult,
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
  if (telemetry !== undefined && isRecorded(settled, isRetry) && outcome.state !== "pending") {
    const reason = "reason" in outcome ? outcome.reason : "";
    telemetry.record("deliveriesEnded", 1, { state: outcome.state, reason });
  }
}

/**
 * @param health told when the first health step of an endpoint that failed is due.
 * @param onEnded called with flights that are settled, or whose settlement is abandoned.
 */
export function createSettler(
  base: ServiceBase,
  outage: StorageOutage,
  health: HealthSteps,
  onEnded: (flights: readonly Flight[]) => void,
): Settler {
  const { store, config, logger } = base;
  const { clock } = config;
  const { leaseMs } = config.delivery;
  const queues = new Map<number, PartitionQueue>();
  /** Batches that wait for their next try. */
  const pauses = new Map<Timer, { batch: Batch; queue: PartitionQueue }>();
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

  const fillAll = (): void => {
    isScheduled = false;
    for (const queue of queues.values()) fill(queue);
  };

  const fill = (queue: PartitionQueue): void => {
    while (queue.running < CONCURRENT_CALLS) {
      const batch = takeBatch(queue);
      if (batch === undefined) return;
      queue.running += 1;
      void settle(batch, queue).then(() => {
        queue.running -= 1;
        fill(queue);
      });
    }
  };

  const takeBatch = (queue: PartitionQueue): Batch | undefined => {
    for (let batch = queue.failed.shift(); batch !== undefined; batch = queue.failed.shift()) {
      // They may have waited for long.
      const items = keepWorthRetry(batch.items);
      if (items.length > 0) return { ...batch, items };
    }
    if (queue.waiting.length === 0) return undefined;
    return { items: queue.waiting.splice(0, SETTLED_PER_CALL), failures: 0 };
  };

  /**
   * Returns what may still be recorded, and ends the other flights. A 2xx stays true after its
   * lease, so it is retried without limit. Any other result is discarded after the lease: the next
   * claim attempts the delivery again.
   */
  const keepWorthRetry = (items: readonly Unsettled[]): readonly Unsettled[] => {
    const kept: Unsettled[] = [];
    const dropped: Flight[] = [];
    for (const item of items) {
      const { flight, result } = item;
      const isLeased = clock.monotonic() - flight.claimedAt <= leaseMs;
      if (!flight.isCancelled && (result.outcome.state === "delivered" || isLeased)) kept.push(item);
      else dropped.push(flight);
    }
    if (dropped.length > 0) onEnded(dropped);
    return kept;
  };

  const settle = async ({ items, failures }: Batch, queue: PartitionQueue): Promise<void> => {
    const now = store.now();
    try {
      const results = await store.settle(items.map(({ result }) => ({ ...result, now })));
      outage.ended();
      for (const [index, { result }] of items.entries()) {
        reportSettlement(base, result, results[index], failures > 0);
        if (result.endpoint?.ok === false) health.expect(result.endpoint.noticeAt);
      }
      if (base.audit.reportsEnds()) reportEnds(base, { items, failures }, results);
      publishDeliveries(items, (index) => isRecorded(results[index], failures > 0));
    } catch (error) {
      outage.failed();
      for (const { result } of items)
        logger.warn({ delivery: result.id, error }, "a delivery could not be settled");
      const left = keepWorthRetry(items);
      if (left.length > 0) pause({ items: left, failures }, queue);
      return;
    }
    onEnded(items.map(({ flight }) => flight));
  };

  /**
   * Retries in halves: a settlement that the storage rejects delays fewer others with each retry.
   */
  const pause = (batch: Batch, queue: PartitionQueue): void => {
    const { items, failures } = batch;
    const retry = (): void => {
      pauses.delete(timer);
      const middle = Math.ceil(items.length / 2);
      for (const half of [items.slice(0, middle), items.slice(middle)])
        if (half.length > 0) queue.failed.push({ items: half, failures: failures + 1 });
      fill(queue);
    };
    const timer = clock.setTimeout(retry, storageRetryDelayMs(failures));
    pauses.set(timer, { batch, queue });
  };

  const takePaused = (): readonly { batch: Batch; queue: PartitionQueue }[] => {
    const paused = [...pauses.values()];
    for (const timer of pauses.keys()) clock.clearTimeout(timer);
    pauses.clear();
    return paused;
  };

  const releasePartition = async (claims: readonly Claim[], delayMs: number): Promise<void> => {
    const now = store.now();
    try {
      await store.settle(
        claims.map((claim) => ({
          ...buildAttemptResult(claim, reschedule(claim, now + Math.round(delayMs)), claim.startedAt),
          now,
        })),
      );
    } catch (error) {
      for (const { id } of claims)
        logger.warn({ delivery: id, error }, "a claim could not be released; its lease will expire");
    }
  };

  return Object.freeze<Settler>({
    add(flight, result) {
      getQueue(result.webhookId).waiting.push({ flight, result });
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(fillAll);
    },

    async release(claims, delayMs = 0) {
      const byPartition = new Map<number, Claim[]>();
      for (const claim of claims) {
        const partition = store.partitionOf(claim.webhook.id);
        const known = byPartition.get(partition);
        if (known === undefined) byPartition.set(partition, [claim]);
        else known.push(claim);
      }
      await Promise.all([...byPartition.values()].map((deliveries) => releasePartition(deliveries, delayMs)));
    },

    async settlePaused() {
      await Promise.all(takePaused().map(({ batch, queue }) => settle(batch, queue)));
    },

    dropPaused() {
      for (const { batch } of takePaused()) onEnded(batch.items.map(({ flight }) => flight));
    },
  });
}
