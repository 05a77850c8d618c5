/**
 * The port to the table that a host writes its events into: what an outbox asks of it, and nothing about how.
 *
 * Rules for all methods: each is atomic for each row; each may be made again; each works on rows that are committed, whenever they were, and in whatever order:
 * no method keeps a place in the table, so that a row that is committed late is not passed over. Leases and ages go by the clock of the source, whose processes share it.
 * `outboxSourceContract` in `postbell/testing` holds a source to this page.
 */

/** A row under lease. */
export interface OutboxClaim {
  /** Names the row in the source; never given twice. */
  readonly key: string;
  /** The event's UUID: the same in every try. */
  readonly id: string;
  /** The event as JSON text, as it was added: `type`, `account`, `resource`, and `related` and `occurredAt` where they were given. */
  readonly event: string;
  /** When the row was added, in epoch milliseconds. */
  readonly addedAt: number;
  /** How often the row was claimed, this time included. */
  readonly claims: number;
  /** How many of these claims ended in `retry`, or before a `release`. */
  readonly retries: number;
  /** Milliseconds since the first claim whose outcome is unknown; `null` where it is certain that no earlier claim emitted the event. */
  readonly unsureMs: number | null;
}

/** A row that is not tried any more. */
export interface ParkedRow {
  readonly key: string;
  readonly id: string;
  readonly addedAt: number;
  readonly parkedAt: number;
  readonly reason: string;
}

/** A claim as the calls that end it name it. */
export type ClaimedRow = Pick<OutboxClaim, "key" | "claims">;

export interface OutboxSource {
  /**
   * Leases up to `limit` rows that are due, those first that have been due longest: nobody else gets them for `leaseMs`. A row is due when it is added, when its lease has run out, and when its delay is over.
   * Never waits for a row that somebody else is working on, and holds no transaction open when it resolves.
   * From here on the outcome for a row counts as unknown, until `retry` says otherwise.
   */
  claim(request: { readonly limit: number; readonly leaseMs: number }): Promise<readonly OutboxClaim[]>;
  /** Removes rows: their events were emitted, or are not wanted. True also after the lease, and for parked rows; those that are gone already are ignored. */
  remove(keys: readonly string[]): Promise<void>;
  /** Makes a row due after `delayMs`. `isUnsure: false`: it is certain that neither this claim nor one before it emitted the event. Changes nothing where the row was claimed again since, or is parked. */
  retry(request: ClaimedRow & { readonly delayMs: number; readonly isUnsure: boolean }): Promise<void>;
  /** Ends the tries: the row stays, with the reason (at most 500 characters), until it is released or removed. Changes nothing where the row was claimed again since. */
  park(request: ClaimedRow & { readonly reason: string }): Promise<void>;
  /** The rows that are parked, the longest parked first, at most `limit`. */
  parked(request: { readonly limit: number }): Promise<readonly ParkedRow[]>;
  /** Makes parked rows due now, each as if no claim of it were unsure or had ended without a word. Others are ignored. */
  release(keys: readonly string[]): Promise<void>;
  /** Rows that are to be emitted, rows that are parked, and the age in milliseconds of the oldest that is to be emitted (`null` where none is). */
  stats(): Promise<{
    readonly waiting: number;
    readonly parked: number;
    readonly oldestMs: number | null;
  }>;
}
