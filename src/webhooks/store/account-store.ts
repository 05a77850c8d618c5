/** The part of the port that erases accounts and events, and lists accounts for operators. */

import type { Page } from "./records.js";

/** How many records of each kind a call has erased. */
export interface ErasedRecords {
  readonly webhooks: number;
  readonly events: number;
  /** With their attempts and the excerpts of responses. */
  readonly deliveries: number;
  readonly auditEntries: number;
  /** Ids of events and idempotency keys that were remembered. */
  readonly rememberedIds: number;
}

/** Erases events and accounts, so that no later call finds them. */
export interface ErasureStore {
  /**
   * Erases a part of what is stored of an account: its webhooks first, so that nothing of it is
   * claimed any more, then its events with deliveries in every state, its audit log, and its
   * remembered ids and idempotency keys. The work of one call is bounded.
   *
   * `next` is the cursor of the next call; `null` once nothing is left. Without a cursor, it starts
   * again, which is safe at any time. What is stored of the account meanwhile may stay.
   *
   * Settlements of erased deliveries are `gone`.
   */
  eraseAccount(request: {
    account: string;
    cursor?: string | undefined;
    now: number;
  }): Promise<{ readonly erased: ErasedRecords; readonly next: string | null }>;
  /**
   * Erases events of an account with their deliveries in every state. Pending deliveries end
   * unsent, and settlements of those in flight are `gone`. The ids stay remembered as long as
   * `append` has requested, so that emitting one again does not bring its event back.
   *
   * Takes at most 100 ids. An id without an event is ignored. `left` are the ids whose events could
   * not be erased now, because other calls changed them at the same time.
   */
  eraseEvents(request: {
    account: string;
    ids: readonly string[];
    now: number;
  }): Promise<{ readonly events: number; readonly deliveries: number; readonly left: readonly string[] }>;
}

/** An account with its webhooks and deliveries in numbers. */
export interface AccountSummary {
  readonly account: string;
  /** Webhooks by their health: ENABLED and healthy, failing, failing and warned, DISABLED. */
  readonly endpoints: Readonly<Record<"ok" | "failing" | "warned" | "disabled", number>>;
  /**
   * Its pending deliveries. While no process claims, those of the newest events may be missing.
   */
  readonly waiting: number;
  /** The attempts of the last 24 whole hours and of the current hour, of all its webhooks. */
  readonly lastDay: { readonly succeeded: number; readonly failed: number };
  /**
   * When the newest of its events that are kept was stored; `null` if none is kept. It may be that
   * of an event which was freed or erased since.
   */
  readonly lastEventAt: number | null;
}

/** Lists the accounts of a storage. */
export interface AccountListStore {
  /**
   * Returns the accounts that have webhooks, in an order of the storage that stays the same
   * from page to page. `failing` returns those with a webhook that has a `failingSince`: it
   * fails, or was disabled because it failed; within one partition, the one that fails for longest
   * first.
   *
   * A page may be short, or empty, and still have a `next`: the work of one call is bounded. An
   * account that changes between two pages may be listed twice.
   */
  listAccounts(
    request: { state?: "failing" | undefined; now: number } & Page,
  ): Promise<{ readonly accounts: readonly AccountSummary[]; readonly next: string | null }>;
}
