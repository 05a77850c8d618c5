/**
 * One call for both halves of the common path: records what was delivered at its first attempt, and
 * claims what is due.
 */

import type { Attempt, AttemptSummary, Lane } from "../../src/webhooks/store.js";
import type { LeasedRow } from "./claim-reader.js";
import type { RedisArgument } from "./client.js";
import { encodeText } from "./codec.js";
import { type FirstDelivered, type FirstLease, firstDeliveredText, firstLeaseText } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import type { RedisStoreContext } from "./store-context.js";

/** A script holds Redis up for no longer than a few milliseconds. */
const SETTLED_PER_CALL = 250;
/** Calls that only settle: while these are in flight, the next one fills up. */
const CONCURRENT_SETTLEMENTS = 2;

/** What the script leases, and for whom. */
export interface LeaseRequest {
  readonly now: number;
  /** Token, end of the lease, room in the fast lane, room in the slow lane. */
  readonly args: readonly RedisArgument[];
  /**
   * Called with what was leased where the reply comes after the caller was told that there is none.
   */
  readonly onLate: (leased: Leased) => void;
}

/** What was leased, and what `tidy` has to do. */
export interface Leased {
  readonly nextAt: string;
  /** When something became due by this script; empty where nothing did. */
  readonly hint: string;
  readonly mark: string;
  readonly parked: readonly string[];
  /** Texts of the webhooks by their numbers. */
  readonly webhooks: ReadonlyMap<string, string>;
  readonly rows: readonly LeasedRow[];
  /** Leases ran out. */
  readonly hasExpired: boolean;
  /** Something was kept long enough. */
  readonly isOverdue: boolean;
}

export interface ClaimExchange {
  /**
   * A result for each, in their order. `unmatched`: the delivery is not as it was leased, so
   * nothing was recorded.
   */
  settle(items: readonly FirstSettlement[]): Promise<readonly ExchangeResult[]>;
  /** Claims, and takes along the settlements that wait. */
  claim(request: LeaseRequest): Promise<Leased>;
  /**
   * Accounts that keep too many events, as `tidy` takes them. Each call may end more of them, so it
   * asks for them when it can free some.
   */
  readonly crowded: Set<string>;
}

/** What `exchange-claim.lua` replies. */
export type LeaseReply = [
  /** Of `exchange`: the places of what does not match. Of `append`: what was stored. */
  answer: string,
  nextAt: string,
  hint: string,
  overdue: string,
  mark: string,
  parked: string[],
  webhooks: string[],
  claims: string,
];

export interface FirstSettlement {
  readonly lease: FirstLease;
  readonly settlement: FirstDelivered;
}

export type ExchangeResult = "settled" | "unmatched";

/** What one caller of `settle` waits for. */
interface Batch {
  readonly results: ExchangeResult[];
  left: number;
  readonly resolve: (results: readonly ExchangeResult[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Waiting extends FirstSettlement {
  readonly batch: Batch;
  readonly place: number;
}

function tell({ batch, place }: Waiting, result: ExchangeResult): void {
  batch.results[place] = result;
  batch.left -= 1;
  if (batch.left === 0) batch.resolve(batch.results);
}

export const attemptSummary = ({ at, kind, status, code }: Attempt): string =>
  JSON.stringify({ at, kind, status, code } satisfies AttemptSummary);

const LANES: Readonly<Record<Lane, string>> = { fast: "f", slow: "s" };
/** Tells a script to lease nothing. */
export const NO_LEASE: readonly RedisArgument[] = ["", "", 0, 0];

interface EndpointGroup {
  readonly generation: number;
  readonly items: Waiting[];
}

/** Of the deliveries of one account: how many there are, and how many of each event. */
interface AccountGroup {
  readonly name: string;
  count: number;
  readonly events: Map<string, { count: number; readonly receivers: number }>;
}

/**
 * `others` are of another generation than the first of their endpoint: the script counts each
 * endpoint once.
 */
function byEndpoint(items: readonly Waiting[]): {
  readonly endpoints: readonly EndpointGroup[];
  readonly others: ReadonlySet<Waiting>;
} {
  const groups = new Map<string, EndpointGroup>();
  const others = new Set<Waiting>();
  for (const item of items) {
    const { generation } = item.settlement.endpoint;
    const group = groups.get(item.lease.webhook);
    if (group === undefined) groups.set(item.lease.webhook, { generation, items: [item] });
    else if (group.generation === generation) group.items.push(item);
    else others.add(item);
  }
  return { endpoints: [...groups.values()], others };
}

function byAccount(items: readonly Waiting[]): ReadonlyMap<string, AccountGroup> {
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

/** What the script takes of settlements, as `exchange.lua` lists it. */
function settlementArguments(
  items: readonly Waiting[],
  endpoints: readonly EndpointGroup[],
  nonce: string,
): readonly RedisArgument[] {
  const accounts = byAccount(items);
  const args: RedisArgument[] = [nonce, items.length, endpoints.length, accounts.size];
  for (const { lease, settlement } of items) args.push(lease.ref, firstDeliveredText(nonce, settlement));
  for (const { lease } of items) args.push(firstLeaseText(lease.token));
  for (const { items: own } of endpoints) {
    const last = own.at(-1);
    if (last === undefined) continue;
    const { account, attempt, endpoint } = last.settlement;
    args.push(last.lease.webhook, encodeText(account), endpoint.generation, own.length);
    args.push(LANES[endpoint.lane], attemptSummary(attempt));
  }
  for (const [number, { name, count, events }] of accounts) {
    args.push(number, name, count, events.size);
    for (const [event, { count: own, receivers }] of events) args.push(event, own, receivers);
  }
  return args;
}

function readWebhooks(flat: readonly string[]): Leased["webhooks"] {
  const webhooks = new Map<string, string>();
  for (let place = 0; place + 1 < flat.length; place += 2)
    webhooks.set(flat[place] ?? "", flat[place + 1] ?? "");
  return webhooks;
}

function readRow(claim: string): LeasedRow {
  const blank = claim.indexOf(" ");
  return blank === -1
    ? { ref: claim, line: "" }
    : { ref: claim.slice(0, blank), line: claim.slice(blank + 1) };
}

export function readLeased(reply: LeaseReply): Leased {
  const [, nextAt, hint, allOverdue, mark, parked, webhooks, claims] = reply;
  const overdue = allOverdue.split("\n");
  return {
    nextAt,
    hint,
    mark,
    parked,
    webhooks: readWebhooks(webhooks),
    rows: claims === "" ? [] : claims.split("\n").map(readRow),
    hasExpired: overdue.includes("l"),
    isOverdue: overdue.includes("t"),
  };
}

export function createClaimExchange(
  context: RedisStoreContext,
  partition: Partition,
  nonce: () => string,
): ClaimExchange {
  const line: Waiting[] = [];
  let running = 0;
  let isScheduled = false;
  /** Accounts that keep too many events, for the next claim to free some. */
  const crowded = new Set<string>();

  /**
   * Sends settlements, without those that do not match, which are told so. Rejects with the error
   * of the call.
   */
  const send = async (
    settled: readonly Waiting[],
    request: LeaseRequest | undefined,
  ): Promise<LeaseReply> => {
    const now = request?.now ?? (await context.at(settled[0]?.settlement.now ?? 0));
    const lease = request?.args ?? NO_LEASE;
    const onLate = (late: unknown): void => {
      const reply = late as LeaseReply;
      // Else nothing was done.
      if (reply[0] === "") request?.onLate(readLeased(reply));
    };
    for (let items = settled; ; ) {
      const { endpoints, others } = byEndpoint(items);
      if (others.size > 0) items = items.filter((item) => !others.has(item));
      for (const item of others) tell(item, "unmatched");
      const args = [...lease, ...settlementArguments(items, endpoints, nonce())];
      const reply = (await context.run(SCRIPTS.exchange, partition, args, { now, onLate })) as LeaseReply;
      const [unmatched] = reply;
      if (unmatched === "") {
        context.notifyWorkers(reply[2]);
        for (const word of reply[3].split("\n")) if (word.includes("/")) crowded.add(word);
        for (const item of items) tell(item, "settled");
        return reply;
      }
      const odd = new Set<Waiting>();
      for (const place of unmatched.split(" ")) {
        if (place.startsWith("w"))
          for (const item of endpoints[Number(place.slice(1))]?.items ?? []) odd.add(item);
        else for (const item of items.slice(Number(place), Number(place) + 1)) odd.add(item);
      }
      for (const item of odd) tell(item, "unmatched");
      items = items.filter((item) => !odd.has(item));
    }
  };

  const take = (): readonly Waiting[] => line.splice(0, SETTLED_PER_CALL);

  const carry = async (items: readonly Waiting[], request?: LeaseRequest): Promise<LeaseReply> => {
    try {
      return await send(items, request);
    } catch (error) {
      // Those that wait have waited as long, for a call that would fare no better.
      for (const { batch } of [...items, ...line.splice(0)]) batch.reject(error);
      throw error;
    }
  };

  const flush = (): void => {
    isScheduled = false;
    while (line.length > 0 && running < CONCURRENT_SETTLEMENTS) {
      running += 1;
      const done = (): void => {
        running -= 1;
        flush();
      };
      carry(take()).then(done, done);
    }
  };

  return {
    settle(items) {
      return new Promise((resolve, reject) => {
        const batch: Batch = { results: [], left: items.length, resolve, reject };
        for (const [place, { lease, settlement }] of items.entries())
          line.push({ lease, settlement, batch, place });
        if (isScheduled) return;
        isScheduled = true;
        // A claim of this turn takes it along.
        setImmediate(flush);
      });
    },
    claim: async (request) => readLeased(await carry(take(), request)),
    crowded,
  };
}
