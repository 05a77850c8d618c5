/** The queries of appending events. */

/** An event that is stored or remembered, by its account and its id. */
export const KNOWN = `SELECT account, id, digest, receivers FROM {events} WHERE account = $1 AND id = $2
  UNION ALL
  SELECT account, id, digest, receivers FROM {remembered} WHERE account = $1 AND id = $2 AND expires_at > $3`;

export const KNOWN_TYPES = ["text", "text", "int"] as const;

export interface KnownRow {
  readonly account: string;
  readonly id: string;
  readonly digest: string;
  readonly receivers: string;
}

/** The webhooks of an account. */
export const RECEIVERS = `SELECT w.account, w.id, w.position, w.event_types, e.status, e.updated_at, e.pending
  FROM {webhooks} w JOIN {endpoints} e ON e.position = w.position WHERE w.account = $1 ORDER BY w.position`;

export const RECEIVERS_TYPES = ["text"] as const;

export interface ReceiverRow {
  readonly account: string;
  readonly id: string;
  readonly position: number;
  readonly event_types: string | null;
  readonly status: string;
  /** Grows with every change that decides who gets an event. */
  readonly updated_at: number;
  readonly pending: number;
}
