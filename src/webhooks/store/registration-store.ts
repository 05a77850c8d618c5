/**
 * The parts of the port that keep webhooks, the health steps of failing endpoints, and the log of
 * what was done to webhooks.
 */

import type { Page, WebhookChange, WebhookRecord, WebhookStatus } from "./records.js";

/** Creates, reads, changes and removes webhooks. */
export interface RegistrationStore {
  /**
   * Returns a new UUID for a webhook of this account. The store can tell from it where the account
   * is.
   */
  newWebhookId(account: string): string;
  /**
   * Stores a webhook, unless the account has `accountLimit` webhooks, or, for an ENABLED one,
   * `enabledLimit` ENABLED webhooks. If the account used the idempotency key before `expiresAt` of
   * that use, returns the record as it was created then (`replayed`), or `key_reused` if the digest
   * differs. An id that is already stored adds nothing: `created`, with the webhook as it is now.
   */
  createWebhook(request: {
    webhook: WebhookRecord;
    enabledLimit: number;
    /** For ENABLED and DISABLED webhooks together. */
    accountLimit: number;
    idempotency: {
      key: string;
      digest: string;
      expiresAt: number;
    } | null;
    now: number;
  }): Promise<
    | { readonly result: "created" | "replayed"; readonly webhook: WebhookRecord }
    | { readonly result: "enabled_limit" | "account_limit" | "key_reused" }
  >;
  /** Returns a webhook of any account; `undefined` if there is no such webhook. */
  getWebhook(id: string): Promise<WebhookRecord | undefined>;
  /** Returns the webhooks of an account, oldest first. */
  listWebhooks(
    request: { account: string } & Page,
  ): Promise<{ readonly webhooks: readonly WebhookRecord[]; readonly next: string | null }>;
  /**
   * Applies a change. Enabling counts against `enabledLimit`, not counting the webhook itself. A
   * new URL or DISABLED → ENABLED raises the generation and clears the health; ENABLED → DISABLED
   * clears it too. Pending deliveries stay and go to the new URL. With `owner`, nothing is changed
   * unless the webhook's `subscriberId` equals it: `not_owner`, checked in the same step as the
   * change.
   */
  updateWebhook(request: {
    id: string;
    account: string;
    change: WebhookChange;
    owner?: string | undefined;
    enabledLimit: number;
    now: number;
  }): Promise<
    | { readonly result: "updated"; readonly webhook: WebhookRecord }
    | { readonly result: "enabled_limit" | "not_found" | "not_owner" }
  >;
  /**
   * Removes a webhook with its deliveries, including those in flight. All other methods see it
   * removed at once; later calls may free its space, a little at a time. Returns false if there is
   * no such webhook.
   */
  removeWebhook(request: { id: string; account: string; now: number }): Promise<boolean>;
}

/** An entry of the audit log, as it is stored. */
export interface AuditRecord {
  readonly account: string;
  readonly at: number;
  /** JSON of less than 2 000 characters. A store returns it unchanged and never parses it. */
  readonly entry: string;
  /** True for an entry about a delivery. Those never push out the others. */
  readonly isDelivery: boolean;
}

/** Keeps the audit log. A storage without it has neither method. */
export interface AuditLogStore {
  /**
   * Adds entries of one partition, at most 250, and removes the oldest entries of their accounts
   * beyond `keep`, at least as many as were added. Entries about deliveries, and the others, are
   * counted and removed apart. Best effort: if the call is repeated, the log may have its entries
   * twice.
   */
  addAuditEntries?(request: {
    entries: readonly AuditRecord[];
    /** How many entries of an account are kept, 1 to 10 000, and as many about its deliveries. */
    keep: number;
    now: number;
  }): Promise<void>;
  /**
   * Returns the entries of an account, newest first, those about deliveries among the others. Those
   * of one millisecond and one `isDelivery` are in the order in which they were added, also by
   * several calls.
   */
  listAuditEntries?(
    request: { account: string } & Page,
  ): Promise<{ readonly entries: readonly AuditRecord[]; readonly next: string | null }>;
}

/** Hands out the health steps that are due: warning an owner, disabling an endpoint. */
export interface EndpointHealthStore {
  /**
   * Leases webhooks whose `noticeAt` has come, by moving it to `leaseUntil`. If the process dies,
   * another one takes the step. `nextAt` as in `claim`.
   */
  claimHealthNotifications(request: {
    now: number;
    leaseUntil: number;
    limit: number;
  }): Promise<{ readonly webhooks: readonly WebhookRecord[]; readonly nextAt: number | null }>;
  /**
   * Sets these fields, if the webhook still fails since `failingSince` and has the status
   * `from`. Returns false, and changes nothing, if it recovered, was changed or is gone. DISABLED
   * set here leaves `failingSince` in place.
   */
  settleHealthNotification(request: {
    id: string;
    account: string;
    failingSince: number;
    from: WebhookStatus;
    status: WebhookStatus;
    warnedAt: number | null;
    noticeAt: number | null;
    now: number;
  }): Promise<boolean>;
}
