/** The part of the port that leases and records the health steps of failing endpoints. */

import type { WebhookRecord, WebhookStatus } from "./records.js";

/** Hands out the health steps that are due: warning an owner, disabling an endpoint. */
export interface EndpointHealthStore {
  /**
   * Leases webhooks whose `noticeAt` has come, by moving it to `leaseUntil`. If the process dies,
   * another one takes the step. `nextAt` as in `claim`.
   */
  claimHealthNotifications(request: {
    readonly now: number;
    readonly leaseUntil: number;
    readonly limit: number;
  }): Promise<{ readonly webhooks: readonly WebhookRecord[]; readonly nextAt: number | null }>;
  /**
   * Sets the given fields, if the webhook still fails since `failingSince` and has the status
   * `from`. Returns false, and changes nothing, if it recovered, was changed or is gone. DISABLED
   * set here leaves `failingSince` in place.
   */
  settleHealthNotification(request: {
    readonly id: string;
    readonly account: string;
    readonly failingSince: number;
    readonly from: WebhookStatus;
    readonly status: WebhookStatus;
    readonly warnedAt: number | null;
    readonly noticeAt: number | null;
    readonly now: number;
  }): Promise<boolean>;
}
