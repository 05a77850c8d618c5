/**
 * Remembers who was already mailed about one failure of an endpoint, so that retries reach only the
 * others.
 */

import { LRUCache } from "lru-cache";
import type { Clock } from "../../src/core/clock.js";
import type { Logger } from "../../src/core/logger.js";
import { createUnsent } from "./mail-error.js";
import type { MailOutcome } from "./mail-outcome.js";

/** Longest time for which a recipient may be deferred while another one has the mail. */
const MAX_DEFERRED_MS = 3_600_000;
const MAX_PERIODS = 10_000;

/** The mail about one webhook, kind and period of failing. */
export interface MailPeriod {
  /** Addresses that need no further try: they have the mail, or are refused. */
  readonly served: Set<string>;
  /** True if somebody has the mail. */
  isSent: boolean;
  /** Monotonic time. */
  deferredAt: number | undefined;
  /** Until this monotonic time, an abandoned mail may still arrive, so that no other is sent. */
  lateUntil: number;
}

export interface MailPeriods {
  readonly get: (messageId: string) => MailPeriod;
  /** @throws `mail_not_sent` while a recipient has to be retried. */
  readonly record: (
    period: MailPeriod,
    outcome: MailOutcome,
    about: { readonly kind: string; readonly webhook: string },
  ) => void;
}

export function createMailPeriods(clock: Clock, logger: Logger): MailPeriods {
  const periods = new LRUCache<string, MailPeriod>({ max: MAX_PERIODS });
  return {
    get(messageId) {
      const period: MailPeriod = periods.get(messageId) ?? {
        served: new Set(),
        isSent: false,
        deferredAt: undefined,
        lateUntil: Number.NEGATIVE_INFINITY,
      };
      periods.set(messageId, period);
      return period;
    },
    record(period, { accepted, refused, deferred }, about) {
      for (const address of accepted) period.served.add(address);
      period.isSent ||= accepted.length > 0;
      for (const { address, status } of refused) {
        period.served.add(address);
        logger.error({ ...about, recipient: address, status }, "a recipient was refused by the mail server");
      }
      if (deferred.length === 0) return;
      period.deferredAt ??= clock.monotonic();
      if (!period.isSent || clock.monotonic() - period.deferredAt < MAX_DEFERRED_MS)
        throw createUnsent(
          `the mail server deferred it (${deferred.map(({ status }) => status).join(", ")})`,
        );
      for (const { address, status } of deferred) {
        period.served.add(address);
        logger.error({ ...about, recipient: address, status }, "a recipient was deferred for too long");
      }
    },
  };
}
