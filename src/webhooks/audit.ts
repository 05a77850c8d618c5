/**
 * The audit log: reports what was done to webhooks and deliveries to the hooks of the host, and
 * keeps it in the storage. Nothing here delays or fails what it reports.
 */

import { isDeepStrictEqual } from "node:util";
import { callHook } from "../core/clock.js";
import { createConcurrencyLimit } from "../core/concurrency-limit.js";
import { PostbellError } from "../core/errors.js";
import { readCallArguments } from "../core/known-names.js";
import type { Actor } from "./access.js";
import { readLimit, selectAccount } from "./call-arguments.js";
import type { Audit, FailedEnd, UnauditedService } from "./config/config.js";
import { hasAuditSubscribers, publishAudit } from "./diagnostics.js";
import { PagedList } from "./list.js";
import type { AuditRecord, WebhookChange, WebhookRecord } from "./store.js";
import {
  type AuditAction,
  type AuditActor,
  type AuditEntry,
  type SubscriberAuditLog,
  toWebhook,
} from "./webhook.js";

/** Concurrent calls of each hook. */
const HOOK_CALLS = 4;

/** Calls that wait, of each hook and of the log's writes. */
const WAITING_CALLS = 1_000;

/** Entries that one call of the storage writes at most. */
const ENTRIES_PER_WRITE = 250;

/** Longer than the service gives any call of the storage. */
const WRITE_MS = 10_000;

/** How long a list waits for the writes before it: callers find what they have just done. */
const LIST_WAITS_MS = 1_000;

/** Makes calls that nobody waits for. */
interface BoundedCaller {
  /** Never throws. Returns false, and drops the call, if too many wait. */
  call: (make: () => unknown) => boolean;
  /** Resolves once the calls so far have ended, or after `ms`. */
  settled: (ms: number) => Promise<void>;
}

/**
 * @param what the subject of the lines that are logged: `the audit hook`.
 * @param callMs the time limit of a call.
 * @param running how many calls run at once.
 */
function createBoundedCaller(
  { config, logger }: UnauditedService,
  what: string,
  callMs: number,
  running = HOOK_CALLS,
): BoundedCaller {
  const { clock } = config;
  const { run } = createConcurrencyLimit({ running, waiting: WAITING_CALLS });
  const unfinished = new Set<Promise<void>>();
  let dropped = 0;

  const guard = async (make: () => unknown): Promise<void> => {
    try {
      await callHook(clock, callMs, make);
    } catch (error) {
      logger.error({ error }, `${what} failed; the call is not repeated`);
    }
    if (dropped === 0) return;
    logger.error({ dropped }, `calls of ${what} were dropped, because too many waited`);
    dropped = 0;
  };

  return {
    call(make) {
      const started = run(() => guard(make));
      if (started === undefined) {
        dropped += 1;
        return false;
      }
      unfinished.add(started);
      void started.then(() => unfinished.delete(started));
      return true;
    },
    async settled(ms) {
      if (unfinished.size > 0) await callHook(clock, ms, () => Promise.all(unfinished)).catch(() => {});
    },
  };
}

/** Keeps the log in the storage. */
interface LogWriter {
  settled: BoundedCaller["settled"];
  /** Adds entries of one partition, in one call of the storage. Neither waits nor throws. */
  add: (entries: StoredEntry[]) => void;
}

/** An entry that the log of an account keeps. */
type StoredEntry = AuditEntry & { webhookId: string };

const isStored = (entry: AuditEntry): entry is StoredEntry => entry.webhookId !== undefined;

/**
 * Makes one call of the storage at a time: with several, the log would have the order in which they
 * end. What waits meanwhile is written together.
 */
function createLogWriter(base: UnauditedService): LogWriter {
  const { store, config } = base;
  const { auditEntries: keep } = config.limits;
  const { call, settled } = createBoundedCaller(base, "the audit log", WRITE_MS, 1);
  /** Oldest first. Each has a call that waits, or is part of a batch before it. */
  const waiting = new Set<{ partition: number; records: AuditRecord[] }>();

  /** Takes what may be written first, and what of its partition fits into the same call. */
  const takeBatch = (): AuditRecord[] => {
    const [first] = waiting;
    const batch: AuditRecord[] = [];
    for (const report of waiting) {
      const { partition, records } = report;
      if (partition !== first?.partition) continue;
      if (batch.length > 0 && batch.length + records.length > ENTRIES_PER_WRITE) break;
      batch.push(...records);
      waiting.delete(report);
    }
    return batch;
  };
  const write = async (): Promise<void> => {
    const entries = takeBatch();
    if (entries.length > 0) await store.addAuditEntries?.({ entries, keep, now: store.now() });
  };

  return {
    settled,
    add(entries) {
      const [first] = entries;
      if (first === undefined) return;
      const report = { partition: store.partitionOf(first.webhookId), records: entries.map(toRecord) };
      waiting.add(report);
      if (!call(write)) waiting.delete(report);
    },
  };
}

/** Returns who acts. */
export const toAuditActor = (actor: Actor): AuditActor =>
  actor === "host"
    ? { type: "host" }
    : "operator" in actor
      ? { type: "operator", name: actor.operator }
      : { type: "key", id: actor.id };

/** The value that `null` and an absent field stand for. */
const absent = (field: keyof WebhookChange): unknown => (field === "eventTypes" ? ["*"] : null);

/** Reports a change of a webhook: one entry for each kind of change, none if nothing changed. */
export function recordChange(
  { record }: Audit,
  before: WebhookRecord,
  { status, rotation, subscriberId, ...others }: WebhookChange,
  actor: Actor,
): void {
  const { id: webhookId, account } = before;
  const entries: Omit<AuditEntry, "at">[] = [];
  const add = (action: AuditAction, more?: { fields: string[] }): void => {
    entries.push({ account, actor: toAuditActor(actor), webhookId, action, ...more });
  };
  const fields = Object.entries(others)
    .filter(([name, value]) => {
      const field = name as keyof typeof others;
      return !isDeepStrictEqual(value ?? absent(field), before[field] ?? absent(field));
    })
    .map(([name]) => name);
  if (fields.length > 0) add("webhook.changed", { fields });
  if (status !== undefined && status !== before.status)
    add(status === "ENABLED" ? "webhook.enabled" : "webhook.disabled");
  if (rotation !== undefined) add("finish" in rotation ? "webhook.rotation_finished" : "webhook.rotated");
  if (subscriberId !== undefined && subscriberId !== before.subscriberId) add("webhook.transferred");
  record(...entries);
}

const toRecord = ({ account, at, ...entry }: AuditEntry): AuditRecord => ({
  account,
  at: at.getTime(),
  entry: JSON.stringify(entry),
  isDelivery: entry.action.startsWith("delivery."),
});

const toEntry = ({ account, at, entry }: AuditRecord): AuditEntry => ({
  at: new Date(at),
  account,
  ...(JSON.parse(entry) as Omit<AuditEntry, "at" | "account">),
});

function toFailedEntry({ claim, result: { id, outcome } }: FailedEnd): Omit<AuditEntry, "at"> {
  const { webhook, event } = claim;
  return {
    account: webhook.account,
    action: outcome.state === "withheld" ? "delivery.withheld" : "delivery.failed",
    actor: { type: "service" },
    webhookId: webhook.id,
    deliveryId: id,
    eventId: event.id,
    ...("reason" in outcome && { reason: outcome.reason }),
  };
}

function toExhausted({ claim: { webhook, event }, result: { id, outcome, attempt } }: FailedEnd) {
  return {
    webhook: toWebhook(webhook),
    deliveryId: id,
    eventId: event.id,
    type: event.type,
    reason: "reason" in outcome ? outcome.reason : outcome.state,
    // Without the excerpt, which may repeat a record.
    lastAttempt: attempt && {
      at: new Date(attempt.at),
      kind: attempt.kind,
      status: attempt.status,
      code: attempt.code,
    },
  };
}

/** @throws `invalid_option` if the storage cannot keep the log. */
export function createAudit(base: UnauditedService): Audit {
  const { store, config, logger } = base;
  const { audit: hook, notify, limits } = config;
  const { exhausted } = notify;
  const isKept = limits.auditEntries > 0;
  if (isKept && store.addAuditEntries === undefined) {
    throw new PostbellError(
      "invalid_option",
      "createWebhooks: this storage keeps no audit log: leave limits.auditEntries out, or use another storage.",
      { field: "limits.auditEntries" },
    );
  }
  const hookCalls = createBoundedCaller(base, "the audit hook", limits.hookMs);
  const exhaustedCalls = createBoundedCaller(base, "notify.exhausted", limits.hookMs);
  const writer = createLogWriter(base);

  const report = (entries: readonly Omit<AuditEntry, "at">[]): void => {
    const at = store.now();
    const reported = entries.map((entry) => Object.freeze({ at: new Date(at), ...entry }));
    if (isKept) writer.add(reported.filter(isStored));
    if (hook !== undefined) for (const entry of reported) hookCalls.call(() => hook(entry));
    publishAudit(reported);
  };
  const reportsAny = (): boolean => isKept || hook !== undefined || hasAuditSubscribers();

  const readEntry = (record: AuditRecord): AuditEntry[] => {
    try {
      return [toEntry(record)];
    } catch (error) {
      logger.error({ account: record.account, error }, "a stored entry of the audit log cannot be read");
      return [];
    }
  };

  return {
    record(...entries) {
      if (reportsAny()) report(entries);
    },
    reportsEnds: () => exhausted !== undefined || reportsAny(),
    recordEnds(ends) {
      if (ends.length === 0) return;
      if (reportsAny()) report(ends.map(toFailedEntry));
      if (exhausted === undefined) return;
      for (const end of ends)
        if (end.result.outcome.state === "failed") exhaustedCalls.call(() => exhausted(toExhausted(end)));
    },
    log: (actor) =>
      Object.freeze<SubscriberAuditLog>({
        isKept,
        list: (request = {}) =>
          new PagedList(request?.cursor, async (cursor) => {
            const input = readCallArguments("list", request, ["account", "cursor", "limit"]);
            const account = selectAccount(input.account, actor);
            const limit = readLimit(input.limit);
            if (!isKept) throw noLog();
            await writer.settled(LIST_WAITS_MS);
            const page = await store.listAuditEntries?.({ account, cursor, limit });
            return { items: (page?.entries ?? []).flatMap(readEntry), next: page?.next ?? null };
          }),
      }),
    async settled() {
      await Promise.all([hookCalls, exhaustedCalls, writer].map(({ settled }) => settled(limits.hookMs)));
    },
  };
}

const noLog = (): PostbellError =>
  new PostbellError(
    "invalid_argument",
    "This service keeps no audit log: set limits.auditEntries to the number of entries to keep.",
  );
