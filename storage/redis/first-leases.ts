/**
 * The deliveries that this process holds under their first lease, with all that is needed to record
 * their success in a short call.
 */

import type { Attempt, EndpointReport, Settlement } from "../../src/webhooks/store.js";

/**
 * The most leases. Beyond it the oldest is forgotten, and its settlement takes the general path.
 */
const MAX_LEASES = 20_000;

export interface FirstLease {
  /** The reference of the delivery, `W/E`. */
  readonly ref: string;
  /** The partition's number of the webhook. */
  readonly webhook: string;
  /** The partition's number of the account. */
  readonly account: string;
  /** The encoded id of the event. */
  readonly event: string;
  /** How many deliveries the event was stored with. */
  readonly receivers: number;
  /** The encoded token. */
  readonly token: string;
}

/** A settlement that the `settle-and-claim` script can record. */
export interface FirstDelivered extends Settlement {
  readonly startedAt: number;
  readonly attempt: Attempt;
  readonly endpoint: EndpointReport;
}

/**
 * True if the short form of a record can hold it: delivered, at the first step, with ordered times.
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

/** Encodes the record of such a delivery. `nonce` identifies the call that records it. */
export function encodeFirstDelivered(nonce: string, { now, startedAt, attempt }: FirstDelivered): string {
  const { at, durationMs, status } = attempt;
  return `d:${nonce},${at},${at - startedAt},${now - at},${durationMs},${status}`;
}

/** Encodes the record of a delivery under its first lease. */
export const encodeFirstLease = (token: string): string => `l:${token}`;

export interface FirstLeases {
  add(deliveryId: string, lease: FirstLease): void;
  /** Removes the lease of a delivery, and returns it if `token` holds it. */
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
