/** Settles deliveries after their attempts: in batches, and again while the storage is unavailable. */

import type { Claim, Settlement, SettleResult } from "../store.js";
import { type AttemptResult, reschedule } from "./attempt-result.js";
import type { DeliveryContext } from "./context.js";
import type { Flight } from "./flight.js";
import { storageRetryDelayMs } from "./storage-outage.js";

const SETTLED_PER_CALL = 250;
/** Calls for one partition: while these are in flight, the next one fills up. */
const CONCURRENT_CALLS = 2;

interface Unsettled {
  readonly flight: Flight;
  readonly result: AttemptResult;
}

/** The settlements of one call. */
interface Batch {
  readonly items: readonly Unsettled[];
  /** How many calls with them failed. */
  readonly failures: number;
}

/** The settlements for one partition of the storage. */
interface Line {
  readonly waiting: Unsettled[];
  /** Failed before, and are retried apart from the others. */
  readonly failed: Batch[];
  running: number;
}

export interface SettlerContext extends DeliveryContext {
  /** Called with flights that are settled, or whose settlement is given up. */
  readonly onEnded: (flights: readonly Flight[]) => void;
  /** Called when an endpoint failed, with the time of its next health step. */
  readonly onFailure: (noticeAt: number) => void;
}

export interface Settler {
  /** Settles the delivery of a flight, together with those of the same turn of the event loop. */
  add(flight: Flight, result: AttemptResult): void;
  /** Releases claims without an attempt: due again at once, or after `delayMs`. Never rejects: at worst their leases expire. */
  release(claims: readonly Claim[], delayMs?: number): Promise<void>;
  /** Ends the pauses between retries, so that cancelled flights are given up. */
  endPauses(): void;
}

export function createSettler({
  store,
  clock,
  logger,
  telemetry,
  outage,
  leaseMs,
  onEnded,
  onFailure,
}: SettlerContext): Settler {
  const lines = new Map<number, Line>();
  let isScheduled = false;
  /** A process that stops does not wait for them. */
  const pauses = new Set<() => void>();

  const lineOf = (webhookId: string): Line => {
    const partition = store.partitionOf(webhookId);
    let line = lines.get(partition);
    if (line === undefined) {
      line = { waiting: [], failed: [], running: 0 };
      lines.set(partition, line);
    }
    return line;
  };

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clock.clearTimeout(timer);
        pauses.delete(end);
        resolve();
      };
      const timer = clock.setTimeout(end, ms);
      pauses.add(end);
    });

  /** A call that failed may have settled some of its deliveries, which then are gone or stale for the retry. */
  const note = ({ result }: Unsettled, settled: SettleResult | undefined, isRetry: boolean): void => {
    const { id, endpoint, outcome } = result;
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
  };

  /** A 2xx stays true after its lease, so it is retried without end. Any other result is discarded then: the next claim will attempt the delivery again. */
  const isWorthRetry = ({ flight, result }: Unsettled): boolean =>
    !flight.isCancelled &&
    (result.outcome.state === "delivered" || clock.monotonic() - flight.claimedAt <= leaseMs);

  /** In halves, so that a settlement which the storage cannot take delays fewer others with each retry. */
  const retry = async ({ items, failures }: Batch, line: Line): Promise<void> => {
    await pause(storageRetryDelayMs(failures));
    const cancelled = items.filter(({ flight }) => flight.isCancelled);
    const left = items.filter(({ flight }) => !flight.isCancelled);
    const middle = Math.ceil(left.length / 2);
    for (const half of [left.slice(0, middle), left.slice(middle)])
      if (half.length > 0) line.failed.push({ items: half, failures: failures + 1 });
    if (cancelled.length > 0) onEnded(cancelled.map(({ flight }) => flight));
    fill(line);
  };

  const record = async ({ items, failures }: Batch, line: Line): Promise<void> => {
    const now = store.now();
    for (const { result } of items) result.now = now;
    let ended = items;
    try {
      const results = await store.settle(items.map(({ result }) => result));
      outage.ended();
      for (const [index, item] of items.entries()) note(item, results[index], failures > 0);
    } catch (error) {
      outage.failed();
      for (const { result } of items)
        logger.warn({ delivery: result.id, error }, "a delivery could not be settled");
      const left = items.filter(isWorthRetry);
      ended = items.filter((item) => !left.includes(item));
      if (left.length > 0) void retry({ items: left, failures }, line);
    }
    if (ended.length > 0) onEnded(ended.map(({ flight }) => flight));
  };

  /** The next settlements that failed before and are still worth a call: they may have waited for long. */
  const nextFailed = (line: Line): Batch | undefined => {
    for (let batch = line.failed.shift(); batch !== undefined; batch = line.failed.shift()) {
      const left = batch.items.filter(isWorthRetry);
      const dropped = batch.items.filter((item) => !left.includes(item));
      if (dropped.length > 0) onEnded(dropped.map(({ flight }) => flight));
      if (left.length > 0) return { ...batch, items: left };
    }
    return undefined;
  };

  const next = (line: Line): Batch | undefined => {
    const failed = nextFailed(line);
    if (failed !== undefined || line.waiting.length === 0) return failed;
    return { items: line.waiting.splice(0, SETTLED_PER_CALL), failures: 0 };
  };

  const fill = (line: Line): void => {
    while (line.running < CONCURRENT_CALLS) {
      const batch = next(line);
      if (batch === undefined) return;
      line.running += 1;
      void record(batch, line).then(() => {
        line.running -= 1;
        fill(line);
      });
    }
  };

  const flush = (): void => {
    isScheduled = false;
    for (const line of lines.values()) fill(line);
  };

  const toRelease = (claim: Claim, now: number, delayMs: number): Settlement => ({
    id: claim.id,
    webhookId: claim.webhook.id,
    account: claim.webhook.account,
    token: claim.token,
    now,
    outcome: reschedule(claim, now + Math.round(delayMs)),
    startedAt: claim.startedAt,
    attempt: null,
    endpoint: null,
  });

  const releaseFrom = async (claims: readonly Claim[], delayMs: number): Promise<void> => {
    const now = store.now();
    try {
      await store.settle(claims.map((claim) => toRelease(claim, now, delayMs)));
    } catch (error) {
      for (const { id } of claims)
        logger.warn({ delivery: id, error }, "a claim could not be released; its lease will expire");
    }
  };

  return Object.freeze<Settler>({
    add(flight, result) {
      lineOf(result.webhookId).waiting.push({ flight, result });
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(flush);
    },

    async release(claims, delayMs = 0) {
      const byPartition = new Map<number, Claim[]>();
      for (const claim of claims) {
        const partition = store.partitionOf(claim.webhook.id);
        const known = byPartition.get(partition);
        if (known === undefined) byPartition.set(partition, [claim]);
        else known.push(claim);
      }
      await Promise.all([...byPartition.values()].map((own) => releaseFrom(own, delayMs)));
    },

    endPauses() {
      for (const end of pauses) end();
    },
  });
}
