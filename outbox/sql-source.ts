/** What the sources on SQL databases have in common: what a host sees of them, and how their rows are read. */

import { PostbellError } from "../src/core/errors.js";
import type { EventInput } from "../src/webhooks/service.js";
import { type EventRow, listRowIds, toEventRows } from "./event-row.js";
import type { OutboxClaim, OutboxSource, ParkedRow } from "./outbox-source.js";

/** A source whose table lies beside the host's own, so that an event is written in the transaction that it tells of. */
export interface SqlSource<Connection> extends OutboxSource {
  /** The statements that make the table and its index, for the host's migrations. They change nothing where both are there. */
  schema(): string;
  /** Runs `schema()`. Several processes may do so at once. */
  install(): Promise<void>;
  /**
   * Writes an event, or several, in the transaction that `connection` is in: they are emitted if it commits, and only then.
   * Resolves with the ids, which are made here unless the events have them. Without `occurredAt` the event has happened now, by the database's clock.
   *
   * Errors: `invalid_argument` where an event cannot be used, and nothing was written; else those of the database.
   */
  add(connection: Connection, event: EventInput): Promise<string>;
  /** The same with several events. */
  add(connection: Connection, events: readonly EventInput[]): Promise<readonly string[]>;
}

/** `add` over a function that writes rows on a connection. On the pool itself the rows would be committed whatever becomes of the transaction. */
export function addOn<Connection>(
  pool: unknown,
  insert: (connection: Connection, rows: readonly EventRow[]) => Promise<void>,
): SqlSource<Connection>["add"] {
  function add(connection: Connection, event: EventInput): Promise<string>;
  function add(connection: Connection, events: readonly EventInput[]): Promise<readonly string[]>;
  async function add(
    connection: Connection,
    events: EventInput | readonly EventInput[],
  ): Promise<string | readonly string[]> {
    if ((connection as unknown) === pool) {
      throw new PostbellError(
        "invalid_argument",
        "add() takes the connection that the transaction is on, not the pool.",
        { field: "connection" },
      );
    }
    const rows = toEventRows(events);
    if (rows.length > 0) await insert(connection, rows);
    return listRowIds(events, rows);
  }
  return add;
}

/** Those that can name a row. A database would take `1e1` for 10. */
export const rowKeys = (keys: readonly string[]): readonly string[] =>
  keys.filter((key) => /^[1-9][0-9]{0,17}$/.test(key));

type Fields = Readonly<Record<string, unknown>>;

const numberOrNull = (given: unknown): number | null => (given === null ? null : Number(given));

export const toClaim = (row: Fields): OutboxClaim => ({
  key: String(row["row_key"]),
  id: String(row["event_id"]),
  event: String(row["event"]),
  addedAt: Number(row["added_ms"]),
  claims: Number(row["claims"]),
  retries: Number(row["retries"]),
  unsureMs: numberOrNull(row["unsure_ms"]),
});

export const toParkedRow = (row: Fields): ParkedRow => ({
  key: String(row["row_key"]),
  id: String(row["event_id"]),
  addedAt: Number(row["added_ms"]),
  parkedAt: Number(row["parked_ms"]),
  reason: String(row["reason"]),
});

export const toStats = (row: Fields | undefined): Awaited<ReturnType<OutboxSource["stats"]>> => ({
  waiting: Number(row?.["waiting"]),
  parked: Number(row?.["parked"]),
  oldestMs: numberOrNull(row?.["oldest_ms"] ?? null),
});
