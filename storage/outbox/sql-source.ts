/** Common parts of sources on SQL databases: their interface for hosts, and the reading of rows. */

import { PostbellError } from "../../src/core/errors.js";
import { value } from "../../src/core/options.js";
import { type EventRow, listRowIds, toEventRows } from "../../src/outbox/event-row.js";
import type { OutboxClaim, OutboxSource, ParkedRow } from "../../src/outbox/outbox-source.js";
import type { AnyEventInput } from "../../src/webhooks/service.js";
import { requireTransactionValue } from "../../src/webhooks/transaction.js";

/**
 * A source with a table in the host's database, so that an event is written in the transaction
 * that it describes.
 */
export interface SqlSource<Connection> extends OutboxSource {
  /**
   * Returns the statements that create the table and its index, for the host's migrations. They
   * change nothing if both exist.
   */
  schema(): string;
  /** Runs `schema()`. Several processes may do so at once. */
  install(): Promise<void>;
  /**
   * Writes an event or several in the transaction of `connection`. They are emitted if and only if
   * it commits. Resolves with the ids, which are created here unless the events have them. Without
   * `occurredAt`, the event has happened now, by the database's clock.
   *
   * @throws `invalid_argument` if an event is invalid; nothing is written then. Other errors are
   * those of the database.
   */
  add(connection: Connection, event: AnyEventInput): Promise<string>;
  /** Writes several events. */
  add(connection: Connection, events: readonly AnyEventInput[]): Promise<readonly string[]>;
}

/**
 * Creates `add` from a function that writes rows on a connection. It refuses the pool, on which
 * rows would be committed even if the transaction is not.
 */
export function createAdd<Connection>(
  pool: unknown,
  insert: (connection: Connection, rows: readonly EventRow[]) => Promise<void>,
): SqlSource<Connection>["add"] {
  function add(connection: Connection, event: AnyEventInput): Promise<string>;
  function add(connection: Connection, events: readonly AnyEventInput[]): Promise<readonly string[]>;
  async function add(
    connection: Connection,
    events: AnyEventInput | readonly AnyEventInput[],
  ): Promise<string | readonly string[]> {
    if ((connection as unknown) === pool) {
      throw new PostbellError(
        "invalid_argument",
        "add() takes the connection of the transaction, not the pool.",
        { field: "connection" },
      );
    }
    requireTransactionValue(connection, "connection");
    const rows = toEventRows(events);
    if (rows.length > 0) await insert(connection, rows);
    return listRowIds(events, rows);
  }
  return add;
}

/** Selects the keys that can name a row. A database would read `1e1` as 10. */
export const selectRowKeys = (keys: readonly string[]): readonly string[] =>
  keys.filter((key) => /^[1-9][0-9]{0,17}$/.test(key));

type Fields = Readonly<Record<string, unknown>>;

const toNumberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

export const toClaim = (row: Fields): OutboxClaim => ({
  key: String(row["row_key"]),
  id: String(row["event_id"]),
  event: String(row["event"]),
  addedAt: Number(row["added_ms"]),
  claims: Number(row["claims"]),
  retries: Number(row["retries"]),
  unsureMs: toNumberOrNull(row["unsure_ms"]),
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
  oldestMs: toNumberOrNull(row?.["oldest_ms"] ?? null),
});

/**
 * At most 48 characters per part, so that the name of the index fits into the 63 bytes of Postgres.
 */
const TABLE = /^(?:[A-Za-z_][A-Za-z0-9_]{0,47}\.)?[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/** The option `table`: a name, or a schema and a name. */
export const tableOption = value<string>(
  "the name of a table, such as 'postbell_outbox' or 'app.outbox', of letters, digits and underscores, at most 48 in each part",
  (table) => typeof table === "string" && TABLE.test(table),
  "postbell_outbox",
);

/** Puts each part of a checked name between quotation marks. */
export const quoteIdentifier = (table: string, mark: '"' | "`"): string =>
  table
    .split(".")
    .map((part) => `${mark}${part}${mark}`)
    .join(".");
