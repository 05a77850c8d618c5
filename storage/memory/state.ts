/** The state of a memory storage: its records, and the structures that point at them. */

import type { Clock } from "../../src/core/clock.js";
import { createTimeQueue, type TimeQueue } from "../../src/core/time-queue.js";
import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/store/records.js";
import type { Lane, Retention, WebhookRecord } from "../../src/webhooks/store.js";
import { FifoTimeQueue } from "./fifo-time-queue.js";
import type {
  Account,
  AuditLogs,
  Lease,
  MemoryDelivery,
  MemoryEndpoint,
  MemoryEvent,
  Remembered,
  Replay,
} from "./records.js";
import { rows } from "./rows.js";

export interface MemoryLimits {
  readonly webhooks: number;
  readonly pending: number;
  readonly pendingPerAccount: number;
  readonly bytes: number;
  readonly rememberedIds: number;
}

export interface State {
  readonly limits: MemoryLimits;
  readonly accounts: Map<string, Account>;
  readonly endpoints: Map<string, MemoryEndpoint>;
  /** Endpoints with a delivery that may be claimed, by when. */
  readonly ready: Readonly<Record<Lane, TimeQueue<MemoryEndpoint>>>;
  /** Leases that have deliveries, by when they expire. */
  readonly leases: TimeQueue<Lease>;
  /**
   * Leased deliveries by id. Most settlements find their delivery here, for any size of the log.
   */
  readonly leased: Map<string, MemoryDelivery>;
  readonly notices: TimeQueue<MemoryEndpoint>;
  /** Completed events, by when they are freed. */
  readonly endedEvents: FifoTimeQueue<MemoryEvent>;
  /** By account and event id. */
  readonly remembered: ExpiringMap<Remembered>;
  /** By account and idempotency key. */
  readonly replays: ExpiringMap<Replay>;
  /**
   * Removed endpoints whose deliveries are still to be freed, with the order of the last one that
   * was freed.
   */
  readonly removals: Map<MemoryEndpoint, number>;
  readonly audit: AuditLogs;
  readonly watchers: Set<(at: number) => void>;
  /**
   * The storage's time at which the monotonic clock stood at 0; set when the time is first read.
   */
  epoch: number | undefined;
  pending: number;
  /** Pending and completed, including those of removed endpoints until they are freed. */
  deliveries: number;
  /** The size of events, deliveries and attempts, pending and completed. */
  bytes: number;
  /** The part of `bytes` in completed events, which are freed to make room for new ones. */
  endedBytes: number;
  order: number;
}

/**
 * The context that all parts of one webhook store share: the records, which other stores use too,
 * and its settings.
 */
export interface MemoryStoreContext {
  readonly state: State;
  readonly perEndpoint: number;
  /** `null` for any number. */
  readonly perSecond: number | null;
  readonly retention: Retention;
}

export function createState(limits: MemoryLimits): State {
  return {
    limits,
    accounts: new Map(),
    endpoints: new Map(),
    ready: { fast: createTimeQueue(), slow: createTimeQueue() },
    leases: createTimeQueue(),
    leased: new Map(),
    notices: createTimeQueue(),
    endedEvents: new FifoTimeQueue(),
    remembered: createExpiringMap(limits.rememberedIds),
    replays: createExpiringMap(limits.webhooks),
    removals: new Map(),
    audit: { logs: new Map(), size: 0 },
    watchers: new Set(),
    epoch: undefined,
    pending: 0,
    deliveries: 0,
    bytes: 0,
    endedBytes: 0,
    order: 0,
  };
}

/** Returns the key for a map over all accounts, whose names may hold any character. */
export const scoped = (account: string, id: string): string => `${account.length} ${account}${id}`;

export function getAccount(state: State, name: string): Account {
  let account = state.accounts.get(name);
  if (!account) {
    account = { name, endpoints: rows(), events: rows(), ended: new FifoTimeQueue(), pending: 0 };
    state.accounts.set(name, account);
  }
  return account;
}

/** Returns the endpoint if it belongs to this account. */
export function getEndpoint(state: State, account: string, id: string): MemoryEndpoint | undefined {
  const endpoint = state.endpoints.get(id);
  return endpoint?.account.name === account ? endpoint : undefined;
}

/**
 * Formats the id of a delivery when it is needed: stored ids, and a map of them, would take as much
 * of the heap as the deliveries.
 */
export const deliveryId = ({ endpoint, event, serial }: MemoryDelivery): string =>
  formatDeliveryId({ webhookId: endpoint.id, eventId: event.id, serial });

export function findDelivery(state: State, id: string): MemoryDelivery | undefined {
  const key = parseDeliveryId(id);
  if (key === undefined) return undefined;
  const endpoint = state.endpoints.get(key.webhookId);
  const event = endpoint?.account.events.get(key.eventId);
  return event?.deliveries.find((own) => own.endpoint === endpoint && own.serial === key.serial);
}

/** Deletes an account that has neither webhooks nor events. */
export function dropIfEmpty(state: State, account: Account): void {
  if (account.endpoints.size === 0 && account.events.size === 0) state.accounts.delete(account.name);
}

export function notifyWorkers(state: State, at: number): void {
  for (const listener of state.watchers) listener(at);
}

/**
 * The wall clock's time at which the monotonic clock stood at 0; `undefined` before the first read.
 */
export interface Epoch {
  epoch: number | undefined;
}

/** Returns whole epoch ms. Setting the wall clock must not make retries due, or leases expire. */
export function readTime(state: Epoch, clock: Clock): number {
  state.epoch ??= clock.now() - clock.monotonic();
  return Math.round(state.epoch + clock.monotonic());
}

/** Sets fields of the record. A change of the health alone keeps `updatedAt`. */
export function updateRecord(state: State, endpoint: MemoryEndpoint, fields: Partial<WebhookRecord>): void {
  endpoint.record = Object.freeze({ ...endpoint.record, ...fields });
  const { noticeAt } = endpoint.record;
  if (noticeAt === null) state.notices.delete(endpoint);
  else {
    state.notices.set(endpoint, noticeAt);
    notifyWorkers(state, noticeAt);
  }
}

/**
 * The time of a change that users see. Each is later than the one before, also within a
 * millisecond.
 */
export const getTouchedAt = ({ record }: MemoryEndpoint, now: number): number =>
  Math.max(now, record.updatedAt + 1);

/** A bounded map whose entries expire in about the order in which they were set. */
export interface ExpiringMap<T> {
  readonly size: number;
  /** Returns the value of `key`, unless it has expired. */
  get(key: string, now: number): T | undefined;
  /** Sets `key`. If the map is full, the oldest entry is removed. */
  set(key: string, value: T): void;
  /**
   * Removes at most `most` expired entries, oldest first. An entry that was set out of order is
   * removed after those before it.
   */
  dropExpired(now: number, most: number): void;
}

export function createExpiringMap<T extends { readonly expiresAt: number }>(max: number): ExpiringMap<T> {
  const entries = new Map<string, T>();
  // A new iterator steps over everything deleted since the map was last rehashed. So one iterator
  // is kept, and only moves forward.
  let order = entries.keys();
  let head: string | undefined;

  const oldest = (): string | undefined => {
    if (head !== undefined || entries.size === 0) return head;
    let next = order.next();
    if (next.done) {
      order = entries.keys();
      next = order.next();
    }
    head = next.value;
    return head;
  };
  const remove = (key: string): void => {
    entries.delete(key);
    if (key === head) head = undefined;
  };

  return {
    get size() {
      return entries.size;
    },
    get(key, now) {
      const value = entries.get(key);
      return value && value.expiresAt > now ? value : undefined;
    },
    set(key, value) {
      remove(key);
      const first = oldest();
      if (entries.size >= max && first !== undefined) remove(first);
      entries.set(key, value);
    },
    dropExpired(now, most) {
      for (let left = most; left > 0; left--) {
        const key = oldest();
        const value = key === undefined ? undefined : entries.get(key);
        if (key === undefined || !value || value.expiresAt > now) return;
        remove(key);
      }
    },
  };
}
