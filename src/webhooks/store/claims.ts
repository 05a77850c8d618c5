/** How a process takes deliveries from a storage, and how it reports what became of them. */

import type { Attempt, EventRecord, WebhookRecord } from "./records.js";

/**
 * `fast`: the endpoint's last attempt was quick. `slow`: the endpoint is new, or its last attempt
 * was slow. Each lane has a separate budget, so that hanging endpoints cannot take the slots of
 * the others.
 */
export type Lane = "fast" | "slow";

/** A delivery under lease: no other process gets it before `leaseUntil`. */
export interface Claim {
  readonly id: string;
  readonly token: string;
  readonly lane: Lane;
  /**
   * The webhook as it is now, `secret` included: the URL, status and secrets that this attempt
   * uses.
   */
  readonly webhook: WebhookRecord;
  readonly event: EventRecord;
  readonly startedAt: number | null;
  readonly step: number;
  /**
   * True if a user requested an attempt now, in addition to the schedule. It uses up no step.
   * `dueAt` is when the step is due.
   */
  readonly isExtra: boolean;
  readonly dueAt: number;
  /** How many times in a row it was rescheduled because a hook returned no usable result. */
  readonly postponed: number;
  /** Leases that expired without a report since its last attempt: the process died or stalled. */
  readonly crashes: number;
  /** True if this claim takes over such a lease. */
  readonly isRecovered: boolean;
}

/** Who claims, how many deliveries, and until when. */
export interface ClaimRequest {
  readonly now: number;
  /** The caller creates it for this request. The returned claims carry it. */
  readonly token: string;
  readonly leaseUntil: number;
  /** The largest number of claims to return from each lane. */
  readonly room: Readonly<Record<Lane, number>>;
}

/** The claims that a store returns, and when it should be called again. */
export interface ClaimResponse {
  readonly claims: readonly Claim[];
  /**
   * As the store knows now, no delivery becomes due and no lease expires before this time. `null`
   * if nothing waits. Not after `now` if `room` was too small for everything that is due.
   */
  readonly nextAt: number | null;
}

/** The health of an endpoint as one attempt showed it. */
export interface EndpointReport {
  readonly ok: boolean;
  /** Generation of the webhook that the attempt was made under. */
  readonly generation: number;
  readonly at: number;
  /** If the endpoint starts to fail with this report: when its first health step is due. */
  readonly noticeAt: number;
  readonly lane: Lane;
}

/** The result of a claimed delivery. */
export interface Settlement {
  readonly id: string;
  readonly webhookId: string;
  readonly account: string;
  readonly token: string;
  readonly now: number;
  readonly outcome:
    | { readonly state: "delivered" }
    | { readonly state: "failed" | "withheld"; readonly reason: string }
    | {
        readonly state: "pending";
        readonly step: number;
        readonly dueAt: number;
        readonly postponed: number;
        readonly crashes: number;
        /**
         * When an extra attempt is due, in addition to the step. Set for a claim with `isExtra`
         * that was rescheduled or released. Absent or `null`: no extra attempt is owed (any more).
         */
        readonly extraAt?: number | null | undefined;
      };
  /** The start of the schedule; `null` leaves it unchanged. */
  readonly startedAt: number | null;
  readonly attempt: Attempt | null;
  /** `null` if no request was made, so that nothing is known about the endpoint. */
  readonly endpoint: EndpointReport | null;
}

/**
 * `settled`: recorded. `stale`: dropped, because this claim no longer holds the lease and the
 * report is not a 2xx; a failure under an old lease proves nothing. `gone`: the delivery does not
 * exist (any more), or it is completed.
 */
export type SettleResult = "settled" | "stale" | "gone";
