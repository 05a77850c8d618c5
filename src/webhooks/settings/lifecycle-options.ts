/**
 * Options of `createWebhooks` for what takes days: retries, failing endpoints, and what is kept
 * afterwards.
 */

/**
 * When a failed delivery is attempted again. With the defaults there are 14 attempts: at 0, 0:15,
 * 0:45, 1:45, 3:45, 7:45 and 15:45 hours, then every 8 hours up to 71:45. `postbell plan` shows a
 * schedule.
 *
 * @example
 * // Retry after 1, 5 and 30 minutes, then every hour for a day.
 * retry: { intervalsMs: [60_000, 300_000, 1_800_000], everyMs: 3_600_000, windowMs: 86_400_000 }
 */
export interface RetryOptions {
  /**
   * Milliseconds between the first attempts, in order, at most 100 numbers. Default 15 and 30
   * minutes, then 1, 2, 4 and 8 hours. Begin with shorter intervals if events lose their value
   * within minutes.
   */
  readonly intervalsMs?: readonly number[] | undefined;
  /** Milliseconds between the attempts after those of `intervalsMs`. Default 8 hours. */
  readonly everyMs?: number | undefined;
  /**
   * No retry is scheduled later than this many milliseconds after the first attempt. Default 72
   * hours. Shorten it if a late event is worthless; at most 1 000 times `everyMs`.
   */
  readonly windowMs?: number | undefined;
  /**
   * Largest random delay of an attempt, as a fraction of the interval before it, from 0 to 1.
   * Default 0.1. It never makes an attempt early. Raise it if many endpoints fail and recover
   * together.
   */
  readonly jitter?: number | undefined;
  /** Upper limit of that delay in milliseconds. Default 15 minutes. */
  readonly maxJitterMs?: number | undefined;
}

/**
 * When an endpoint that keeps failing is reported and disabled. Both count from its first failure
 * after the last 2xx.
 *
 * @example
 * // Warn after a day, disable after a week.
 * health: { warnAfterMs: 86_400_000, disableAfterMs: 604_800_000 }
 */
export interface EndpointHealthOptions {
  /** Milliseconds of failing after which `notify.warning` is called. Default 72 hours. */
  readonly warnAfterMs?: number | undefined;
  /**
   * Milliseconds of failing after which the endpoint is disabled and `notify.disabled` is called.
   * Default 96 hours, at least `warnAfterMs`. Raise it if owners need more time to react.
   */
  readonly disableAfterMs?: number | undefined;
}

/**
 * How long completed deliveries stay in the delivery log, from where they can be resent and
 * recovered. Use the same values on all services of a storage.
 *
 * @example
 * retention: { ms: 7 * 86_400_000, events: 50_000 }
 */
export interface RetentionOptions {
  /**
   * Milliseconds for which completed deliveries and their events are kept. Default 72 hours. With 0
   * they are removed at once. Raise it to resend older events; the storage grows with it.
   */
  readonly ms?: number | undefined;
  /** Completed events kept per account; beyond it the oldest are removed. Default 10 000. */
  readonly events?: number | undefined;
}
