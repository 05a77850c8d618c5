/** The webhook store on the heap of this process. */

import { randomUUID } from "node:crypto";
import type { Clock } from "../../src/clock.js";
import { PostbellError } from "../../src/errors.js";
import { timeQueue } from "../../src/time-queue.js";
import { formatDeliveryId } from "../../src/webhooks/delivery-id.js";
import type {
  DeliveryRecord,
  EndpointReport,
  SettleResult,
  WebhookRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { subscribes } from "../../src/webhooks/subscription.js";
import { end, endEvent, expire, forget, makeRoom, reopen } from "./retention.js";
import { claimDue, enqueue, moveToLane, offer, releaseLease, take } from "./schedule.js";
import {
  accountOf,
  type Delivery,
  dropIfEmpty,
  type Endpoint,
  isDone,
  notify,
  type State,
  type StoredEvent,
  scoped,
} from "./state.js";

/** Attempts kept of one delivery; a schedule has 14, what is more comes from `resend`. */
const MAX_ATTEMPTS_KEPT = 50;

/** A copy that nobody can change. */
const frozenRecord = (record: WebhookRecord): WebhookRecord =>
  Object.freeze({ ...record, eventTypes: record.eventTypes && Object.freeze([...record.eventTypes]) });

const isPending = (delivery: Delivery): boolean => delivery.state === "pending";

function pageStart(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const order = Number(cursor);
  if (!/^[0-9]{1,15}$/.test(cursor) || !Number.isSafeInteger(order)) {
    throw new PostbellError("invalid_argument", "cursor must be the `next` of the page before.", {
      field: "cursor",
    });
  }
  return order;
}

/** What emitting an event returns. */
const firstDeliveries = (
  eventId: string,
  receivers: readonly string[],
): { readonly id: string; readonly webhookId: string }[] =>
  receivers.map((webhookId) => ({ id: formatDeliveryId({ webhookId, eventId, serial: 0 }), webhookId }));

function page<T extends { readonly order: number }>(
  rows: readonly T[],
  limit: number,
): { rows: readonly T[]; next: string | null } {
  const shown = rows.slice(0, limit);
  return { rows: shown, next: rows.length > limit ? String(shown.at(-1)?.order) : null };
}

const toRecord = (delivery: Delivery): DeliveryRecord => ({
  id: delivery.id,
  webhookId: delivery.endpoint.record.id,
  eventId: delivery.event.record.id,
  type: delivery.event.record.type,
  state: delivery.state,
  reason: delivery.reason,
  createdAt: delivery.createdAt,
  startedAt: delivery.startedAt,
  step: delivery.step,
  dueAt: isPending(delivery) ? delivery.dueAt : null,
  endedAt: delivery.endedAt,
  attempts: delivery.attempts,
});

export function createWebhookStore(state: State, clock: Clock): WebhookStore {
  const { limits } = state;
  /** The cap that the last caller named; every service on one storage has the same. */
  let perEndpoint = Number.MAX_SAFE_INTEGER;

  const full = (bound: keyof typeof limits): PostbellError =>
    new PostbellError(
      "storage_full",
      `The memory storage has reached limits.${bound} (${limits[bound]}); nothing was stored. Raise it, or try again later.`,
      { field: `limits.${bound}` },
    );

  const enabledCount = (endpoint: Endpoint["account"]): number =>
    [...endpoint.endpoints.values()].filter(({ record }) => record.status === "ENABLED").length;

  const change = (endpoint: Endpoint, now: number, fields: Partial<WebhookRecord>): void => {
    const { record } = endpoint;
    endpoint.record = Object.freeze({ ...record, updatedAt: Math.max(now, record.updatedAt + 1), ...fields });
    setNotice(endpoint);
  };

  const setNotice = ({ record }: Endpoint): void => {
    const endpoint = state.endpoints.get(record.id);
    if (!endpoint) return;
    if (record.noticeAt === null) state.notices.delete(endpoint);
    else {
      state.notices.set(endpoint, record.noticeAt);
      notify(state, record.noticeAt);
    }
  };

  /** Adds a delivery of `event`, due now. The caller has checked that there is room. */
  const addDelivery = (endpoint: Endpoint, event: StoredEvent, serial: number, now: number): Delivery => {
    const id = formatDeliveryId({ webhookId: endpoint.record.id, eventId: event.record.id, serial });
    const delivery: Delivery = {
      id,
      serial,
      order: ++state.order,
      endpoint,
      event,
      createdAt: now,
      state: "pending",
      reason: null,
      startedAt: null,
      step: 0,
      dueAt: now,
      endedAt: null,
      attempts: Object.freeze([]),
      postponed: 0,
      crashes: 0,
      extraAt: null,
      isRecovered: false,
      token: null,
    };
    endpoint.deliveries.set(id, delivery);
    event.deliveries.set(id, delivery);
    event.open += 1;
    reopen(state, event);
    endpoint.account.pending += 1;
    state.pending += 1;
    enqueue(delivery, now);
    offer(state, endpoint, now, perEndpoint);
    return delivery;
  };

  const checkPending = (account: { readonly pending: number }, more: number): void => {
    if (state.pending + more > limits.pending) throw full("pending");
    if (account.pending + more > limits.pendingPerAccount) throw full("pendingPerAccount");
  };

  /** Deliveries of one event to one endpoint, in the order of their making. */
  const deliveriesOf = (event: StoredEvent, endpoint: Endpoint): readonly Delivery[] =>
    [...event.deliveries.values()].filter((delivery) => delivery.endpoint === endpoint);

  const nextSerial = (event: StoredEvent, endpoint: Endpoint): number => {
    const past = event.past?.get(endpoint.record.id)?.serial ?? -1;
    return Math.max(past, ...deliveriesOf(event, endpoint).map(({ serial }) => serial)) + 1;
  };

  /** Whether `endpoint` should have `event`, has not got it, and is not about to. */
  const isLost = (event: StoredEvent, endpoint: Endpoint): boolean => {
    if (event.past?.get(endpoint.record.id)?.isDone) return false;
    if (!subscribes(endpoint.record.eventTypes, event.record.type)) return false;
    return deliveriesOf(event, endpoint).every(({ state: own }) => own === "failed");
  };

  const findDelivery = (id: string): Delivery | undefined => {
    const endpoint = state.endpoints.get(id.slice(0, 36));
    return endpoint?.deliveries.get(id);
  };

  const report = (endpoint: Endpoint, seen: EndpointReport, now: number): void => {
    if (seen.generation !== endpoint.record.generation) return;
    moveToLane(state, endpoint, seen.lane);
    if (!seen.ok) endpoint.window = 1;
    else if (endpoint.window !== null) {
      endpoint.window = endpoint.window + 1 >= perEndpoint ? null : endpoint.window + 1;
    }
    const { status, failingSince, updatedAt } = endpoint.record;
    if (status !== "ENABLED") return;
    if (seen.ok && failingSince !== null) {
      change(endpoint, now, { failingSince: null, warnedAt: null, noticeAt: null, updatedAt });
    } else if (!seen.ok && failingSince === null) {
      change(endpoint, now, { failingSince: seen.at, warnedAt: null, noticeAt: seen.noticeAt, updatedAt });
    }
  };

  const store: WebhookStore = {
    maxSleepMs: 3_600_000,
    now: () => clock.now(),
    watch(listener) {
      const watcher = (at: number): void => listener(at);
      state.watchers.add(watcher);
      return () => {
        state.watchers.delete(watcher);
      };
    },

    newWebhookId: () => randomUUID(),

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
        throw full("webhooks");
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
      change(endpoint, now, {
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
        offer(state, endpoint, now, perEndpoint);
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

    async append({ event, rememberMs, retention, now, claim }) {
      expire(state, now);
      if (claim) perEndpoint = claim.perEndpoint;
      const key = scoped(event.account, event.id);
      const known = state.remembered.get(key, now);
      if (known) {
        if (known.digest !== event.digest) return { result: "conflict" };
        return { result: "duplicate", deliveries: firstDeliveries(event.id, known.receivers), claims: [] };
      }
      const account = accountOf(state, event.account);
      // An id outlives its marker while the event is kept: an open delivery never gets a twin.
      const kept = account.events.get(event.id);
      if (kept) {
        if (kept.record.digest !== event.digest) return { result: "conflict" };
        return { result: "duplicate", deliveries: firstDeliveries(event.id, kept.receivers), claims: [] };
      }
      const receivers = [...account.endpoints.values()].filter(
        ({ record }) => record.status === "ENABLED" && subscribes(record.eventTypes, event.type),
      );
      const bytes = Buffer.byteLength(event.payload);
      const isKept = receivers.length > 0 || (account.endpoints.size > 0 && retention.ms > 0);
      try {
        checkPending(account, receivers.length);
        if (isKept && !makeRoom(state, bytes)) throw full("bytes");
      } finally {
        dropIfEmpty(state, account);
      }
      const receiverIds = receivers.map(({ record: { id } }) => id);
      const deliveries = firstDeliveries(event.id, receiverIds);
      state.remembered.set(key, {
        digest: event.digest,
        receivers: receiverIds,
        expiresAt: now + rememberMs,
      });
      if (!isKept) return { result: "stored", deliveries, claims: [] };

      const stored: StoredEvent = {
        order: ++state.order,
        record: Object.freeze({ ...event }),
        account,
        bytes,
        storedAt: now,
        deliveries: new Map(),
        receivers: receiverIds,
        past: null,
        open: 0,
      };
      account.events.set(event.id, stored);
      state.bytes += bytes;
      const room = claim ? { ...claim.room } : { fast: 0, slow: 0 };
      const claims = receivers.flatMap((endpoint) => {
        addDelivery(endpoint, stored, 0, now);
        if (!claim || room[endpoint.lane] === 0) return [];
        const taken = take(state, endpoint, claim, 1);
        room[endpoint.lane] -= taken.length;
        return taken;
      });
      if (receivers.length === 0) endEvent(state, stored, now, retention);
      else if (claims.length < receivers.length) notify(state, now);
      return { result: "stored", deliveries, claims };
    },

    async claim(request) {
      perEndpoint = request.perEndpoint;
      expire(state, request.now);
      return claimDue(state, request);
    },

    async settle({
      id,
      token,
      now,
      outcome,
      startedAt,
      attempt,
      endpoint: seen,
      perEndpoint: cap,
      retention,
    }): Promise<SettleResult> {
      perEndpoint = cap;
      const delivery = findDelivery(id);
      if (!delivery || isDone(delivery)) return "gone";
      if (outcome.state !== "delivered") {
        if (!isPending(delivery)) return "gone";
        if (delivery.token !== token) return "stale";
      }
      const { endpoint } = delivery;
      releaseLease(state, delivery);
      delivery.startedAt = startedAt ?? delivery.startedAt;
      delivery.isRecovered = false;
      if (attempt) {
        delivery.attempts = Object.freeze(
          [...delivery.attempts, Object.freeze({ ...attempt })].slice(-MAX_ATTEMPTS_KEPT),
        );
      }
      if (seen) report(endpoint, seen, now);
      if (outcome.state === "pending") {
        delivery.step = outcome.step;
        delivery.dueAt = outcome.dueAt;
        delivery.extraAt = outcome.extraAt ?? null;
        delivery.postponed = outcome.postponed;
        delivery.crashes = outcome.crashes;
        enqueue(delivery, now);
        notify(state, delivery.extraAt ?? delivery.dueAt);
      } else {
        end(state, delivery, { reason: null, ...outcome }, now, retention);
      }
      offer(state, endpoint, now, perEndpoint);
      return "settled";
    },

    async getDelivery(id) {
      const delivery = findDelivery(id);
      return delivery && toRecord(delivery);
    },

    async listDeliveries({ webhookId, state: wanted, type, cursor, limit }) {
      const before = pageStart(cursor) ?? Number.POSITIVE_INFINITY;
      const matching = [...(state.endpoints.get(webhookId)?.deliveries.values() ?? [])]
        .filter(
          (delivery) =>
            delivery.order < before &&
            (wanted === undefined || delivery.state === wanted) &&
            (type === undefined || delivery.event.record.type === type),
        )
        .reverse();
      const { rows, next } = page(matching, limit);
      return { deliveries: rows.map(toRecord), next };
    },

    async resend({ id, now }) {
      expire(state, now);
      const asked = findDelivery(id);
      if (!asked) return undefined;
      const { endpoint, event } = asked;
      const open = deliveriesOf(event, endpoint).find(isPending);
      if (open) {
        if (open.token === null && (open.extraAt ?? open.dueAt) > now) {
          open.extraAt = now;
          enqueue(open, now);
          offer(state, endpoint, now, perEndpoint);
          notify(state, now);
        }
        return open.id;
      }
      checkPending(endpoint.account, 1);
      const made = addDelivery(endpoint, event, nextSerial(event, endpoint), now);
      notify(state, now);
      return made.id;
    },

    async recover({ webhookId, since, now, cursor, limit }) {
      expire(state, now);
      const endpoint = state.endpoints.get(webhookId);
      if (!endpoint) return undefined;
      const { account } = endpoint;
      const after = pageStart(cursor) ?? 0;
      const kept = [...account.events.values()].filter(
        ({ storedAt, order }) => storedAt >= since && order > after,
      );
      const { rows, next } = page(kept, limit);
      const lost = rows.filter((event) => isLost(event, endpoint));
      checkPending(account, lost.length);
      for (const event of lost) addDelivery(endpoint, event, nextSerial(event, endpoint), now);
      if (lost.length > 0) notify(state, now);
      return { count: lost.length, next };
    },

    async claimNotices({ now, leaseUntil, limit }) {
      const webhooks: WebhookRecord[] = [];
      while (webhooks.length < limit && (state.notices.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
        const endpoint = state.notices.head();
        if (!endpoint) break;
        const { updatedAt } = endpoint.record;
        change(endpoint, now, { noticeAt: leaseUntil, updatedAt });
        webhooks.push(endpoint.record);
      }
      return { webhooks, nextAt: state.notices.headAt() ?? null };
    },

    async settleNotice({ id, failingSince, from, status, warnedAt, noticeAt, now }) {
      const endpoint = state.endpoints.get(id);
      if (!endpoint || endpoint.record.failingSince !== failingSince || endpoint.record.status !== from)
        return false;
      const { updatedAt } = endpoint.record;
      change(endpoint, now, { status, warnedAt, noticeAt, ...(status === from ? { updatedAt } : {}) });
      return true;
    },

    async stats() {
      const events = [...state.accounts.values()].reduce((sum, account) => sum + account.events.size, 0);
      const deliveries = [...state.endpoints.values()].reduce(
        (sum, { deliveries: own }) => sum + own.size,
        0,
      );
      return {
        webhooks: state.endpoints.size,
        events,
        pending: state.pending,
        leased: state.leases.size,
        ended: deliveries - state.pending,
        bytes: state.bytes,
      };
    },
  };
  return Object.freeze(store);
}
