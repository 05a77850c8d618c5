/**
 * Encodes settlements for the `exchange` script: grouped by endpoint and by account, as
 * exchange.lua lists them.
 */

import type { Attempt, AttemptSummary } from "../../src/webhooks/store.js";
import type { RedisArgument } from "./client.js";
import {
  encodeFirstDelivered,
  encodeFirstLease,
  type FirstDelivered,
  type FirstLease,
} from "./first-leases.js";
import { encodeText } from "./text-codec.js";
import { encodeLane } from "./webhook-codec.js";

/** A settlement that the `exchange` script can record, with the lease that it ends. */
export interface FirstSettlement {
  readonly lease: FirstLease;
  readonly settlement: FirstDelivered;
}

export interface EndpointGroup<T> {
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
export function groupByEndpoint<T extends FirstSettlement>(
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

export function encodeSettlements<T extends FirstSettlement>(
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
    const durationMs = own.reduce((sum, { settlement }) => sum + settlement.attempt.durationMs, 0);
    args.push(encodeLane(endpoint.lane), encodeAttemptSummary(attempt), durationMs);
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
export function decodeUnmatched<T>(
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
