/**
 * Deliveries that this process holds under their first lease: what recording a success of theirs
 * needs to know.
 */

import type { Attempt, EndpointReport, Settlement } from "../../src/webhooks/store.js";

/** Beyond these the oldest are forgotten: their settlements take the general path. */
const MAX_LEASES = 20_000;

export interface FirstLease {
  /** `W/E`, as in the queue. */
  readonly ref: string;
  /** The partition's number of the webhook. */
  readonly webhook: string;
  /** The partition's number of the account. */
  readonly account: string;
  /** The event's id as it is stored. */
  readonly event: string;
  /** How many deliveries the event was stored with. */
  readonly receivers: number;
  /** As it is stored. */
  readonly token: string;
}

/** A settlement that the `exchange` script can record. */
export interface FirstDelivered extends Settlement {
  readonly startedAt: number;
  readonly attempt: Attempt;
  readonly endpoint: EndpointReport;
}

/**
 * True for what the short form of a record can say: delivered, at the first step, with the times in
 * their order.
 */
export function isFirstDelivered(settlement: Settlement): settlement is FirstDelivered {
  const { outcome, startedAt, attempt, endpoint, now } = settlement;
  return (
    outcome.state === "delivered" &&
    startedAt !== null &&
    attempt !== null &&
    endpoint?.ok === true &&
    attempt.kind === "delivered" &&
    attempt.step === 0 &&
    !attempt.isExtra &&
    attempt.excerpt === null &&
    attempt.code === `HTTP_${attempt.status}` &&
    startedAt <= attempt.at &&
    attempt.at <= now
  );
}

/** The record of such a delivery. `nonce` names the call that records it. */
export function firstDeliveredText(nonce: string, { now, startedAt, attempt }: FirstDelivered): string {
  const { at, durationMs, status } = attempt;
  return `d:${nonce},${at},${at - startedAt},${now - at},${durationMs},${status}`;
}

/** The record of a delivery under its first lease. */
export const firstLeaseText = (token: string): string => `l:${token}`;

export interface FirstLeases {
  add(deliveryId: string, lease: FirstLease): void;
  /** Forgets and returns the lease of a delivery, if it is held by `token`. */
  take(deliveryId: string, token: string): FirstLease | undefined;
}

export function createFirstLeases(): FirstLeases {
  const leases = new Map<string, FirstLease>();
  return {
    add(deliveryId, lease) {
      leases.set(deliveryId, lease);
      if (leases.size <= MAX_LEASES) return;
      for (const oldest of leases.keys()) {
        leases.delete(oldest);
        break;
      }
    },
    take(deliveryId, token) {
      const lease = leases.get(deliveryId);
      if (lease === undefined) return undefined;
      leases.delete(deliveryId);
      return lease.token === token ? lease : undefined;
    },
  };
}
