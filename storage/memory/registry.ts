/** Registrations in memory, with their health steps. */

import { rotateSecret } from "../../src/webhooks/registrations/secret-rotation.js";
import type { WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { memoryFull } from "./bounds.js";
import { moveToLane, offer } from "./claim-order.js";
import { FifoTimeQueue } from "./fifo-time-queue.js";
import { parsePageStart, slicePageOf } from "./page.js";
import { expire, freeRemoved } from "./retention.js";
import { createOrderedRows, type Rows } from "./rows.js";
import {
  dropIfEmpty,
  getAccount,
  getEndpoint,
  type MemoryEndpoint,
  type MemoryStoreContext,
  notifyWorkers,
  type State,
  scoped,
} from "./state.js";

/** A copy that nobody can change. */
const frozenRecord = (record: WebhookRecord): WebhookRecord =>
  Object.freeze({ ...record, eventTypes: record.eventTypes && Object.freeze([...record.eventTypes]) });

const enabledCount = (endpoints: Rows<MemoryEndpoint>): number =>
  [...endpoints.after(0)].filter(({ record }) => record.status === "ENABLED").length;

/** Puts `fields` into the record of `endpoint`, and its next health step into the queue. What moves only the health keeps `updatedAt`. */
export function updateRecord(state: State, endpoint: MemoryEndpoint, fields: Partial<WebhookRecord>): void {
  endpoint.record = Object.freeze({ ...endpoint.record, ...fields });
  const { noticeAt } = endpoint.record;
  if (noticeAt === null) state.notices.delete(endpoint);
  else {
    state.notices.set(endpoint, noticeAt);
    notifyWorkers(state, noticeAt);
  }
}

/** The time of a change that users see: later than the one before, also within one millisecond. */
const touchedAt = ({ record }: MemoryEndpoint, now: number): number => Math.max(now, record.updatedAt + 1);

type Registry = Pick<
  WebhookStore,
  | "createWebhook"
  | "getWebhook"
  | "listWebhooks"
  | "updateWebhook"
  | "removeWebhook"
  | "claimHealthNotifications"
  | "settleHealthNotification"
>;

export function createMemoryRegistry(context: MemoryStoreContext): Registry {
  const { state } = context;
  return {
    async createWebhook({ webhook, enabledLimit, accountLimit, idempotency, now }) {
      expire(state, now);
      const key = idempotency && scoped(webhook.account, idempotency.key);
      const replay = key === null ? undefined : state.replays.get(key, now);
      if (replay) {
        return replay.digest === idempotency?.digest
          ? { result: "replayed", webhook: replay.webhook }
          : { result: "key_reused" };
      }
      const known = state.endpoints.get(webhook.id);
      if (known) return { result: "created", webhook: known.record };
      const others = state.accounts.get(webhook.account)?.endpoints;
      if (others && others.size >= accountLimit) return { result: "account_limit" };
      if (others && webhook.status === "ENABLED" && enabledCount(others) >= enabledLimit) {
        return { result: "enabled_limit" };
      }
      if (state.endpoints.size >= state.limits.webhooks) throw memoryFull(state, "webhooks");
      const account = getAccount(state, webhook.account);
      const endpoint: MemoryEndpoint = {
        id: webhook.id,
        record: frozenRecord(webhook),
        account,
        order: ++state.order,
        deliveries: createOrderedRows(),
        queue: new FifoTimeQueue(),
        inFlight: 0,
        window: null,
        lane: "slow",
        counts: { pending: 0, delivered: 0, failed: 0, withheld: 0 },
        lastAttempt: null,
        isRemoved: false,
      };
      account.endpoints.add(endpoint);
      state.endpoints.set(webhook.id, endpoint);
      if (idempotency && key !== null) {
        state.replays.set(key, { ...idempotency, webhook: endpoint.record });
      }
      return { result: "created", webhook: endpoint.record };
    },

    async getWebhook(id) {
      return state.endpoints.get(id)?.record;
    },

    async listWebhooks({ account, cursor, limit }) {
      const after = parsePageStart(cursor) ?? 0;
      const oldestFirst = state.accounts.get(account)?.endpoints.after(after) ?? [];
      const { rows: shown, next } = slicePageOf(oldestFirst, limit);
      return { webhooks: shown.map(({ record }) => record), next };
    },

    async updateWebhook({ id, account, change: given, owner, enabledLimit, now }) {
      const { url, status, eventTypes, rotation, subscriberId } = given;
      const endpoint = getEndpoint(state, account, id);
      if (!endpoint) return { result: "not_found" };
      const { record } = endpoint;
      if (owner !== undefined && owner !== record.subscriberId) return { result: "not_owner" };
      const isEnabled = status === "ENABLED" && record.status === "DISABLED";
      const isDisabled = status === "DISABLED" && record.status === "ENABLED";
      const isMoved = url !== undefined && url !== record.url;
      if (isEnabled && enabledCount(endpoint.account.endpoints) >= enabledLimit)
        return { result: "enabled_limit" };
      updateRecord(state, endpoint, {
        updatedAt: touchedAt(endpoint, now),
        url: url ?? record.url,
        status: status ?? record.status,
        eventTypes:
          eventTypes === undefined ? record.eventTypes : eventTypes && Object.freeze([...eventTypes]),
        ...(rotation && rotateSecret(record, rotation, now)),
        subscriberId: subscriberId ?? record.subscriberId,
        ...(isEnabled || isMoved ? { generation: record.generation + 1 } : {}),
        ...(isEnabled || isMoved || isDisabled ? { failingSince: null, warnedAt: null, noticeAt: null } : {}),
      });
      if (isEnabled || isMoved) {
        endpoint.window = null;
        moveToLane(state, endpoint, "slow");
        offer(context, endpoint, now);
      }
      return { result: "updated", webhook: endpoint.record };
    },

    async removeWebhook({ id, account, now }) {
      const endpoint = getEndpoint(state, account, id);
      if (!endpoint) return false;
      for (const line of Object.values(state.ready)) line.delete(endpoint);
      state.notices.delete(endpoint);
      state.endpoints.delete(id);
      endpoint.account.endpoints.delete(endpoint);
      endpoint.isRemoved = true;
      state.removals.set(endpoint, 0);
      freeRemoved(context, now);
      dropIfEmpty(state, endpoint.account);
      return true;
    },

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
      const updatedAt = status === from ? endpoint.record.updatedAt : touchedAt(endpoint, now);
      updateRecord(state, endpoint, { status, warnedAt, noticeAt, updatedAt });
      return true;
    },
  };
}
