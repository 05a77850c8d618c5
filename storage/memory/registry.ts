/** Registrations in memory, with their health steps. */

import { timeQueue } from "../../src/time-queue.js";
import type { WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { full } from "./bounds.js";
import { page, pageStart } from "./page.js";
import { expire, forget } from "./retention.js";
import { moveToLane, offer } from "./schedule.js";
import { type Account, accountOf, dropIfEmpty, type Endpoint, notify, type State, scoped } from "./state.js";

/** A copy that nobody can change. */
const frozenRecord = (record: WebhookRecord): WebhookRecord =>
  Object.freeze({ ...record, eventTypes: record.eventTypes && Object.freeze([...record.eventTypes]) });

const enabledCount = (account: Account): number =>
  [...account.endpoints.values()].filter(({ record }) => record.status === "ENABLED").length;

/** Puts `fields` into the record of `endpoint`, and its next health step into the queue. What moves only the health keeps `updatedAt`. */
export function change(state: State, endpoint: Endpoint, fields: Partial<WebhookRecord>): void {
  endpoint.record = Object.freeze({ ...endpoint.record, ...fields });
  const { noticeAt } = endpoint.record;
  if (noticeAt === null) state.notices.delete(endpoint);
  else {
    state.notices.set(endpoint, noticeAt);
    notify(state, noticeAt);
  }
}

/** The time of a change that users see: later than the one before, also within one millisecond. */
const touchedAt = ({ record }: Endpoint, now: number): number => Math.max(now, record.updatedAt + 1);

type Registry = Pick<
  WebhookStore,
  | "createWebhook"
  | "getWebhook"
  | "listWebhooks"
  | "updateWebhook"
  | "removeWebhook"
  | "claimNotices"
  | "settleNotice"
>;

export function registry(state: State): Registry {
  const { limits } = state;
  return {
    async createWebhook({ webhook, enabledLimit, idempotency, now }) {
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
      const account = accountOf(state, webhook.account);
      if (webhook.status === "ENABLED" && enabledCount(account) >= enabledLimit) {
        dropIfEmpty(state, account);
        return { result: "limit" };
      }
      if (state.endpoints.size >= limits.webhooks) {
        dropIfEmpty(state, account);
        throw full(state, "webhooks");
      }
      const endpoint: Endpoint = {
        record: frozenRecord(webhook),
        account,
        order: ++state.order,
        deliveries: new Map(),
        queue: timeQueue(),
        inFlight: 0,
        window: null,
        lane: "slow",
      };
      account.endpoints.set(webhook.id, endpoint);
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
      const after = pageStart(cursor) ?? 0;
      const endpoints = [...(state.accounts.get(account)?.endpoints.values() ?? [])];
      const { rows, next } = page(
        endpoints.filter(({ order }) => order > after),
        limit,
      );
      return { webhooks: rows.map(({ record }) => record), next };
    },

    async updateWebhook({ id, change: { url, status, eventTypes, secrets }, enabledLimit, now }) {
      const endpoint = state.endpoints.get(id);
      if (!endpoint) return { result: "not_found" };
      const { record } = endpoint;
      const isEnabled = status === "ENABLED" && record.status === "DISABLED";
      const isDisabled = status === "DISABLED" && record.status === "ENABLED";
      const isMoved = url !== undefined && url !== record.url;
      if (isEnabled && enabledCount(endpoint.account) >= enabledLimit) return { result: "limit" };
      change(state, endpoint, {
        updatedAt: touchedAt(endpoint, now),
        url: url ?? record.url,
        status: status ?? record.status,
        eventTypes:
          eventTypes === undefined ? record.eventTypes : eventTypes && Object.freeze([...eventTypes]),
        ...secrets,
        ...(isEnabled || isMoved ? { generation: record.generation + 1 } : {}),
        ...(isEnabled || isMoved || isDisabled ? { failingSince: null, warnedAt: null, noticeAt: null } : {}),
      });
      if (isEnabled || isMoved) {
        endpoint.window = null;
        moveToLane(state, endpoint, "slow");
        offer(state, endpoint, now);
        notify(state, now);
      }
      return { result: "updated", webhook: endpoint.record };
    },

    async removeWebhook({ id, now, retention }) {
      const endpoint = state.endpoints.get(id);
      if (!endpoint) return false;
      for (const delivery of endpoint.deliveries.values()) forget(state, delivery, now, retention);
      for (const line of Object.values(state.ready)) line.delete(endpoint);
      state.notices.delete(endpoint);
      state.endpoints.delete(id);
      endpoint.account.endpoints.delete(id);
      dropIfEmpty(state, endpoint.account);
      return true;
    },

    async claimNotices({ now, leaseUntil, limit }) {
      const webhooks: WebhookRecord[] = [];
      while (webhooks.length < limit && (state.notices.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
        const endpoint = state.notices.head();
        if (!endpoint) break;
        change(state, endpoint, { noticeAt: leaseUntil });
        webhooks.push(endpoint.record);
      }
      return { webhooks, nextAt: state.notices.headAt() ?? null };
    },

    async settleNotice({ id, failingSince, from, status, warnedAt, noticeAt, now }) {
      const endpoint = state.endpoints.get(id);
      if (!endpoint || endpoint.record.failingSince !== failingSince || endpoint.record.status !== from)
        return false;
      const updatedAt = status === from ? endpoint.record.updatedAt : touchedAt(endpoint, now);
      change(state, endpoint, { status, warnedAt, noticeAt, updatedAt });
      return true;
    },
  };
}
