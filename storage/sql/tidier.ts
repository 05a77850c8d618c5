/** Decides when a process frees what is past its retention: not at every claim. */

import type { SqlStoreContext } from "./store-context.js";
import { tidy } from "./upkeep.js";

/** How late a process notices what others have left to free. */
const INTERVAL_MS = 1_000;

/** The most accounts whose number of events one call checks. */
const MOST_ACCOUNTS = 5;

/** The most accounts that wait for a check. Others are noted again when they complete more. */
const MOST_NOTED = 10_000;

/** An account may exceed its number of events by this part of it before it is checked. */
const TOLERANCE = 0.05;

export interface Tidier {
  /** Frees a part of what is over, if the time for it has come. */
  tidy(now: number): Promise<void>;
  /** Notes the account of each event, or each delivery, that was completed. */
  noteCompleted(accounts: readonly string[]): void;
  /** Notes that a webhook was removed. */
  noteRemoved(): void;
}

export function createTidier(context: SqlStoreContext): Tidier {
  const { database, retention, logger } = context;
  const due = Math.max(1, Math.floor(retention.events * TOLERANCE));
  /** Completed deliveries by account since its last check. */
  const completed = new Map<string, number>();
  let at = Number.NEGATIVE_INFINITY;
  let isRunning = false;

  const listDue = (): readonly string[] => {
    const accounts: string[] = [];
    for (const [account, count] of completed) {
      if (count >= due) accounts.push(account);
      if (accounts.length === MOST_ACCOUNTS) break;
    }
    return accounts;
  };

  return {
    async tidy(now) {
      const accounts = listDue();
      if (isRunning || (now < at && accounts.length === 0)) return;
      isRunning = true;
      try {
        const next = await database.write((transaction) => tidy(transaction, now, context, accounts), {
          isDurable: false,
        });
        at = Math.min(next, now + INTERVAL_MS);
        if (next > now) for (const account of accounts) completed.delete(account);
      } catch (error) {
        // The claim that follows reports an outage. Nothing else may stop deliveries.
        at = now + INTERVAL_MS;
        logger.warn({ error }, "old events could not be freed; trying again later");
      } finally {
        isRunning = false;
      }
    },
    noteRemoved() {
      at = Number.NEGATIVE_INFINITY;
    },
    noteCompleted(accounts) {
      for (const account of accounts) {
        if (completed.size >= MOST_NOTED && !completed.has(account)) continue;
        completed.set(account, (completed.get(account) ?? 0) + 1);
      }
    },
  };
}
