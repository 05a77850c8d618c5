/**
 * The records of the memory storage, and the structures that point at them. Only this folder sees
 * them: everything that leaves it is a copy or frozen.
 */

import { createTimeQueue, type TimeQueue } from "../../src/core/time-queue.js";
import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type {
  Attempt,
  DeliveryState,
  EventRecord,
  Lane,
  Retention,
  WebhookRecord,
} from "../../src/webhooks/store.js";
import { createExpiringMap, type ExpiringMap } from "./expiring-map.js";
import { FifoTimeQueue, type Queued } from "./fifo-time-queue.js";
import { type OrderedRows, type Rows, rows } from "./rows.js";

/**
 * Queue entry, claim and log record in one object. It is in the queue of its endpoint, or in that
 * of its lease, until it is completed.
 */
export interface MemoryDelivery extends Queued<MemoryDelivery> {
  /**
   * 0 for the delivery created by emitting, n for the n-th later delivery of the same event to the
   * same webhook.
   */
  readonly serial: number;
  /** Grows with each delivery: the order of pages. */
  readonly order: number;
  readonly endpoint: MemoryEndpoint;
  readonly event: MemoryEvent;
  readonly createdAt: number;
  state: DeliveryState;
  reason: string | null;
  startedAt: number | null;
  step: number;
  dueAt: number;
  endedAt: number | null;
  attempts: readonly Attempt[];
  postponed: number;
  crashes: number;
  /** When the extra attempt that a user requested is due; `null` without such a request. */
  extraAt: number | null;
  isRecovered: boolean;
  lease: Lease | null;
}

/**
 * The deliveries that one claim call leased. All have the same expiry, so the lease has one entry
 * in the queue of leases.
 */
export interface Lease {
  readonly token: string;
  /** The deliveries that are still leased. */
  readonly deliveries: FifoTimeQueue<MemoryDelivery>;
}

/** A webhook with its deliveries, its slots and its turn. */
export interface MemoryEndpoint {
  readonly id: string;
  /** Frozen; replaced as a whole by each change. */
  record: WebhookRecord;
  readonly account: Account;
  readonly order: number;
  readonly deliveries: OrderedRows<MemoryDelivery>;
  /** Pending deliveries that are not leased, by when they may be claimed. */
  readonly queue: FifoTimeQueue<MemoryDelivery>;
  inFlight: number;
  /** How many may be in flight during a slow start; `null` means `perEndpoint`. */
  window: number | null;
  lane: Lane;
  /** Counts of `deliveries` by state. */
  readonly counts: Record<DeliveryState, number>;
  /** Without its excerpt, which may be long. */
  lastAttempt: Attempt | null;
  isRemoved: boolean;
}

export interface MemoryEvent extends Queued<MemoryEvent> {
  readonly id: string;
  readonly order: number;
  readonly record: EventRecord;
  readonly account: Account;
  /** The counted size of the event, its deliveries and their attempts. */
  bytes: number;
  readonly storedAt: number;
  /** Until when its id must be remembered, even if the event is freed before. */
  readonly rememberUntil: number;
  /** In the order of their creation. They are kept as long as the event. */
  deliveries: MemoryDelivery[];
  /** The webhooks it went to when it was emitted. */
  readonly receivers: readonly string[];
  /** A test of one webhook: no other webhook receives or recovers it. */
  readonly isTest: boolean;
  /** How many of `deliveries` are pending. */
  open: number;
  /**
   * Its entry in the queue of its account while it has no open delivery. The queue of the storage
   * holds the event itself.
   */
  ended: CompletedEvent | null;
}

/**
 * An item is in one queue at a time, so an event has a separate entry for the queue of its account.
 */
export interface CompletedEvent extends Queued<CompletedEvent> {
  readonly event: MemoryEvent;
}

export interface Account {
  readonly name: string;
  readonly endpoints: Rows<MemoryEndpoint>;
  readonly events: Rows<MemoryEvent>;
  /** The completed ones of `events`, the one that was completed first in front. */
  readonly ended: FifoTimeQueue<CompletedEvent>;
  pending: number;
}

/** A remembered id of an event that is not stored any more. */
export interface Remembered {
  readonly digest: string;
  readonly receivers: readonly string[];
  readonly expiresAt: number;
}

export interface Replay {
  readonly digest: string;
  readonly webhook: WebhookRecord;
  readonly expiresAt: number;
}

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
    watchers: new Set(),
    epoch: undefined,
    pending: 0,
    deliveries: 0,
    bytes: 0,
    endedBytes: 0,
    order: 0,
  };
}

/**
 * Returns the key for a map over all accounts. The name of an account may hold any character but
 * NUL.
 */
export const scoped = (account: string, id: string): string => `${account}\u0000${id}`;

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

/** True if a delivery needs no further attempt: it was received, or must not be sent. */
export const isDone = ({ state }: MemoryDelivery): boolean => state === "delivered" || state === "withheld";

/** Deletes an account that has neither webhooks nor events. */
export function dropIfEmpty(state: State, account: Account): void {
  if (account.endpoints.size === 0 && account.events.size === 0) state.accounts.delete(account.name);
}

export function notifyWorkers(state: State, at: number): void {
  for (const listener of state.watchers) listener(at);
}
