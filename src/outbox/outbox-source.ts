/**
 * The port to the table that a host writes its events into.
 *
 * Rules for all methods: each is atomic for each row, and can be repeated. Each works on committed
 * rows, in whatever order they were committed. No method keeps a position in the table, so that a
 * row that is committed late is not missed. Leases and ages use the clock of the source, which all
 * processes share. `outboxSourceContract` in `postbell/testing` tests a source for these rules.
 */

/** A leased row. */
export interface OutboxClaim {
  /** Names the row in the source. A key is never used twice. */
  readonly key: string;
  /** The event's UUID: the same in every try. */
  readonly id: string;
  /**
   * The event as JSON text, as it was added: `type`, `account`, `resource`, and optionally
   * `related` and `occurredAt`.
   */
  readonly event: string;
  /** Time when the row was added, in epoch milliseconds. */
  readonly addedAt: number;
  /** Number of claims of the row, including this one. */
  readonly claims: number;
  /** Number of these claims that ended in `retry`, or before a `release`. */
  readonly retries: number;
  /**
   * Milliseconds since the first claim whose result is unknown; `null` if it is certain that no
   * earlier claim emitted the event.
   */
  readonly unsureMs: number | null;
}

/** A row that is not retried any more. */
export interface ParkedRow {
  readonly key: string;
  readonly id: string;
  readonly addedAt: number;
  readonly parkedAt: number;
  readonly reason: string;
}

/** Names a claim in the calls that end it. */
export type ClaimedRow = Pick<OutboxClaim, "key" | "claims">;

/** A table of events. All methods follow the rules at the top of this file. */
export interface OutboxSource {
  /**
   * Leases up to `limit` due rows, those that have been due longest first. Nobody else gets them
   * for `leaseMs`. A row is due once it is added, once its lease has expired, and once its delay is
   * over. Never waits for a locked row, and leaves no transaction open. From now on, the result for
   * a row counts as unknown, until `retry` says otherwise.
   */
  claim(request: { limit: number; leaseMs: number }): Promise<OutboxClaim[]>;
  /**
   * Removes rows whose events were emitted or are not wanted, also after their lease, and also
   * parked rows. Ignores rows that do not exist.
   */
  remove(keys: string[]): Promise<void>;
  /**
   * Makes a row due after `delayMs`. `isUnsure` is false if it is certain that neither this claim
   * nor an earlier one emitted the event. Changes nothing if the row was claimed again or is
   * parked.
   */
  retry(request: ClaimedRow & { delayMs: number; isUnsure: boolean }): Promise<void>;
  /**
   * Stops retries. The row stays, with the reason (at most 500 characters), until it is released or
   * removed. Changes nothing if the row was claimed again.
   */
  park(request: ClaimedRow & { reason: string }): Promise<void>;
  /** Lists parked rows, the longest parked first, at most `limit`. */
  parked(request: { limit: number }): Promise<ParkedRow[]>;
  /**
   * Makes parked rows due now, and forgets their unknown results and crashes. Ignores other rows.
   */
  release(keys: string[]): Promise<void>;
  /**
   * Counts the rows to emit and the parked rows. `oldestMs` is the age in milliseconds of the
   * oldest row to emit, or `null` if there are no such rows.
   */
  stats(): Promise<{
    readonly waiting: number;
    readonly parked: number;
    readonly oldestMs: number | null;
  }>;
}
