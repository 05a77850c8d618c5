/** Recovers what a webhook missed, step by step, within a budget of events for each account. */

import type { Clock } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { notFound } from "../call-arguments.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { WebhookRecord, WebhookStore } from "../store.js";

/**
 * Creates deliveries of all kept events since `since` that `webhook` missed; resolves with how
 * many.
 *
 * A recovery that has begun examines all events, so none is left out. They count against the
 * account's budget, which may thereby go below zero: then the next recovery has to wait until the
 * minutes have made up for it.
 *
 * @throws `rate_limited` while the account's budget is used up, `not_found` where the webhook was
 * removed.
 */
export type Recover = (webhook: WebhookRecord, since: number) => Promise<number>;

/** The most events to examine in one call of the storage; the storage may examine fewer. */
const EVENTS_PER_STEP = 500;

/** Runs the calls of one key one after the other, those of different keys side by side. */
function createQueue(): <T>(key: string, run: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (key, run) => {
    const own = (last.get(key) ?? Promise.resolve()).then(run);
    const settled = own
      .catch(() => {})
      .then(() => {
        if (last.get(key) === settled) last.delete(key);
      });
    last.set(key, settled);
    return own;
  };
}

export function createRecover({
  store,
  settings: { delivery, limits },
  clock,
}: {
  readonly store: WebhookStore;
  readonly settings: WebhooksSettings;
  readonly clock: Clock;
}): Recover {
  const everyMs = delivery.recoverEveryMs;
  const budget = createRateLimit({ perMinute: limits.recoveredEventsPerMinute, clock });
  const inTurn = createQueue();

  const requireBudget = (account: string): void => {
    const seconds = budget.take(account);
    if (seconds === 0) return;
    throw new PostbellError(
      "rate_limited",
      `Recoveries of this account have examined too many events; try again in ${seconds} s.`,
      { retryAfterSeconds: seconds },
    );
  };

  const recover: Recover = async ({ id: webhookId, account, createdAt }, since) => {
    requireBudget(account);
    let dueAt = store.now() + everyMs;
    let count = 0;
    let cursor: string | undefined;
    do {
      const request = {
        webhookId,
        account,
        since: Math.max(since, createdAt),
        dueAt,
        everyMs,
        now: store.now(),
        cursor,
        limit: EVENTS_PER_STEP,
      };
      const step = await store.recover(request).catch((error: unknown) => {
        // A storage that is full, too, has examined the events by then.
        budget.charge(account, EVENTS_PER_STEP);
        throw error;
      });
      if (!step) throw notFound("webhook");
      budget.charge(account, step.examined);
      count += step.count;
      dueAt += step.count * everyMs;
      cursor = step.next ?? undefined;
      // A storage in this process answers without giving others a turn.
      if (cursor !== undefined) await new Promise<void>((resolve) => setImmediate(resolve));
    } while (cursor !== undefined);
    return count;
  };

  // One at a time, or all of an account would begin before the first has used up the budget.
  return (webhook, since) => inTurn(webhook.account, () => recover(webhook, since));
}
