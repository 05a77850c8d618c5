/** The webhook store on the heap of this process, put together from its parts. */

import { randomUUID } from "node:crypto";
import type {
  AuditLogStore,
  DataKeyStore,
  EndpointHealthStore,
  StorageContext,
  StoreStats,
  WebhookRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { getEndpointState } from "../queue/account-summary.js";
import { nameDataKey } from "../seal.js";
import { createMemoryAccounts } from "./accounts.js";
import { parsePageStart } from "./collections.js";
import { createMemoryDeliveryLog } from "./delivery-log.js";
import { createMemoryDeliveryQueue } from "./delivery-queue.js";
import type { AuditRow } from "./records.js";
import { createMemoryRegistry } from "./registry.js";
import { makeRoom } from "./retention.js";
import {
  createTime,
  getEndpoint,
  getTouchedAt,
  type MemoryStoreContext,
  memoryFull,
  type State,
  textBytes,
  updateRecord,
} from "./state.js";

/**
 * Only this process changes the heap, and it notifies its workers: claiming without a notification
 * is a safety net.
 */
const MAX_SLEEP_MS = 3_600_000;

export function createMemoryWebhookStore(
  state: State,
  { clock, perEndpoint, perSecond = null, retention }: StorageContext,
): WebhookStore {
  const context: MemoryStoreContext = { state, perEndpoint, perSecond, retention };
  const now = createTime(state, clock);
  return Object.freeze<WebhookStore>({
    maxSleepMs: MAX_SLEEP_MS,
    now,
    watch(listener) {
      // An object, because one listener may be added twice.
      const watcher = { listener };
      state.watchers.add(watcher);
      return () => {
        state.watchers.delete(watcher);
      };
    },
    newWebhookId: () => randomUUID(),
    ...createMemoryRegistry(context),
    ...createMemoryHealthNotifications(context),
    ...createMemoryDeliveryQueue(context),
    ...createMemoryDeliveryLog(context),
    ...createMemoryAuditLog(context),
    ...createMemoryAccounts(context),
    ...createMemoryDataKeys(context, now),
    async stats() {
      const events = [...state.accounts.values()].reduce((sum, account) => sum + account.events.size, 0);
      return {
        webhooks: state.endpoints.size,
        events,
        pending: state.pending,
        leased: state.leased.size,
        due: dueCount(state, now()),
        endpoints: healthCounts(state),
        ended: state.deliveries - state.pending,
        bytes: state.bytes,
      };
    },
  });
}

/** The heap that a data key takes besides the name of its account. */
const DATA_KEY_BYTES = 300;

function createMemoryDataKeys({ state }: MemoryStoreContext, now: () => number): DataKeyStore {
  const { dataKeys, erasedKeys } = state;
  const bytesOf = (account: string): number => DATA_KEY_BYTES + textBytes(account);
  return {
    // The heap is on no disk, and a copy of it has every key, wherever it comes from.
    sealsDataKeys: true,
    losesDataKeys: true,
    readDataKeys: async (accounts) => accounts.map((account) => dataKeys.get(account)),

    async addDataKey({ account, key }) {
      const stored = dataKeys.get(account);
      if (stored !== undefined) return { key: stored, isCommitted: true };
      if (!makeRoom(state, bytesOf(account), now())) throw memoryFull(state, "bytes");
      dataKeys.set(account, key);
      state.bytes += bytesOf(account);
      return { key, isCommitted: true };
    },

    async eraseDataKey({ account, now: at, forgetAt }) {
      for (const [name, until] of erasedKeys) {
        if (until > at) continue;
        erasedKeys.delete(name);
        state.bytes -= DATA_KEY_BYTES;
      }
      const key = dataKeys.get(account);
      if (key === undefined) return;
      dataKeys.delete(account);
      erasedKeys.set(nameDataKey(key), forgetAt);
      state.bytes -= bytesOf(account) - DATA_KEY_BYTES;
    },

    isDataKeyErased: async ({ name }) => erasedKeys.has(name),
  };
}

/** Counting more would block the event loop. A gauge that stays at this figure says enough. */
const MAX_COUNTED = 100_000;

function* dueDeliveries({ ready }: State, now: number): Iterable<unknown> {
  for (const line of Object.values(ready)) for (const { queue } of line.until(now)) yield* queue.until(now);
}

function dueCount(state: State, now: number): number {
  let count = 0;
  for (const _ of dueDeliveries(state, now)) {
    count += 1;
    if (count === MAX_COUNTED) break;
  }
  return count;
}

function healthCounts({ endpoints }: State): StoreStats["endpoints"] {
  const counts = { ok: 0, failing: 0, warned: 0, disabled: 0 };
  for (const { record } of endpoints.values()) counts[getEndpointState(record)] += 1;
  return counts;
}

function createMemoryHealthNotifications({ state }: MemoryStoreContext): EndpointHealthStore {
  return {
    async claimHealthNotifications({ now, leaseUntil, limit }) {
      const webhooks: WebhookRecord[] = [];
      while (webhooks.length < limit && (state.notices.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
        const endpoint = state.notices.head();
        if (!endpoint) break;
        updateRecord(state, endpoint, { noticeAt: leaseUntil });
        webhooks.push(endpoint.record);
      }
      return { webhooks, nextAt: state.notices.headAt() ?? null };
    },

    async settleHealthNotification({ id, account, failingSince, from, status, warnedAt, noticeAt, now }) {
      const endpoint = getEndpoint(state, account, id);
      if (!endpoint || endpoint.record.failingSince !== failingSince || endpoint.record.status !== from)
        return false;
      const updatedAt = status === from ? endpoint.record.updatedAt : getTouchedAt(endpoint, now);
      updateRecord(state, endpoint, { status, warnedAt, noticeAt, updatedAt });
      return true;
    },
  };
}

/**
 * The most entries of all audit logs together. Beyond it, the logs of the accounts with no new
 * entry for the longest time are dropped.
 */
const MAX_AUDIT_ENTRIES = 100_000;

function addAuditEntry({ audit }: State, row: AuditRow, keep: number): void {
  const { logs } = audit;
  const { account } = row.record;
  const log = logs.get(account) ?? { deliveries: [], others: [] };
  const rows = row.record.isDelivery ? log.deliveries : log.others;
  rows.push(row);
  const removed = rows.splice(0, Math.max(0, rows.length - keep));
  logs.delete(account);
  logs.set(account, log);
  audit.size += 1 - removed.length;
  for (const [other, { deliveries, others }] of logs) {
    if (audit.size <= MAX_AUDIT_ENTRIES) break;
    logs.delete(other);
    audit.size -= deliveries.length + others.length;
  }
}

/** Returns at most `count` rows before an order, newest first. */
function takeNewest(rows: AuditRow[], before: number, count: number): AuditRow[] {
  const end = 1 + rows.findLastIndex(({ order }) => order < before);
  return rows.slice(Math.max(0, end - count), end).reverse();
}

function createMemoryAuditLog({ state }: MemoryStoreContext): AuditLogStore {
  return {
    async addAuditEntries({ entries, keep }) {
      for (const record of entries)
        addAuditEntry(state, { order: ++state.order, record: Object.freeze({ ...record }) }, keep);
    },

    async listAuditEntries({ account, cursor, limit }) {
      const before = parsePageStart(cursor) ?? Number.POSITIVE_INFINITY;
      const { deliveries, others } = state.audit.logs.get(account) ?? { deliveries: [], others: [] };
      const newest = [deliveries, others].flatMap((log) => takeNewest(log, before, limit + 1));
      const rows = newest.sort((a, b) => b.order - a.order).slice(0, limit);
      const next = newest.length > limit ? String(rows.at(-1)?.order) : null;
      return { entries: rows.map(({ record }) => record), next };
    },
  };
}
