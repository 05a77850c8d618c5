/** The webhook store on Redis, put together from its parts. */

import { randomUUID } from "node:crypto";
import type { AuditRecord, StoreStats, WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { createRedisAccountList } from "./account-list.js";
import { encodeText } from "./codec.js";
import { createRedisDataKeys } from "./data-keys.js";
import { createRedisDeliveryLog } from "./delivery-log.js";
import { createRedisErasure } from "./erasure.js";
import type { KeySet } from "./partition.js";
import { RedisQueue } from "./queue.js";
import { createRedisRegistry } from "./registry.js";
import type { RedisStoreContext } from "./session.js";
import { decodeReadable, encodeStatus } from "./webhook-codec.js";

export function createRedisWebhookStore(
  context: RedisStoreContext,
  process: Pick<WebhookStore, "now" | "watch" | "connectionProblem">,
): WebhookStore {
  const { partitions, run, maxSleepMs } = context;
  const { now } = process;
  const queue = new RedisQueue(context);
  return Object.freeze<WebhookStore>({
    maxSleepMs,
    ...process,
    partitionOf: (webhookId) => partitions.ofWebhook(webhookId).number,
    newWebhookId: (account) => partitions.newWebhookId(account),
    ...createRedisRegistry(context),
    ...createRedisHealthNotifications(context),
    append: (request) => queue.append(request),
    claim: (request) => queue.claim(request),
    settle: (settlements) => queue.settle(settlements),
    ...createRedisDeliveryLog(context),
    ...createRedisAuditLog(context),
    ...createRedisErasure(context),
    ...createRedisAccountList(context),
    ...createRedisDataKeys(context),
    async stats() {
      const at = await context.connect(now());
      const parts = await Promise.all(
        partitions.all.map((partition) => run("readStats", partition, { now: at })),
      );
      const figures = parts as [...(number | string)[], number[]][];
      const sum = (place: number): number => figures.reduce((total, part) => total + Number(part[place]), 0);
      return {
        webhooks: sum(0),
        events: sum(1),
        pending: sum(2),
        leased: sum(3),
        ended: sum(4),
        bytes: sum(5),
        due: sum(6),
        endpoints: sumHealth(figures.map((part) => part[7] as number[])),
      } satisfies StoreStats;
    },
  });
}

/**
 * Of the counts of each partition: ENABLED, DISABLED, failing, warned; none where it has too many.
 */
function sumHealth(parts: readonly (readonly number[])[]): StoreStats["endpoints"] {
  if (parts.some((counts) => counts.length === 0)) return null;
  const sum = (place: number): number => parts.reduce((total, counts) => total + (counts[place] ?? 0), 0);
  const [failing, warned] = [sum(2), sum(3)];
  return { ok: sum(0) - failing - warned, failing, warned, disabled: sum(1) };
}

function createRedisHealthNotifications(
  context: RedisStoreContext,
): Pick<WebhookStore, "claimHealthNotifications" | "settleHealthNotification"> {
  const { partitions, logger, run } = context;
  return {
    async claimHealthNotifications({ now, leaseUntil, limit }) {
      const at = await context.connect(now);
      const webhooks: WebhookRecord[] = [];
      let nextAt: number | null = null;
      const errors: unknown[] = [];
      for (const partition of partitions.all) {
        const options = { leaseUntil, limit: limit - webhooks.length, nonce: randomUUID() };
        const call = run("claimHealthNotifications", partition, { now: at, options });
        const reply = await call.catch((error: unknown) => {
          errors.push(error);
          return [[], String(leaseUntil)];
        });
        const [texts, next] = reply as [string[], string];
        webhooks.push(...decodeReadable(texts, context));
        if (next !== "") nextAt = Math.min(nextAt ?? Number(next), Number(next));
      }
      // One partition that fails must not lose what the others leased.
      if (errors.length === partitions.all.length) throw errors[0];
      for (const error of errors)
        logger.error({ error }, "due health notifications of a partition could not be claimed");
      return { webhooks, nextAt };
    },

    async settleHealthNotification({ id, account, failingSince, from, status, warnedAt, noticeAt, now }) {
      const at = await context.connect(now);
      const options = {
        account: encodeText(account),
        id,
        failingSince,
        from: encodeStatus(from),
        status: encodeStatus(status),
        warnedAt,
        noticeAt,
        nonce: randomUUID(),
      };
      const partition = partitions.ofAccount(account);
      return (await run("settleHealthNotification", partition, { now: at, options })) === 1;
    },
  };
}

/** The log, the order and the nonce of the last entry of the page before. */
const AUDIT_CURSOR = /^[dw][0-9a-f]{15}\.[0-9a-f-]{36}$/;

/** The parts of a member of the audit log: `account/log/order/nonce/entry`. */
const AUDIT_MEMBER = /^[^/]*\/([dw])\/([0-9a-f]{15})\/([0-9a-f-]{36})\/(.*)$/s;

/** The digits of an order that are its time. */
const TIME_DIGITS = 11;

/**
 * The logs of an account: `d` for entries about deliveries, `w` for others. Of entries with the
 * same order, those of `w` are newer.
 */
const AUDIT_LOGS = ["w", "d"] as const;

/** An entry of the audit log, and where it stands. */
interface AuditMember {
  log: string;
  order: string;
  nonce: string;
  entry: string;
}

const parseMember = (member: string): AuditMember => {
  const [, log = "", order = "", nonce = "", entry = ""] = AUDIT_MEMBER.exec(member) ?? [];
  return { log, order, nonce, entry };
};

/** Sorts newest first. Within one log, the entries are sorted already. */
const compareMembers = (a: AuditMember, b: AuditMember): number =>
  a.order === b.order ? (a.log < b.log ? 1 : a.log > b.log ? -1 : 0) : a.order < b.order ? 1 : -1;

/** Returns the exclusive end of a log, as ZREVRANGEBYLEX takes it. `before`: a cursor. */
function toLogEnd(name: string, log: string, before: string): string {
  if (before === "") return `(${name}/${log}0`;
  const [order = "", nonce = ""] = before.slice(1).split(".");
  if (before[0] === log) return `(${name}/${log}/${order}/${nonce}`;
  // Entries of this log with the same order come after those of `w`, and before those of `d`. `0`
  // is the character after the slash.
  return `(${name}/${log}/${order}${log === "d" ? "0" : "/"}`;
}

function createRedisAuditLog(
  context: RedisStoreContext,
): Pick<WebhookStore, "addAuditEntries" | "listAuditEntries"> {
  const { partitions, run, call } = context;
  return {
    async addAuditEntries({ entries, keep, now }) {
      if (entries.length === 0) return;
      const at = await context.connect(now);
      const byLog = new Map<KeySet, (string | number)[]>();
      for (const { account, at: time, entry, isDelivery } of entries) {
        const { audit } = partitions.ofAccount(account);
        const texts = byLog.get(audit) ?? [];
        texts.push(`${encodeText(account)}/${isDelivery ? "d" : "w"}`, time, entry);
        byLog.set(audit, texts);
      }
      const add = ([audit, items]: [KeySet, (string | number)[]]) =>
        run("audit", audit, { now: at, options: { keep, nonce: randomUUID() }, items });
      await Promise.all([...byLog].map(add));
    },

    async listAuditEntries({ account, cursor, limit }) {
      const before = validateCursor(cursor, AUDIT_CURSOR);
      await context.connect(0);
      const [key = ""] = partitions.ofAccount(account).audit.keys;
      const name = encodeText(account);
      const pages = await Promise.all(
        AUDIT_LOGS.map((log) => {
          const range = [toLogEnd(name, log, before), `[${name}/${log}/`, "LIMIT", 0, limit + 1];
          return call("ZREVRANGEBYLEX", key, ...range) as Promise<string[]>;
        }),
      );
      const members = pages.flat().map(parseMember).sort(compareMembers);
      const shown = members.slice(0, limit);
      const last = shown.at(-1);
      return {
        entries: shown.map(({ log, order, entry }): AuditRecord => {
          const at = Number.parseInt(order.slice(0, TIME_DIGITS), 16);
          return { account, at, entry, isDelivery: log === "d" };
        }),
        next: last !== undefined && members.length > limit ? `${last.log}${last.order}.${last.nonce}` : null,
      };
    },
  };
}
