/** The delivery log on Redis: look up, send again, recover. */

import { randomUUID } from "node:crypto";
import type { AttemptSummary, DeliveryRecord, WebhookStore } from "../../src/webhooks/store.js";
import { type RedisBinding, readCursor, storageFull } from "./binding.js";
import { decodeDelivery, decodeText, encodeNumber, encodeText, numberOrNull } from "./codec.js";
import { decodeDeliveryId, encodeDeliveryId } from "./delivery-id-codec.js";
import { SCRIPTS } from "./scripts.js";

/** Places in the order of a partition. */
const ORDER = /^[0-9a-f]{15}$/;

/** The most events that one `recover` script examines, and the most deliveries it creates. */
const EXAMINED_PER_CALL = 250;
const RECOVERED_PER_CALL = 100;

type Row = readonly [suffix: string, type: string, text: string];

const toRecord = (webhookId: string, [suffix, type, text]: Row): DeliveryRecord => {
  const id = decodeDeliveryId(webhookId, suffix);
  const eventId = id.slice(webhookId.length + 1).split(".", 1)[0] ?? "";
  return decodeDelivery(text, { id, webhookId, eventId, type: decodeText(type) });
};

export function createRedisDeliveryLog(
  binding: RedisBinding,
): Pick<WebhookStore, "getDelivery" | "listDeliveries" | "deliveryStats" | "resend" | "recover"> {
  const { partitions, limits, run, hint } = binding;
  return {
    async getDelivery(id) {
      const key = encodeDeliveryId(id);
      if (!key) return undefined;
      const { webhookId, suffix } = key;
      const now = await binding.at(0);
      const row = (await run(SCRIPTS.read, partitions.ofWebhook(webhookId), now, [
        "delivery",
        webhookId,
        suffix,
      ])) as unknown as Row | [];
      return row.length === 0 ? undefined : toRecord(webhookId, row);
    },

    async listDeliveries({ webhookId, state, type, since, until, cursor, limit }) {
      const now = await binding.at(0);
      const args = [
        "deliveries",
        webhookId,
        state ?? "",
        type === undefined ? "" : encodeText(type),
        readCursor(cursor, ORDER),
        limit,
        encodeNumber(since),
        encodeNumber(until),
      ];
      const reply = await run(SCRIPTS.read, partitions.ofWebhook(webhookId), now, args);
      const [rows, next] = reply as [Row[], string];
      return { deliveries: rows.map((row) => toRecord(webhookId, row)), next: next || null };
    },

    async deliveryStats(webhookId) {
      const now = await binding.at(0);
      const args = ["tally", webhookId];
      const row = await run(SCRIPTS.read, partitions.ofWebhook(webhookId), now, args);
      const [counts, nextAt, last] = row as unknown as
        | [counts: [number, number, number, number], nextAt: string, last: string]
        | [];
      if (counts === undefined) return undefined;
      const [pending, delivered, failed, withheld] = counts;
      return {
        pending,
        delivered,
        failed,
        withheld,
        nextDueAt: numberOrNull(nextAt),
        lastAttempt: !last ? null : (JSON.parse(last) as AttemptSummary),
      };
    },

    async resend({ id, account, now }) {
      const key = encodeDeliveryId(id);
      if (!key) return undefined;
      const at = await binding.at(now);
      const { webhookId, suffix } = key;
      const args = [limits.pending, limits.pendingPerAccount, encodeText(account), webhookId, suffix];
      const [result, detail = "", hintAt] = (await run(
        SCRIPTS.resend,
        partitions.ofAccount(account),
        at,
        args,
      )) as string[];
      if (result === "full") throw storageFull(detail, limits);
      hint(hintAt);
      return result === "sent" ? decodeDeliveryId(webhookId, detail) : undefined;
    },

    async recover({ webhookId, account, since, dueAt, everyMs, now, cursor, limit }) {
      const after = readCursor(cursor, ORDER);
      const at = await binding.at(now);
      const [result, detail, next, hintAt, examined] = (await run(
        SCRIPTS.recover,
        partitions.ofAccount(account),
        at,
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
        ],
      )) as [string?, (string | number)?, string?, string?, (string | number)?];
      if (result === "full") throw storageFull(String(detail), limits);
      hint(hintAt);
      if (result !== "made") return undefined;
      return { count: Number(detail), examined: Number(examined), next: next || null };
    },
  };
}
