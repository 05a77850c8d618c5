/**
 * The records of the memory storage. Only this folder sees them: everything that leaves it is a
 * copy or frozen.
 */

import type {
  Attempt,
  AuditRecord,
  DeliveryState,
  EventKey,
  EventRecord,
  Lane,
  WebhookRecord,
} from "../../src/webhooks/store.js";
import type { ClaimedSecond, SlowStart } from "../queue/endpoint.js";
import type { PastHour, RecentHour } from "../queue/recent-attempts.js";
import type { FifoTimeQueue, OrderedRows, Queued, Rows } from "./collections.js";

/**
 * Queue entry, claim and log record in one object. It is in the queue of its endpoint, or in that
 * of its lease, until it is completed.
 */
export interface MemoryDelivery extends Queued<MemoryDelivery> {
  /**
   * 0 for the delivery created by emitting, n for the n-th later delivery of the same event to the
   * same webhook.
   */
  serial: number;
  /** Grows with each delivery: the order of pages. */
  order: number;
  endpoint: MemoryEndpoint;
  event: MemoryEvent;
  createdAt: number;
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
  token: string;
  /** The deliveries that are still leased. */
  deliveries: FifoTimeQueue<MemoryDelivery>;
}

/** A webhook with its deliveries, its slots and its turn. */
export interface MemoryEndpoint {
  id: string;
  /** Frozen; replaced as a whole by each change. */
  record: WebhookRecord;
  account: MemoryAccount;
  order: number;
  deliveries: OrderedRows<MemoryDelivery>;
  /** Pending deliveries that are not leased, by when they may be claimed. */
  queue: FifoTimeQueue<MemoryDelivery>;
  inFlight: number;
  slowStart: SlowStart;
  /** `null` while the rate is not limited. */
  claimed: ClaimedSecond | null;
  lane: Lane;
  /** Counts of `deliveries` by state. */
  counts: Record<DeliveryState, number>;
  /** How many of the `failed` ones are failed tests. */
  failedTests: number;
  /** How many events its filter has refused. */
  filtered: number;
  /** The newest hour with attempts. */
  recent: RecentHour | null;
  /** The hours before, oldest first. */
  pastHours: PastHour[];
  /** Without its excerpt, which may be long. */
  lastAttempt: Attempt | null;
  isRemoved: boolean;
}

export interface MemoryEvent extends Queued<MemoryEvent> {
  id: string;
  order: number;
  record: EventRecord;
  account: MemoryAccount;
  /** The counted size of the event, its deliveries and their attempts. */
  bytes: number;
  storedAt: number;
  /** Until when its id must be remembered, even if the event is freed before. */
  rememberUntil: number;
  /** In the order of their creation. They are kept as long as the event. */
  deliveries: MemoryDelivery[];
  /** The webhooks it went to when it was emitted. */
  receivers: string[];
  /** How long it is kept once it is completed; `null` for the retention of all. */
  keepMs: number | null;
  /** A test of one webhook: no other webhook receives or recovers it. */
  isTest: boolean;
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
  event: MemoryEvent;
}

export interface MemoryAccount {
  /** The order of the list of accounts. */
  order: number;
  name: string;
  endpoints: Rows<MemoryEndpoint>;
  events: Rows<MemoryEvent>;
  /** The same ones by subject and tags. */
  index: EventIndex;
  /** The completed ones of `events`, by `findFreePlace`. */
  ended: FifoTimeQueue<CompletedEvent>;
  pending: number;
  /** When its last event was stored. */
  lastEventAt: number | null;
  /** How many of its endpoints have a `failingSince`. */
  failingEndpoints: number;
  /** Its entry in the list of failing accounts. */
  failing: FailingAccount | null;
}

/** The events of an account by their subject and by their tags. */
export interface EventIndex {
  /** Adds an event that comes after all others. */
  add(event: MemoryEvent): void;
  delete(event: MemoryEvent): void;
  /** Lists the events with a key before `order`, newest first. */
  before(key: EventKey, order: number): Iterable<MemoryEvent>;
}

export interface FailingAccount {
  /** Grows with each account that begins to fail. */
  order: number;
  account: MemoryAccount;
}

/** A remembered id of an event that is not stored any more. */
export interface Remembered {
  digest: string;
  receivers: string[];
  expiresAt: number;
}

export interface Replay {
  digest: string;
  webhook: WebhookRecord;
  expiresAt: number;
}

/** The audit logs by account, the one that was changed last at the end. */
export interface AuditLogs {
  logs: Map<string, AuditLogOfAccount>;
  /** The number of entries in all of them. */
  size: number;
}

/** The entries about deliveries, and the others, oldest first. */
export interface AuditLogOfAccount {
  deliveries: AuditRow[];
  others: AuditRow[];
}

export interface AuditRow {
  order: number;
  record: AuditRecord;
}
