/** The delivery log on Redis: list, resend, recover. */

import { randomUUID } from "node:crypto";
import { MAX_RESENT, RECOVERED_STATES } from "../../src/webhooks/store/records.js";
import type { AttemptSummary, DeliveryRecord, WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { type PastHour, type RecentHour, readClass, summariseAttempts } from "../queue/recent-attempts.js";
import { decodeDelivery, decodeDeliveryId, encodeDeliveryId } from "./delivery-codec.js";
import { decodeEvent, decodeLabel } from "./event-codec.js";
import { partitionFull } from "./redis-errors.js";
import { SCRIPTS } from "./scripts.js";
import type { RedisStoreContext } from "./store-context.js";
import { decodeNumber, encodeNumber, encodeText, encodeUuid } from "./text-codec.js";

/** A place in the order of a partition: eleven digits of a time, and four that count within it. */
const ORDER = /^[0-9a-f]{15}$/;

const readOrderTime = (order: string): number => Number.parseInt(order.slice(0, 11), 16);

/** The most events that one `recover` script examines, and the most deliveries it creates. */
const EXAMINED_PER_CALL = 250;
const RECOVERED_PER_CALL = 100;

type Row = readonly [suffix: string, label: string, text: string];

const toRecord = (webhookId: string, [suffix, label, text]: Row): DeliveryRecord => {
  const id = decodeDeliveryId(webhookId, suffix);
  const eventId = id.slice(webhookId.length + 1).split(".", 1)[0] ?? "";
  const { type, subject = null } = decodeLabel(label);
  return decodeDelivery(text, { id, webhookId, eventId, type, subject });
};

/** Decodes `<hour> <succeeded> <failed> <ms> <class of p50> <class of p95>;…` of recent.lua. */
const decodePast = (text: string): readonly PastHour[] =>
  text
    .split(";")
    .slice(0, -1)
    .map((line) => {
      const words = line.split(" ");
      const [hour = 0, succeeded = 0, failed = 0, durationMs = 0] = words.slice(0, 4).map(Number);
      return { hour, succeeded, failed, durationMs, p50: readClass(words[4]), p95: readClass(words[5]) };
    });

/** Decodes the newest hour. */
function decodeRecent(text: string): RecentHour | null {
  const [line = "", sketch = ""] = text.split("\n");
  const [newest] = decodePast(line);
  if (newest === undefined) return null;
  const { hour, succeeded, failed, durationMs } = newest;
  return { hour, succeeded, failed, durationMs, sketch };
}

export function createRedisDeliveryLog(
  context: RedisStoreContext,
): Pick<
  WebhookStore,
  "getDelivery" | "getEvent" | "listDeliveries" | "deliveryStats" | "resend" | "recover"
> {
  const { partitions, limits, run, notifyWorkers } = context;
  return {
    async getDelivery(id) {
      const key = encodeDeliveryId(id);
      if (!key) return undefined;
      const { webhookId, suffix } = key;
      const now = await context.connect(0);
      const row = (await run(SCRIPTS.read, partitions.ofWebhook(webhookId), ["delivery", webhookId, suffix], {
        now,
      })) as unknown as Row | [];
      return row.length === 0 ? undefined : toRecord(webhookId, row);
    },

    async getEvent({ account, id }) {
      const now = await context.connect(0);
      const args = ["event", encodeText(account), encodeUuid(id)];
      const [text] = (await run(SCRIPTS.read, partitions.ofAccount(account), args, { now })) as string[];
      return text ? decodeEvent(text, account, id)?.event : undefined;
    },

    async listDeliveries({ webhookId, state, type, since, until, cursor, limit }) {
      const now = await context.connect(0);
      const args = [
        "deliveries",
        webhookId,
        state ?? "",
        type === undefined ? "" : encodeText(type),
        validateCursor(cursor, ORDER),
        limit,
        encodeNumber(since),
        encodeNumber(until),
      ];
      const reply = await run(SCRIPTS.read, partitions.ofWebhook(webhookId), args, { now });
      const [rows, next] = reply as [Row[], string];
      const deliveries = rows.map((row) => toRecord(webhookId, row));
      return next ? { deliveries, next, examinedTo: readOrderTime(next) } : { deliveries, next: null };
    },

    async deliveryStats(webhookId, now) {
      const at = await context.connect(now);
      const args = ["tally", webhookId];
      const row = await run(SCRIPTS.read, partitions.ofWebhook(webhookId), args, { now: at });
      const [counts, ...texts] = row as unknown as
        | [[number, number, number, number, number], ...string[]]
        | [];
      if (counts === undefined) return undefined;
      const [nextAt = "", last, recent = "", past = ""] = texts;
      const [pending, delivered, failed, withheld, failedTests] = counts;
      return {
        pending,
        delivered,
        failed,
        withheld,
        failedTests,
        ...summariseAttempts(decodeRecent(recent), decodePast(past), at),
        nextDueAt: decodeNumber(nextAt),
        lastAttempt: !last ? null : (JSON.parse(last) as AttemptSummary),
      };
    },

    async resend({ id, account, force, now }) {
      const key = encodeDeliveryId(id);
      if (!key) return undefined;
      const at = await context.connect(now);
      const { webhookId, suffix } = key;
      const bounds = [limits.pending, limits.pendingPerAccount];
      const args = [...bounds, encodeText(account), webhookId, suffix, force ? 1 : 0];
      const [result, detail = "", notifyAt] = (await run(
        SCRIPTS.resend,
        partitions.ofAccount(account),
        args,
        { now: at },
      )) as string[];
      if (result === "full") throw partitionFull(detail, limits);
      notifyWorkers(notifyAt);
      return result === undefined
        ? undefined
        : { id: decodeDeliveryId(webhookId, detail), isInFlight: result === "inflight" };
    },

    async recover({ webhookId, account, since, dueAt, everyMs, now, cursor, limit, type, states }) {
      const after = validateCursor(cursor, ORDER);
      const at = await context.connect(now);
      const [result, detail, next, notifyAt, examined] = (await run(
        SCRIPTS.recover,
        partitions.ofAccount(account),
        [
          limits.pending,
          limits.pendingPerAccount,
          encodeText(account),
          webhookId,
          since,
          after,
          Math.min(limit, EXAMINED_PER_CALL),
          randomUUID(),
          dueAt,
          everyMs,
          RECOVERED_PER_CALL,
          type === undefined ? "" : encodeText(type),
          (states ?? RECOVERED_STATES).map((state) => state.charAt(0)).join(""),
          MAX_RESENT,
        ],
        { now: at },
      )) as [string?, (string | number)?, string?, string?, (string | number)?];
      if (result === "full") throw partitionFull(String(detail), limits);
      notifyWorkers(notifyAt);
      if (result !== "made") return undefined;
      return { count: Number(detail), examined: Number(examined), next: next || null };
    },
  };
}
