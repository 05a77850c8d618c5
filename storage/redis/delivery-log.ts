/** The delivery log on Redis: list, resend, recover. */

import { randomUUID } from "node:crypto";
import { createFilterTest } from "../../src/webhooks/events/notification.js";
import { MAX_RESENT, RECOVERED_STATES } from "../../src/webhooks/store/records.js";
import type { DeliveryLogStore, DeliveryRecord } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { type PastHour, type RecentHour, readClass, summariseAttempts } from "../queue/recent-attempts.js";
import {
  decodeAttemptSummary,
  decodeDelivery,
  decodeDeliveryId,
  decodeEvent,
  decodeLabel,
  decodeNumber,
  decodeOrderTime,
  decodeUuid,
  encodeDeliveryId,
  encodeText,
  encodeUuid,
} from "./codec.js";
import { filtersChanged, MAX_FILTER_TRIES } from "./filters.js";
import { partitionFull } from "./redis-errors.js";
import type { RedisStoreContext } from "./session.js";
import { decodeFilter, getFilterName } from "./webhook-codec.js";

/** A place in the order of a partition: eleven digits of a time, and four that count within it. */
const ORDER = /^[0-9a-f]{15}$/;

/** The most events that one call of `recover` examines, and the most deliveries it creates. */
const EXAMINED_PER_CALL = 250;
const RECOVERED_PER_CALL = 100;

type RecoverReply = [string?, (string | number)?, string?, string?, (string | number)?];

/** The account's number, the name of the webhook's filter, and the encoded ids of events. */
type UndecidedReply = ["undecided", account: string, filter: string, events: string[]];

type Row = [suffix: string, label: string, order: string, record: string];

function toRecord(webhookId: string, [suffix, label, order, record]: Row): DeliveryRecord {
  const id = decodeDeliveryId(webhookId, suffix);
  const eventId = id.slice(webhookId.length + 1).split(".", 1)[0] ?? "";
  const { type, subject = null, tags = [] } = decodeLabel(label);
  return decodeDelivery(record, decodeOrderTime(order), { id, webhookId, eventId, type, subject, tags });
}

/** Decodes `<hour> <succeeded> <failed> <ms> <class of p50> <class of p95>;…` of `settle.lua`. */
export const decodePast = (text: string): readonly PastHour[] =>
  text
    .split(";")
    .slice(0, -1)
    .map((line) => {
      const words = line.split(" ");
      const [hour = 0, succeeded = 0, failed = 0, durationMs = 0] = words.slice(0, 4).map(Number);
      return { hour, succeeded, failed, durationMs, p50: readClass(words[4]), p95: readClass(words[5]) };
    });

/** Decodes the newest hour. */
export function decodeRecent(text: string): RecentHour | null {
  const [line = "", sketch = ""] = text.split("\n");
  const [newest] = decodePast(line);
  if (newest === undefined) return null;
  const { hour, succeeded, failed, durationMs } = newest;
  return { hour, succeeded, failed, durationMs, sketch };
}

export function createRedisDeliveryLog(context: RedisStoreContext): DeliveryLogStore {
  const { partitions, limits, run, notifyWorkers } = context;

  /** Applies the filter of a webhook to events that `recover` has found. */
  const decide = async (
    {
      webhookId,
      account,
      createFilterTest: createTest = createFilterTest,
    }: Parameters<DeliveryLogStore["recover"]>[0],
    [, number, name, events]: UndecidedReply,
    now: number,
  ): Promise<{ filter: string; passes: Record<string, boolean> } | undefined> => {
    const partition = partitions.ofAccount(account);
    const options = { id: webhookId };
    const [webhook = ""] = (await run("readWebhook", partition, { now, options })) as string[];
    const filter = decodeFilter(webhook);
    // It was changed meanwhile.
    if (filter === undefined || getFilterName(filter) !== name) return undefined;
    const fields = events.map((event) => `${number}/${event}`);
    const texts = (await context.call("HMGET", partition.key("events"), ...fields)) as (string | null)[];
    const isPassed = (text: string | null | undefined, event: string): boolean => {
      const stored = text && decodeEvent(text, account, decodeUuid(event));
      return !stored || createTest(stored.event)(filter);
    };
    const passes = events.map((event, index) => [event, isPassed(texts[index], event)] as const);
    return { filter: name, passes: Object.fromEntries(passes) };
  };

  const runRecover = async (
    request: Parameters<DeliveryLogStore["recover"]>[0],
    now: number,
    options: object,
  ): Promise<RecoverReply> => {
    let decided: Awaited<ReturnType<typeof decide>>;
    for (let tries = 0; tries < MAX_FILTER_TRIES; tries++) {
      const call = { now, options: { ...options, ...decided } };
      const reply = await run("recover", partitions.ofAccount(request.account), call);
      const [result] = reply as RecoverReply;
      if (result !== "undecided") return reply as RecoverReply;
      decided = await decide(request, reply as UndecidedReply, now);
    }
    throw filtersChanged();
  };

  return {
    async getDelivery(id) {
      const key = encodeDeliveryId(id);
      if (!key) return undefined;
      const { webhookId, suffix } = key;
      const now = await context.connect(0);
      const options = { id: webhookId, suffix };
      const row = (await run("readDelivery", partitions.ofWebhook(webhookId), { now, options })) as Row | [];
      return row.length === 0 ? undefined : toRecord(webhookId, row);
    },

    async getEvent({ account, id }) {
      const now = await context.connect(0);
      const options = { account: encodeText(account), event: encodeUuid(id) };
      const [text] = (await run("readEvent", partitions.ofAccount(account), { now, options })) as string[];
      const stored = text ? decodeEvent(text, account, id) : undefined;
      return stored && { ...stored.event, storedAt: stored.createdAt };
    },

    async listDeliveries({ webhookId, state, type, since, until, cursor, limit }) {
      const now = await context.connect(0);
      const options = {
        id: webhookId,
        state,
        type: type === undefined ? undefined : encodeText(type),
        before: validateCursor(cursor, ORDER),
        limit,
        since,
        to: until ?? undefined,
      };
      const reply = await run("readDeliveries", partitions.ofWebhook(webhookId), { now, options });
      const [rows, next] = reply as [Row[], string];
      const deliveries = rows.map((row) => toRecord(webhookId, row));
      return next ? { deliveries, next, examinedTo: decodeOrderTime(next) } : { deliveries, next: null };
    },

    async readDeliveriesAfter({ webhookId, after, since, until, limit }) {
      const now = await context.connect(0);
      const options = {
        id: webhookId,
        after: validateCursor(after, ORDER),
        since,
        to: until,
        limit,
      };
      const reply = await run("readFeed", partitions.ofWebhook(webhookId), { now, options });
      const [rows, next, more] = reply as [Row[], string, string];
      return {
        rows: rows.map((row) => ({ delivery: toRecord(webhookId, row), cursor: row[2] })),
        after: next || undefined,
        hasMore: more !== "",
      };
    },

    async findEvents({ account, key, webhookId, idsOnly, cursor, limit }) {
      const now = await context.connect(0);
      const options = {
        account: encodeText(account),
        key: key.subject === undefined ? `t.${encodeText(key.tag)}` : `s.${encodeText(key.subject)}`,
        webhook: webhookId === undefined ? undefined : encodeUuid(webhookId),
        idsOnly: idsOnly === true ? true : undefined,
        before: validateCursor(cursor, ORDER),
        limit,
      };
      const reply = await run("readEvents", partitions.ofAccount(account), { now, options });
      const [found, next] = reply as [[short: string, rows: [webhook: string, ...Row][]][], string];
      const events = found.map(([short, rows]) => ({
        id: decodeUuid(short),
        deliveries: rows.map(([webhook, ...row]) => toRecord(decodeUuid(webhook), row)),
      }));
      return { events, next: next || null };
    },

    async deliveryStats(webhookId, now) {
      const at = await context.connect(now);
      const options = { id: webhookId };
      const row = await run("readCounts", partitions.ofWebhook(webhookId), { now: at, options });
      const [counts, ...texts] = row as unknown as [counts: number[], ...texts: string[]] | [];
      if (counts === undefined) return undefined;
      const [nextAt = "", last, recent = "", past = "", room = ""] = texts;
      const [inFlight = 0, slots = 0, openAt = 0] = room.split(",").map(Number);
      const [pending = 0, delivered = 0, failed = 0, withheld = 0, failedTests = 0, filtered = 0] = counts;
      return {
        pending,
        delivered,
        failed,
        withheld,
        failedTests,
        filtered,
        ...summariseAttempts(decodeRecent(recent), decodePast(past), at),
        nextDueAt: decodeNumber(nextAt),
        inFlight,
        slots,
        openAt,
        lastAttempt: last ? decodeAttemptSummary(last) : null,
      };
    },

    async resend({ id, account, force, now }) {
      const key = encodeDeliveryId(id);
      if (!key) return undefined;
      const at = await context.connect(now);
      const { webhookId, suffix } = key;
      const options = {
        pending: limits.pending,
        pendingPerAccount: limits.pendingPerAccount,
        account: encodeText(account),
        id: webhookId,
        suffix,
        force: force === true,
      };
      const reply = await run("resend", partitions.ofAccount(account), { now: at, options });
      const [result, detail = "", notifyAt] = reply as string[];
      if (result === "full") throw partitionFull(detail, limits);
      notifyWorkers(notifyAt);
      return result === undefined
        ? undefined
        : { id: decodeDeliveryId(webhookId, detail), isInFlight: result === "inflight" };
    },

    async recover(request) {
      const { webhookId, account, now, cursor, limit, types, subject, states } = request;
      const after = validateCursor(cursor, ORDER);
      const at = await context.connect(now);
      const { since, until, dueAt, everyMs, isDryRun = false } = request;
      const options = {
        pending: limits.pending,
        pendingPerAccount: limits.pendingPerAccount,
        account: encodeText(account),
        id: webhookId,
        since,
        to: until,
        after,
        limit: Math.min(limit, EXAMINED_PER_CALL),
        nonce: randomUUID(),
        dueAt,
        everyMs,
        maxRecovered: RECOVERED_PER_CALL,
        types: types?.map(encodeText),
        subject: subject === undefined ? undefined : encodeText(subject),
        states: (states ?? RECOVERED_STATES).map((state) => state.charAt(0)).join(""),
        maxSerial: MAX_RESENT,
        isDryRun,
      };
      const reply = await runRecover(request, at, options);
      const [result, detail, next, notifyAt, examined] = reply;
      if (result === "full") throw partitionFull(String(detail), limits);
      notifyWorkers(notifyAt);
      if (result !== "made") return undefined;
      return { count: Number(detail), examined: Number(examined), next: next || null };
    },
  };
}
