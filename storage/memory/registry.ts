/** Registrations in memory. */

import { changeDetails, pickDetails, rotateSecret } from "../../src/webhooks/store/records.js";
import type { RegistrationStore, WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { moveToLane, offer } from "./claim-order.js";
import { collectPage, FifoTimeQueue, OrderedRows, parsePageStart, type Rows } from "./collections.js";
import type { MemoryEndpoint } from "./records.js";
import { expire, freeRemoved } from "./retention.js";
import {
  countFailing,
  countsAsFailing,
  dropIfEmpty,
  getAccount,
  getEndpoint,
  getTouchedAt,
  type MemoryStoreContext,
  memoryFull,
  type State,
  scoped,
  updateRecord,
} from "./state.js";

/** Returns a frozen copy. */
const freezeRecord = (record: WebhookRecord): WebhookRecord =>
  Object.freeze({
    ...record,
    eventTypes: record.eventTypes && Object.freeze([...record.eventTypes]),
    ...pickDetails(record),
  });

const countEnabled = (endpoints: Rows<MemoryEndpoint>): number =>
  [...endpoints.after(0)].filter(({ record }) => record.status === "ENABLED").length;

type CreateRequest = Parameters<WebhookStore["createWebhook"]>[0];
type CreateResult = Awaited<ReturnType<WebhookStore["createWebhook"]>>;
type UpdateRequest = Parameters<WebhookStore["updateWebhook"]>[0];

/** Finds the result of an earlier create with the same idempotency key or id. */
function findEarlierCreate(
  state: State,
  { webhook, idempotency, now }: CreateRequest,
): CreateResult | undefined {
  const replay = idempotency && state.replays.get(scoped(webhook.account, idempotency.key), now);
  if (replay) {
    return replay.digest === idempotency.digest
      ? { result: "replayed", webhook: replay.webhook }
      : { result: "key_reused" };
  }
  const existing = state.endpoints.get(webhook.id);
  return existing && { result: "created", webhook: existing.record };
}

/** Returns the limit of its account that a new webhook would exceed. */
function findExceededLimit(
  others: Rows<MemoryEndpoint> | undefined,
  { webhook, enabledLimit, accountLimit }: CreateRequest,
): "account_limit" | "enabled_limit" | undefined {
  if (others === undefined) return undefined;
  if (others.size >= accountLimit) return "account_limit";
  return webhook.status === "ENABLED" && countEnabled(others) >= enabledLimit ? "enabled_limit" : undefined;
}

function addEndpoint(state: State, webhook: WebhookRecord): MemoryEndpoint {
  const account = getAccount(state, webhook.account);
  const endpoint: MemoryEndpoint = {
    id: webhook.id,
    record: freezeRecord(webhook),
    account,
    order: ++state.order,
    deliveries: new OrderedRows(),
    queue: new FifoTimeQueue(),
    inFlight: 0,
    slowStart: null,
    claimed: null,
    lane: "slow",
    counts: { pending: 0, delivered: 0, failed: 0, withheld: 0 },
    failedTests: 0,
    filtered: 0,
    recent: null,
    pastHours: [],
    lastAttempt: null,
    isRemoved: false,
  };
  account.endpoints.add(endpoint);
  state.endpoints.set(webhook.id, endpoint);
  countFailing(state, account, countsAsFailing(endpoint.record));
  return endpoint;
}

/** The fields that a user's change sets, except those that follow from a new status or URL. */
const changeFields = (
  record: WebhookRecord,
  { url, status, eventTypes, rotation, subscriberId }: UpdateRequest["change"],
  now: number,
): Partial<WebhookRecord> => ({
  url: url ?? record.url,
  status: status ?? record.status,
  eventTypes: eventTypes === undefined ? record.eventTypes : eventTypes && Object.freeze([...eventTypes]),
  ...(rotation && rotateSecret(record, rotation, now)),
  subscriberId: subscriberId ?? record.subscriberId,
});

const HEALTHY = { failingSince: null, warnedAt: null, noticeAt: null } as const;

/** Applies a change, with its effects on the health and the queue of the endpoint. */
function changeEndpoint(
  context: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  { change, now }: UpdateRequest,
  isEnabled: boolean,
): void {
  const { record } = endpoint;
  const isDisabled = change.status === "DISABLED" && record.status === "ENABLED";
  const isMoved = change.url !== undefined && change.url !== record.url;
  const startsAgain = isEnabled || isMoved;
  endpoint.record = changeDetails(record, change);
  updateRecord(context.state, endpoint, {
    updatedAt: getTouchedAt(endpoint, now),
    ...changeFields(record, change, now),
    ...(startsAgain && { generation: record.generation + 1 }),
    ...((startsAgain || isDisabled) && HEALTHY),
  });
  if (startsAgain) {
    endpoint.slowStart = null;
    moveToLane(context.state, endpoint, "slow");
  }
  if (startsAgain || change.perSecond !== undefined) offer(context, endpoint, now);
}

/** Removes an endpoint. Its deliveries are freed later. */
export function removeEndpoint(state: State, endpoint: MemoryEndpoint): void {
  for (const line of Object.values(state.ready)) line.delete(endpoint);
  state.notices.delete(endpoint);
  state.endpoints.delete(endpoint.id);
  endpoint.account.endpoints.delete(endpoint);
  endpoint.isRemoved = true;
  countFailing(state, endpoint.account, -countsAsFailing(endpoint.record));
  state.removals.set(endpoint, 0);
}

export function createMemoryRegistry(context: MemoryStoreContext): Omit<RegistrationStore, "newWebhookId"> {
  const { state } = context;
  return {
    async createWebhook(request) {
      const { webhook, idempotency, now } = request;
      expire(state, now);
      const earlier = findEarlierCreate(state, request);
      if (earlier !== undefined) return earlier;
      const limit = findExceededLimit(state.accounts.get(webhook.account)?.endpoints, request);
      if (limit !== undefined) return { result: limit };
      if (state.endpoints.size >= state.limits.webhooks) throw memoryFull(state, "webhooks");
      const { record } = addEndpoint(state, webhook);
      if (idempotency)
        state.replays.set(scoped(webhook.account, idempotency.key), { ...idempotency, webhook: record });
      return { result: "created", webhook: record };
    },

    async getWebhook(id) {
      return state.endpoints.get(id)?.record;
    },

    async listWebhooks({ account, cursor, limit }) {
      const after = parsePageStart(cursor) ?? 0;
      const oldestFirst = state.accounts.get(account)?.endpoints.after(after) ?? [];
      const { rows, next } = collectPage(oldestFirst, limit);
      return { webhooks: rows.map(({ record }) => record), next };
    },

    async updateWebhook(request) {
      const { id, account, change, owner, enabledLimit } = request;
      const endpoint = getEndpoint(state, account, id);
      if (!endpoint) return { result: "not_found" };
      const { subscriberId, status } = endpoint.record;
      if (owner !== undefined && owner !== subscriberId) return { result: "not_owner" };
      const isEnabled = change.status === "ENABLED" && status === "DISABLED";
      if (isEnabled && countEnabled(endpoint.account.endpoints) >= enabledLimit)
        return { result: "enabled_limit" };
      changeEndpoint(context, endpoint, request, isEnabled);
      return { result: "updated", webhook: endpoint.record };
    },

    async removeWebhook({ id, account, now }) {
      const endpoint = getEndpoint(state, account, id);
      if (!endpoint) return false;
      removeEndpoint(state, endpoint);
      freeRemoved(context, now);
      dropIfEmpty(state, endpoint.account);
      return true;
    },
  };
}
