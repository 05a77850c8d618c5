/**
 * The state of a memory storage: its records, the structures that point at them, and the size that
 * counts against its limits.
 */

import type { Clock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { createTimeQueue, type TimeQueue } from "../../src/core/time-queue.js";
import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/store/records.js";
import type {
  Attempt,
  EventKey,
  EventRecord,
  Lane,
  Retention,
  WebhookRecord,
} from "../../src/webhooks/store.js";
import { ExpiringMap, FifoTimeQueue, OrderedRows, Rows } from "./collections.js";
import type {
  AuditLogs,
  EventIndex,
  FailingAccount,
  Lease,
  MemoryAccount,
  MemoryDelivery,
  MemoryEndpoint,
  MemoryEvent,
  Remembered,
  Replay,
} from "./records.js";

export interface MemoryLimits {
  webhooks: number;
  pending: number;
  pendingPerAccount: number;
  bytes: number;
  rememberedIds: number;
}

export interface State {
  limits: MemoryLimits;
  accounts: Map<string, MemoryAccount>;
  accountList: OrderedRows<MemoryAccount>;
  failingAccounts: OrderedRows<FailingAccount>;
  endpoints: Map<string, MemoryEndpoint>;
  /** Endpoints with a delivery that may be claimed, by when. */
  ready: Record<Lane, TimeQueue<MemoryEndpoint>>;
  /** Leases that have deliveries, by when they expire. */
  leases: TimeQueue<Lease>;
  /**
   * Leased deliveries by id. Most settlements find their delivery here, for any size of the log.
   */
  leased: Map<string, MemoryDelivery>;
  notices: TimeQueue<MemoryEndpoint>;
  /** Completed events, by when they are freed. */
  endedEvents: FifoTimeQueue<MemoryEvent>;
  /** By account and event id. */
  remembered: ExpiringMap<Remembered>;
  /** By account and idempotency key. */
  replays: ExpiringMap<Replay>;
  /**
   * Removed endpoints whose deliveries are still to be freed, with the order of the last one that
   * was freed.
   */
  removals: Map<MemoryEndpoint, number>;
  audit: AuditLogs;
  /** The data keys of accounts. They end with the process, as the events do. */
  dataKeys: Map<string, string>;
  /** The names of erased data keys, and until when they are kept. */
  erasedKeys: Map<string, number>;
  watchers: Set<{ listener: (at: number) => void }>;
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
  state: State;
  perEndpoint: number;
  /** `null` for any number. */
  perSecond: number | null;
  retention: Retention;
}

export function createState(limits: MemoryLimits): State {
  return {
    limits,
    accounts: new Map(),
    accountList: new OrderedRows(),
    failingAccounts: new OrderedRows(),
    endpoints: new Map(),
    ready: { fast: createTimeQueue(), slow: createTimeQueue() },
    leases: createTimeQueue(),
    leased: new Map(),
    notices: createTimeQueue(),
    endedEvents: new FifoTimeQueue(),
    remembered: new ExpiringMap(limits.rememberedIds),
    replays: new ExpiringMap(limits.webhooks),
    removals: new Map(),
    audit: { logs: new Map(), size: 0 },
    dataKeys: new Map(),
    erasedKeys: new Map(),
    watchers: new Set(),
    epoch: undefined,
    pending: 0,
    deliveries: 0,
    bytes: 0,
    endedBytes: 0,
    order: 0,
  };
}

// Finds the events of an account by their subject and by their tags.

const toKey = ({ subject, tag }: EventKey): string => (subject === undefined ? `t${tag}` : `s${subject}`);

function listKeys({ subject, tags }: EventRecord): string[] {
  const keys = subject === undefined ? [] : [toKey({ subject })];
  if (tags !== undefined) for (const tag of tags) keys.push(toKey({ tag }));
  return keys;
}

/** The most bytes that V8 uses for a text: one per character if all are ASCII, else two. */
export const textBytes = (text: string): number =>
  Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;

/** The heap that an entry takes besides the text of its key, rounded up. */
const ENTRY_BYTES = 300;

/** Returns the counted size of the entries of an event. */
const indexBytes = (record: EventRecord): number =>
  listKeys(record).reduce((sum, key) => sum + ENTRY_BYTES + textBytes(key), 0);

class KeyIndex implements EventIndex {
  /** A single event stands for itself: most subjects have one, and rows take more of the heap. */
  #byKey = new Map<string, MemoryEvent | OrderedRows<MemoryEvent>>();

  add(event: MemoryEvent): void {
    for (const key of listKeys(event.record)) {
      const found = this.#byKey.get(key);
      if (found === undefined) this.#byKey.set(key, event);
      else if (found instanceof OrderedRows) found.add(event);
      else {
        const rows = new OrderedRows<MemoryEvent>();
        rows.add(found);
        rows.add(event);
        this.#byKey.set(key, rows);
      }
    }
  }

  delete(event: MemoryEvent): void {
    for (const key of listKeys(event.record)) {
      const found = this.#byKey.get(key);
      if (found instanceof OrderedRows) found.delete(event);
      if (found === event || (found instanceof OrderedRows && found.size === 0)) this.#byKey.delete(key);
    }
  }

  before(key: EventKey, order: number): Iterable<MemoryEvent> {
    const found = this.#byKey.get(toKey(key));
    if (found instanceof OrderedRows) return found.before(order);
    return found !== undefined && found.order < order ? [found] : [];
  }
}

/** Returns the key for a map over all accounts, whose names may hold any character. */
export const scoped = (account: string, id: string): string => `${account.length} ${account}${id}`;

export function getAccount(state: State, name: string): MemoryAccount {
  let account = state.accounts.get(name);
  if (!account) {
    account = {
      order: ++state.order,
      name,
      endpoints: new Rows(),
      events: new Rows(),
      index: new KeyIndex(),
      ended: new FifoTimeQueue(),
      pending: 0,
      lastEventAt: null,
      failingEndpoints: 0,
      failing: null,
    };
    state.accounts.set(name, account);
    state.accountList.add(account);
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
  return event?.deliveries.find(
    (delivery) => delivery.endpoint === endpoint && delivery.serial === key.serial,
  );
}

/** Deletes an account that has neither webhooks nor events. */
export function dropIfEmpty(state: State, account: MemoryAccount): void {
  if (account.endpoints.size > 0 || account.events.size > 0) return;
  state.accounts.delete(account.name);
  state.accountList.delete(account);
}

export function notifyWorkers(state: State, at: number): void {
  for (const { listener } of state.watchers) listener(at);
}

/**
 * The wall clock's time at which the monotonic clock stood at 0; `undefined` before the first read.
 */
export interface Epoch {
  epoch: number | undefined;
}

/**
 * Returns a function that returns whole epoch ms. Setting the wall clock must not make retries due,
 * or leases expire.
 */
export const createTime = (state: Epoch, clock: Clock) => (): number => {
  state.epoch ??= clock.now() - clock.monotonic();
  return Math.round(state.epoch + clock.monotonic());
};

/** Counts that one more endpoint of an account fails, or one less. */
export function countFailing(state: State, account: MemoryAccount, by: number): void {
  account.failingEndpoints += by;
  if (account.failingEndpoints > 0 === (account.failing !== null)) return;
  if (account.failing !== null) {
    state.failingAccounts.delete(account.failing);
    account.failing = null;
    return;
  }
  account.failing = { order: ++state.order, account };
  state.failingAccounts.add(account.failing);
}

/** How many failing endpoints this one counts for. */
export const countsAsFailing = ({ failingSince }: WebhookRecord): 0 | 1 => (failingSince === null ? 0 : 1);

/** Sets fields of the record. A change of the health alone keeps `updatedAt`. */
export function updateRecord(state: State, endpoint: MemoryEndpoint, fields: Partial<WebhookRecord>): void {
  const before = countsAsFailing(endpoint.record);
  endpoint.record = Object.freeze({ ...endpoint.record, ...fields });
  countFailing(state, endpoint.account, countsAsFailing(endpoint.record) - before);
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

/**
 * The heap that an event, a delivery and an attempt take besides text, with their entries in maps
 * and queues: measured on Node 20 and rounded up.
 */
const EVENT_BYTES = 2_000;
export const DELIVERY_BYTES = 700;
const ATTEMPT_BYTES = 200;

export const eventBytes = (event: EventRecord): number =>
  EVENT_BYTES + textBytes(event.payload) + indexBytes(event);

export const attemptBytes = ({ excerpt }: Attempt): number =>
  excerpt === null ? ATTEMPT_BYTES : ATTEMPT_BYTES + textBytes(excerpt);

export const deliveryBytes = ({ attempts }: MemoryDelivery): number =>
  attempts.reduce((sum, attempt) => sum + attemptBytes(attempt), DELIVERY_BYTES);

/** Counts that `event`, with its deliveries and their attempts, has grown by `bytes`. */
export function resize(state: State, event: MemoryEvent, bytes: number): void {
  event.bytes += bytes;
  state.bytes += bytes;
  if (event.ended !== null) state.endedBytes += bytes;
}

export const memoryFull = ({ limits }: State, bound: keyof MemoryLimits): PostbellError =>
  new PostbellError(
    "storage_full",
    `The memory storage has reached limits.${bound} (${limits[bound]}); nothing was stored. Raise it, or try again later.`,
    { field: `limits.${bound}` },
  );

/** Errors: `storage_full` if `more` pending deliveries of an account would exceed a bound. */
export function checkPending(state: State, account: MemoryAccount, more: number): void {
  if (state.pending + more > state.limits.pending) throw memoryFull(state, "pending");
  if (account.pending + more > state.limits.pendingPerAccount) throw memoryFull(state, "pendingPerAccount");
}
