/** The part of the port that erases accounts and events, and lists accounts for operators. */

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
    readonly account: string;
    readonly cursor?: string | undefined;
    readonly now: number;
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
    readonly account: string;
    readonly ids: readonly string[];
    readonly now: number;
  }): Promise<{ readonly events: number; readonly deliveries: number; readonly left: readonly string[] }>;
}
