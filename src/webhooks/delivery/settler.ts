/** Records what came of attempts: in batches, and again while the storage is away. */

import type { Clock } from "../../clock.js";
import type { Logger } from "../../logger.js";
import type { Telemetry } from "../../telemetry.js";
import type { Claim, Settlement, SettleResult, WebhookStore } from "../store.js";
import { putOff, type Verdict } from "./attempt.js";
import type { Flight } from "./flight.js";
import { type Outage, retryDelayMs } from "./outage.js";

const SETTLED_PER_CALL = 250;
/** Calls for one partition: while these are under way, the next one fills up. */
const CONCURRENT_CALLS = 2;

interface Report {
  readonly flight: Flight;
  readonly verdict: Verdict;
}

/** Reports that one call carries. */
interface Batch {
  readonly reports: readonly Report[];
  /** Calls with them that failed. */
  readonly failures: number;
}

/** What is to be recorded in one partition of the storage. */
interface Line {
  readonly waiting: Report[];
  /** Failed before, and to be tried again apart from the others. */
  readonly failed: Batch[];
  running: number;
}

export interface SettlerContext {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly telemetry: Telemetry | undefined;
  readonly outage: Outage;
  readonly leaseMs: number;
  /** Called with flights whose reports are recorded, or given up. */
  readonly onEnded: (flights: readonly Flight[]) => void;
  /** An endpoint has failed, and its next health step is due then. */
  readonly onFailure: (noticeAt: number) => void;
}

export interface Settler {
  /** Takes a report over. Those of one turn of the event loop are recorded together. */
  add(flight: Flight, verdict: Verdict): void;
  /** Gives claims back that no attempt was made for: due again at once, or after `delayMs`. Never rejects: at worst their leases run out. */
  release(claims: readonly Claim[], delayMs?: number): Promise<void>;
  /** Ends the pauses between tries, so that the reports of cancelled flights are given up. */
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

  /** A call that failed may have recorded some of its reports, and what was recorded is no longer there to be settled. */
  const note = ({ verdict }: Report, result: SettleResult | undefined, isAgain: boolean): void => {
    const { id, endpoint, outcome } = verdict;
    if (result === "stale")
      logger.warn(
        { delivery: id },
        isAgain
          ? "a report was dropped: it came after its lease, or an earlier try recorded it"
          : "a report came after its lease and was dropped",
      );
    const isRecorded = result === "settled" || (isAgain && result === "gone");
    if (telemetry !== undefined && isRecorded && outcome.state !== "pending") {
      const reason = "reason" in outcome ? outcome.reason : "";
      telemetry.record("deliveriesEnded", 1, { state: outcome.state, reason });
    }
    if (endpoint !== null && !endpoint.ok) onFailure(endpoint.noticeAt);
  };

  /** A 2xx stays true after its lease, so it is tried again for ever. Any other outcome is dropped then: whoever claims the delivery next will find it out. */
  const isWorthAnother = ({ flight, verdict }: Report): boolean =>
    !flight.isCancelled &&
    (verdict.outcome.state === "delivered" || clock.monotonic() - flight.claimedAt <= leaseMs);

  /** In halves, so that a report which the storage cannot take holds up fewer others with each try. */
  const retry = async ({ reports, failures }: Batch, line: Line): Promise<void> => {
    await pause(retryDelayMs(failures));
    const cancelled = reports.filter(({ flight }) => flight.isCancelled);
    const left = reports.filter(({ flight }) => !flight.isCancelled);
    const middle = Math.ceil(left.length / 2);
    for (const half of [left.slice(0, middle), left.slice(middle)])
      if (half.length > 0) line.failed.push({ reports: half, failures: failures + 1 });
    if (cancelled.length > 0) onEnded(cancelled.map(({ flight }) => flight));
    fill(line);
  };

  const record = async ({ reports, failures }: Batch, line: Line): Promise<void> => {
    const now = store.now();
    for (const { verdict } of reports) verdict.now = now;
    let ended = reports;
    try {
      const results = await store.settle(reports.map(({ verdict }) => verdict));
      outage.ended();
      for (const [index, report] of reports.entries()) note(report, results[index], failures > 0);
    } catch (error) {
      outage.failed();
      for (const { verdict } of reports)
        logger.warn({ delivery: verdict.id, error }, "an outcome could not be stored");
      const left = reports.filter(isWorthAnother);
      ended = reports.filter((report) => !left.includes(report));
      if (left.length > 0) void retry({ reports: left, failures }, line);
    }
    if (ended.length > 0) onEnded(ended.map(({ flight }) => flight));
  };

  /** The next reports that failed before and are still worth a call: they may have waited for long. */
  const nextFailed = (line: Line): Batch | undefined => {
    for (let batch = line.failed.shift(); batch !== undefined; batch = line.failed.shift()) {
      const left = batch.reports.filter(isWorthAnother);
      const dropped = batch.reports.filter((report) => !left.includes(report));
      if (dropped.length > 0) onEnded(dropped.map(({ flight }) => flight));
      if (left.length > 0) return { ...batch, reports: left };
    }
    return undefined;
  };

  const next = (line: Line): Batch | undefined => {
    const failed = nextFailed(line);
    if (failed !== undefined || line.waiting.length === 0) return failed;
    return { reports: line.waiting.splice(0, SETTLED_PER_CALL), failures: 0 };
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
    outcome: putOff(claim, now + Math.round(delayMs)),
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
        logger.warn({ delivery: id, error }, "a claim could not be released; its lease will end it");
    }
  };

  return Object.freeze<Settler>({
    add(flight, verdict) {
      lineOf(verdict.webhookId).waiting.push({ flight, verdict });
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
