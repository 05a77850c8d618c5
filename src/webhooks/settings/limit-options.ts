/** Options of `createWebhooks` that bound what accounts, requests, events and hooks may take. */

/**
 * The limits of the service. Each of them exists so that one account, one event or one hook cannot
 * take what the others need.
 *
 * @example
 * limits: { enabledWebhooks: 50, notificationBytes: 1_048_576, hookMs: 2_000 }
 */
export interface WebhookLimits {
  /**
   * ENABLED webhooks per account. Default 15, 1 to 10 000. Each of them gets every event it wants.
   */
  readonly enabledWebhooks?: number | undefined;
  /** Webhooks per account, ENABLED and DISABLED together. Default 100, 1 to 10 000. */
  readonly webhooks?: number | undefined;
  /** Largest body of a registration request in bytes. Default 65 536, 1 024 to 16 MiB. */
  readonly requestBytes?: number | undefined;
  /**
   * Registration requests per minute and account, and per invalid key, in this process. Default
   * 600. 0 means no limit, for hosts that limit requests themselves.
   */
  readonly requestsPerMinute?: number | undefined;
  /**
   * Recoveries per minute and webhook, and tests per minute and webhook, in this process. Default
   * 6. 0 means no limit.
   */
  readonly repairsPerMinute?: number | undefined;
  /**
   * Events of one account that recoveries may examine per minute, in this process. Default 100 000.
   * 0 means no limit. A recovery that has begun always finishes, even beyond the limit. Later ones
   * are refused until the average is met again. Lower it to spare the storage.
   */
  readonly recoveredEventsPerMinute?: number | undefined;
  /** Resources in one notification. Default 100, 1 to 10 000. Larger events are refused. */
  readonly entries?: number | undefined;
  /**
   * Largest notification in bytes. Default 262 144, 1 024 to 16 MiB. Larger events are refused.
   * Raise it for large records, if the endpoints accept such bodies.
   */
  readonly notificationBytes?: number | undefined;
  /**
   * Time limit of a hook in milliseconds. Default 5 000, at most a minute. For `resolveReference`
   * it covers all lookups of one event, at most four for each of `entries`. Registration requests
   * should be answered within five seconds, so raise it with care.
   */
  readonly hookMs?: number | undefined;
}
