/**
 * The exchange of one partition: one script call records deliveries that succeeded at their first
 * attempt, and claims due deliveries. This is the common path; other settlements take `settle`.
 */

import type { RedisArgument } from "./client.js";
import {
  decodeUnmatched,
  encodeSettlements,
  type FirstSettlement,
  groupByEndpoint,
} from "./exchange-codec.js";
import { decodeLeaseReply, type Leased, type LeaseReply, NO_LEASE } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import type { RedisStoreContext } from "./store-context.js";

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
export type ExchangeResult = "settled" | "unmatched";

export interface ClaimExchange {
  /** Resolves with a result for each item, in their order. */
  settle(items: readonly FirstSettlement[]): Promise<readonly ExchangeResult[]>;
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
  readonly results: ExchangeResult[];
  /** Number of items without a result. */
  left: number;
  readonly resolve: (results: readonly ExchangeResult[]) => void;
  readonly reject: (error: unknown) => void;
}

interface QueuedSettlement extends FirstSettlement {
  readonly pending: PendingSettle;
  readonly place: number;
}

function resolveItem({ pending, place }: QueuedSettlement, result: ExchangeResult): void {
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

export function createClaimExchange(
  context: RedisStoreContext,
  partition: Partition,
  nonce: () => string,
): ClaimExchange {
  const queue: QueuedSettlement[] = [];
  let running = 0;
  let isScheduled = false;
  const crowded = new Set<string>();

  /** Sends settlements until the script accepts the rest. Rejects with the error of the call. */
  const send = async (
    settled: readonly QueuedSettlement[],
    request: LeaseRequest | undefined,
  ): Promise<LeaseReply> => {
    const now = request?.now ?? (await context.at(settled[0]?.settlement.now ?? 0));
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
      const reply = (await context.run(SCRIPTS.exchange, partition, args, { now, onLate })) as LeaseReply;
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
