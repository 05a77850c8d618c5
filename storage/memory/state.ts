/** The records of the memory storage, and which structures point at them. Only this folder sees them: what leaves it is a copy or frozen. */

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

/** Queue entry, claim and log record in one object. It stands in the queue of its endpoint, or in that of its lease, until it is completed. */
export interface MemoryDelivery extends Queued<MemoryDelivery> {
  /** 0 for the one made by emitting, n for the n-th one made of the same event for the same webhook later. */
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
  /** When the extra attempt that a user asked for is due; `null` where none is owed. */
  extraAt: number | null;
  isRecovered: boolean;
  lease: Lease | null;
}

/** What one claim call leased: all of it until the same time, so one entry in the queue of leases stands for it. */
export interface Lease {
  readonly token: string;
  /** Those still under it. */
  readonly deliveries: FifoTimeQueue<MemoryDelivery>;
}

/** A webhook with what waits for it. */
export interface MemoryEndpoint {
  readonly id: string;
  /** Frozen; replaced as a whole by each change. */
  record: WebhookRecord;
  readonly account: Account;
  readonly order: number;
  readonly deliveries: OrderedRows<MemoryDelivery>;
  /** Pending deliveries that are not under lease, by when they may be handed out. */
  readonly queue: FifoTimeQueue<MemoryDelivery>;
  inFlight: number;
  /** How many may be in flight while the endpoint is recovering from a failure; `null`: as many as `perEndpoint` says. */
  window: number | null;
  lane: Lane;
  /** Of `deliveries`, by state. */
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
  /** What the books say it holds, with its deliveries and their attempts. */
  bytes: number;
  readonly storedAt: number;
  /** Until when its id must be remembered, also where it is freed before. */
  readonly rememberUntil: number;
  /** In the order of their making. They are kept as long as the event. */
  deliveries: MemoryDelivery[];
  /** The webhooks it went to when it was emitted. */
  readonly receivers: readonly string[];
  /** A test of one webhook, which nobody else gets and nobody recovers. */
  readonly isTest: boolean;
  /** How many of `deliveries` are pending. */
  open: number;
  /** Its entry in the queue of its account, while it has no open delivery; in that of the storage it stands itself. */
  ended: CompletedEvent | null;
}

/** An item stands in one queue at a time, so an event has an entry of its own in that of its account. */
export interface CompletedEvent extends Queued<CompletedEvent> {
  readonly event: MemoryEvent;
}

export interface Account {
  readonly name: string;
  readonly endpoints: Rows<MemoryEndpoint>;
  readonly events: Rows<MemoryEvent>;
  /** Those of `events` without an open delivery, the one that ended first in front. */
  readonly ended: FifoTimeQueue<CompletedEvent>;
  pending: number;
}

/** What is remembered of an emitted id where its event is not kept. */
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
  /** Endpoints with a delivery that may be handed out, by when. */
  readonly ready: Readonly<Record<Lane, TimeQueue<MemoryEndpoint>>>;
  /** Those with a delivery under them, by when they run out. */
  readonly leases: TimeQueue<Lease>;
  /** What is under lease, by id: most of what is settled is found here, whatever the log holds. */
  readonly leased: Map<string, MemoryDelivery>;
  readonly notices: TimeQueue<MemoryEndpoint>;
  /** Those without an open delivery, by when they are freed. */
  readonly endedEvents: FifoTimeQueue<MemoryEvent>;
  /** By account and event id. */
  readonly remembered: ExpiringMap<Remembered>;
  /** By account and idempotency key. */
  readonly replays: ExpiringMap<Replay>;
  /** Removed endpoints whose deliveries are still to be freed, with the order of the last one that was. */
  readonly removals: Map<MemoryEndpoint, number>;
  readonly watchers: Set<(at: number) => void>;
  /** What the storage's time adds to a monotonic clock; set by the first look at it. */
  epoch: number | undefined;
  pending: number;
  /** Pending and kept, also of removed endpoints until they are freed. */
  deliveries: number;
  /** Of events, deliveries and attempts, pending and kept. */
  bytes: number;
  /** The part of `bytes` in events without an open delivery, which gives way to new ones. */
  endedBytes: number;
  order: number;
}

/** One service on the storage: the records that it shares with the others, and what it asked for. */
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

/** Key of a map over all accounts. An account may hold any character but NUL. */
export const scoped = (account: string, id: string): string => `${account}\u0000${id}`;

export function getAccount(state: State, name: string): Account {
  let account = state.accounts.get(name);
  if (!account) {
    account = { name, endpoints: rows(), events: rows(), ended: new FifoTimeQueue(), pending: 0 };
    state.accounts.set(name, account);
  }
  return account;
}

/** A webhook of this account. */
export function getEndpoint(state: State, account: string, id: string): MemoryEndpoint | undefined {
  const endpoint = state.endpoints.get(id);
  return endpoint?.account.name === account ? endpoint : undefined;
}

/** Made when it is asked for: a text for each delivery, and a map of them, would take as much of the heap as the deliveries. */
export const deliveryId = ({ endpoint, event, serial }: MemoryDelivery): string =>
  formatDeliveryId({ webhookId: endpoint.id, eventId: event.id, serial });

export function findDelivery(state: State, id: string): MemoryDelivery | undefined {
  const key = parseDeliveryId(id);
  if (key === undefined) return undefined;
  const endpoint = state.endpoints.get(key.webhookId);
  const event = endpoint?.account.events.get(key.eventId);
  return event?.deliveries.find((own) => own.endpoint === endpoint && own.serial === key.serial);
}

/** Whether nothing is left to deliver for a delivery in this state: it was received, or must not be. */
export const isDone = ({ state }: MemoryDelivery): boolean => state === "delivered" || state === "withheld";

/** Drops an account that holds nothing any more. */
export function dropIfEmpty(state: State, account: Account): void {
  if (account.endpoints.size === 0 && account.events.size === 0) state.accounts.delete(account.name);
}

export function notifyWorkers(state: State, at: number): void {
  for (const listener of state.watchers) listener(at);
}
