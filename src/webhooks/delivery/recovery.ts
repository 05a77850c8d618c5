/** Recovers missed events of a webhook, step by step, within a budget for each account. */

import type { Clock } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { notFound } from "../call-arguments.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { WebhookRecord, WebhookStore } from "../store.js";

/**
 * Creates deliveries of all stored events since `since` that `webhook` missed, and resolves with
 * their number.
 *
 * A recovery that has begun examines every event. The events count against the account's budget,
 * which can become negative: then the next recovery has to wait until the budget has refilled.
 *
 * @throws `rate_limited` while the account's budget is empty, `not_found` if the webhook was
 * deleted.
 */
export type Recover = (webhook: WebhookRecord, since: number) => Promise<number>;

/** The maximum number of events to examine in one call; the storage may examine fewer. */
const EVENTS_PER_STEP = 500;

/** Runs the calls of one key one after another, those of different keys concurrently. */
function createKeyedQueue(): <T>(key: string, run: () => Promise<T>) => Promise<T> {
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
  const queue = createKeyedQueue();

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
        // A storage that is full has examined the events all the same.
        budget.charge(account, EVENTS_PER_STEP);
        throw error;
      });
      if (!step) throw notFound("webhook");
      budget.charge(account, step.examined);
      count += step.count;
      dueAt += step.count * everyMs;
      cursor = step.next ?? undefined;
      // The memory storage never yields to the event loop.
      if (cursor !== undefined) await new Promise<void>((resolve) => setImmediate(resolve));
    } while (cursor !== undefined);
    return count;
  };

  // One at a time: otherwise all recoveries of an account could begin before the budget is charged.
  return (webhook, since) => queue(webhook.account, () => recover(webhook, since));
}
