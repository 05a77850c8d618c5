/**
 * The common path of one partition: one script call records deliveries that succeeded at their
 * first attempt, and claims due deliveries. Other settlements take `settle`.
 */

import type { Attempt, AttemptSummary } from "../../src/webhooks/store.js";
import { sketchDurations } from "../queue/recent-attempts.js";
import type { RedisArgument } from "./clients.js";
import {
  encodeFirstDelivered,
  encodeFirstLease,
  type FirstDelivered,
  type FirstLease,
} from "./first-leases.js";
import { decodeLeaseReply, type Leased, type LeaseReply, NO_LEASE } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import type { RedisStoreContext } from "./store-context.js";
import { encodeText } from "./text-codec.js";
import { encodeLane } from "./webhook-codec.js";

/**
 * The most settlements in a script, so that none holds Redis up for more than a few milliseconds.
 */
const SETTLED_PER_CALL = 250;
/** The most calls in flight that only settle. Meanwhile the next call gathers settlements. */
const CONCURRENT_SETTLEMENTS = 2;

/** Asks the script to lease due deliveries. */
export interface LeaseRequest {
  readonly now: number;
  /** As `encodeLease` returns them. */
  readonly args: readonly RedisArgument[];
  /** Called with what was leased if the reply comes after the call was rejected. */
  readonly onLate: (leased: Leased) => void;
}

/** `unmatched`: the delivery is not as it was leased, so nothing was recorded. */
export type FirstResult = "settled" | "unmatched";

export interface CommonPath {
  /** Resolves with a result for each item, in their order. */
  settle(items: readonly FirstSettlement[]): Promise<readonly FirstResult[]>;
  /** Claims, and sends waiting settlements with the claim. */
  claim(request: LeaseRequest): Promise<Leased>;
  /**
   * Accounts that have too many completed events, as `tidy` takes them. Each call may complete
   * more, so the next claim frees some first.
   */
  readonly crowded: Set<string>;
}

/** One call of `settle` that waits for its results. */
interface PendingSettle {
  readonly results: FirstResult[];
  /** Number of items without a result. */
  left: number;
  readonly resolve: (results: readonly FirstResult[]) => void;
  readonly reject: (error: unknown) => void;
}

interface QueuedSettlement extends FirstSettlement {
  readonly pending: PendingSettle;
  readonly place: number;
}

function resolveItem({ pending, place }: QueuedSettlement, result: FirstResult): void {
  pending.results[place] = result;
  pending.left -= 1;
  if (pending.left === 0) pending.resolve(pending.results);
}

/** Resolves the unmatched items, and returns the others. */
function dropUnmatched(
  items: readonly QueuedSettlement[],
  unmatched: ReadonlySet<QueuedSettlement>,
): readonly QueuedSettlement[] {
  if (unmatched.size === 0) return items;
  for (const item of unmatched) resolveItem(item, "unmatched");
  return items.filter((item) => !unmatched.has(item));
}

export function createCommonPath(
  context: RedisStoreContext,
  partition: Partition,
  nonce: () => string,
): CommonPath {
  const queue: QueuedSettlement[] = [];
  let running = 0;
  let isScheduled = false;
  const crowded = new Set<string>();

  /** Sends settlements until the script accepts the rest. Rejects with the error of the call. */
  const send = async (
    settled: readonly QueuedSettlement[],
    request: LeaseRequest | undefined,
  ): Promise<LeaseReply> => {
    const now = request?.now ?? (await context.connect(settled[0]?.settlement.now ?? 0));
    const lease = request?.args ?? NO_LEASE;
    const onLate = (late: unknown): void => {
      const reply = late as LeaseReply;
      // With unmatched settlements the script did nothing.
      if (reply[0] === "") request?.onLate(decodeLeaseReply(reply));
    };
    for (let items = settled; ; ) {
      const { endpoints, others } = groupByEndpoint(items);
      items = dropUnmatched(items, others);
      const args = [...lease, ...encodeSettlements(items, endpoints, nonce())];
      const reply = (await context.run(SCRIPTS.settleAndClaim, partition, args, {
        now,
        onLate,
      })) as LeaseReply;
      const [unmatched, , notifyAt, overdue] = reply;
      if (unmatched === "") {
        context.notifyWorkers(notifyAt);
        for (const word of overdue.split("\n")) if (word.includes("/")) crowded.add(word);
        for (const item of items) resolveItem(item, "settled");
        return reply;
      }
      items = dropUnmatched(items, decodeUnmatched(unmatched, items, endpoints));
    }
  };

  const takeFromQueue = (): readonly QueuedSettlement[] => queue.splice(0, SETTLED_PER_CALL);

  const sendOrReject = async (
    items: readonly QueuedSettlement[],
    request?: LeaseRequest,
  ): Promise<LeaseReply> => {
    try {
      return await send(items, request);
    } catch (error) {
      // Queued settlements have waited as long, and their call would fail too.
      for (const { pending } of [...items, ...queue.splice(0)]) pending.reject(error);
      throw error;
    }
  };

  const flush = (): void => {
    isScheduled = false;
    while (queue.length > 0 && running < CONCURRENT_SETTLEMENTS) {
      running += 1;
      const done = (): void => {
        running -= 1;
        flush();
      };
      sendOrReject(takeFromQueue()).then(done, done);
    }
  };

  return {
    settle(items) {
      return new Promise((resolve, reject) => {
        const pending: PendingSettle = { results: [], left: items.length, resolve, reject };
        for (const [place, { lease, settlement }] of items.entries())
          queue.push({ lease, settlement, pending, place });
        if (isScheduled) return;
        isScheduled = true;
        // A claim of this turn of the event loop takes them along.
        setImmediate(flush);
      });
    },
    claim: async (request) => decodeLeaseReply(await sendOrReject(takeFromQueue(), request)),
    crowded,
  };
}

/** A settlement that the `settle-and-claim` script can record, with the lease that it ends. */
export interface FirstSettlement {
  readonly lease: FirstLease;
  readonly settlement: FirstDelivered;
}

interface EndpointGroup<T> {
  readonly generation: number;
  readonly items: T[];
}

/** The settlements of one account: how many there are, and how many of each event. */
interface AccountGroup {
  readonly name: string;
  count: number;
  readonly events: Map<string, { count: number; readonly receivers: number }>;
}

export const encodeAttemptSummary = ({ at, kind, status, code }: Attempt): string =>
  JSON.stringify({ at, kind, status, code } satisfies AttemptSummary);

/**
 * Groups settlements by endpoint. `others` have another generation than the first settlement of
 * their endpoint: the script takes one generation per endpoint.
 */
function groupByEndpoint<T extends FirstSettlement>(
  items: readonly T[],
): { readonly endpoints: readonly EndpointGroup<T>[]; readonly others: ReadonlySet<T> } {
  const groups = new Map<string, EndpointGroup<T>>();
  const others = new Set<T>();
  for (const item of items) {
    const { generation } = item.settlement.endpoint;
    const group = groups.get(item.lease.webhook);
    if (group === undefined) groups.set(item.lease.webhook, { generation, items: [item] });
    else if (group.generation === generation) group.items.push(item);
    else others.add(item);
  }
  return { endpoints: [...groups.values()], others };
}

function groupByAccount(items: readonly FirstSettlement[]): ReadonlyMap<string, AccountGroup> {
  const groups = new Map<string, AccountGroup>();
  for (const { lease, settlement } of items) {
    let group = groups.get(lease.account);
    if (!group) {
      group = { name: encodeText(settlement.account), count: 0, events: new Map() };
      groups.set(lease.account, group);
    }
    group.count += 1;
    const event = group.events.get(lease.event);
    if (event) event.count += 1;
    else group.events.set(lease.event, { count: 1, receivers: lease.receivers });
  }
  return groups;
}

function encodeSettlements<T extends FirstSettlement>(
  items: readonly T[],
  endpoints: readonly EndpointGroup<T>[],
  nonce: string,
): readonly RedisArgument[] {
  const accounts = groupByAccount(items);
  const args: RedisArgument[] = [nonce, items.length, endpoints.length, accounts.size];
  for (const { lease, settlement } of items) args.push(lease.ref, encodeFirstDelivered(nonce, settlement));
  for (const { lease } of items) args.push(encodeFirstLease(lease.token));
  for (const { items: own } of endpoints) {
    const last = own.at(-1);
    if (last === undefined) continue;
    const { account, attempt, endpoint } = last.settlement;
    args.push(last.lease.webhook, encodeText(account), endpoint.generation, own.length);
    const durations = own.map(({ settlement }) => settlement.attempt.durationMs);
    const durationMs = durations.reduce((sum, duration) => sum + duration);
    args.push(encodeLane(endpoint.lane), encodeAttemptSummary(attempt));
    args.push(`${Math.round(durationMs)}${sketchDurations(durations)}`);
  }
  for (const [number, { name, count, events }] of accounts) {
    args.push(number, name, count, events.size);
    for (const [event, { count: own, receivers }] of events) args.push(event, own, receivers);
  }
  return args;
}

/**
 * Decodes the places of settlements that were not as expected: `3`, or `w0` for a whole endpoint.
 */
function decodeUnmatched<T>(
  unmatched: string,
  items: readonly T[],
  endpoints: readonly EndpointGroup<T>[],
): ReadonlySet<T> {
  const found = new Set<T>();
  for (const place of unmatched.split(" ")) {
    if (place.startsWith("w")) {
      for (const item of endpoints[Number(place.slice(1))]?.items ?? []) found.add(item);
    } else {
      const item = items[Number(place)];
      if (item !== undefined) found.add(item);
    }
  }
  return found;
}
