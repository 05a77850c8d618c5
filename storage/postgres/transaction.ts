/**
 * Statements on a connection to Postgres: one for many rows, which travel as arrays. Writes of
 * several tables go together, and what is sent in one turn of the event loop leaves in one piece.
 */

import type { LeasedRound, SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import type { SqlTable } from "../sql/table.js";
import { type PgClient, runQuery } from "./client.js";
import type { PostgresStatements } from "./statements.js";

const toText = (value: SqlValue): string =>
  typeof value === "string"
    ? `"${value.replace(/["\\]/g, "\\$&")}"`
    : value === null
      ? "NULL"
      : String(value);

/** Writes the columns of rows as literals of arrays: quicker than one value for each. */
const toArrays = (rows: readonly SqlValues[]): string[] =>
  (rows[0] ?? []).map((_, column) => `{${rows.map((row) => toText(row[column] ?? null)).join(",")}}`);

export interface PostgresTransaction extends SqlTransaction {
  /** Sends the statements that begin the transaction. */
  begin: (text: string) => void;
  /** Rolls back. Rejects if the connection failed. */
  rollBack: () => Promise<void>;
  /** Commits. Rejects with the error of the first statement that failed: then nothing is stored. */
  commit: () => Promise<void>;
  /** Resolves when all statements succeeded; rejects with the error of the first that failed. */
  settled: () => Promise<void>;
}

/** A statement that changes rows of one table, and whose result nobody reads. */
interface Write {
  table: string;
  text: string;
  values: SqlValues;
}

/**
 * Sends the statements of one transaction. They wait for nothing if the connection has `pipeline`,
 * so those that are sent together cost one round trip.
 */
class Sender {
  #client: PgClient;
  #statements: PostgresStatements;
  /** The last statement: those of a connection without `pipeline` are sent one after another. */
  #last: Promise<unknown> = Promise.resolve();
  #failure: { error: unknown } | undefined;
  #writes: Write[] = [];
  #isCorked = false;

  constructor(client: PgClient, statements: PostgresStatements) {
    this.#client = client;
    this.#statements = statements;
  }

  /** Sends a query. It rejects with the error of the first statement that failed. */
  async send<R>(text: string, values: SqlValues): Promise<R[]> {
    this.#flush();
    try {
      return await this.#run<R>(text, values);
    } catch (error) {
      throw this.#failure?.error ?? error;
    }
  }

  /** Sends a write with the next statement, if not before. If it fails, later calls reject. */
  write(write: Write): void {
    if (this.#writes.some(({ table }) => table === write.table)) this.#flush();
    this.#writes.push(write);
  }

  /** Sends one or several statements without values. If they fail, later calls reject. */
  sendPlain(text: string): void {
    this.#flush();
    this.#start(() => this.#client.query(text)).catch(() => {});
  }

  /** Rolls back, whatever became of the statements before. */
  async rollBack(): Promise<void> {
    this.#writes = [];
    await this.#start(() => this.#client.query("ROLLBACK"));
  }

  /** Resolves when all statements succeeded; rejects with the error of the first that failed. */
  async settled(): Promise<void> {
    this.#flush();
    await this.#last;
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Sends the writes that wait, as one statement: each has a separate table. */
  #flush(): void {
    if (this.#writes.length === 0) return;
    const texts = this.#writes.map(({ text, values }) => ({ text, count: values.length }));
    const values = this.#writes.flatMap((write) => write.values);
    this.#writes = [];
    this.#run(this.#statements.combine(texts), values).catch(() => {});
  }

  #run<R>(text: string, values: SqlValues): Promise<R[]> {
    return this.#start(() => runQuery<R>(this.#client, text, [...values], this.#statements.nameOf(text)));
  }

  #start<R>(run: () => PromiseLike<R>): Promise<R> {
    this.#cork();
    const started = this.#client.pipeline === true ? Promise.resolve(run()) : this.#last.then(run);
    this.#last = started.catch((error: unknown) => {
      // Statements after it fail too, because the transaction is aborted.
      this.#failure ??= { error };
    });
    return started;
  }

  /** Has the socket send everything of this turn of the event loop at once: each time is costly. */
  #cork(): void {
    const stream = this.#client.connection?.stream;
    if (this.#isCorked || this.#client.pipeline !== true || !stream?.cork) return;
    this.#isCorked = true;
    stream.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      stream.uncork?.();
    });
  }
}

/**
 * Returns the statements of one transaction on a connection. `join`: the host has begun it, and
 * appends notify the channel once it commits.
 */
export function createPostgresTransaction(
  client: PgClient,
  schema: string,
  statements: PostgresStatements,
  join?: { channel: string | undefined },
): PostgresTransaction {
  const sender = new Sender(client, statements);
  let isChecked = join === undefined;
  const query = async <R>(text: string, rows: readonly SqlValues[]): Promise<R[]> =>
    rows.length === 0 ? [] : sender.send<R>(text, rows.length === 1 ? (rows[0] ?? []) : toArrays(rows));
  const write = async (
    { name: table }: SqlTable,
    text: string,
    rows: readonly SqlValues[],
  ): Promise<void> => {
    if (rows.length === 0) return;
    sender.write({ table, text, values: rows.length === 1 ? (rows[0] ?? []) : toArrays(rows) });
  };
  /** Calls a function of the schema. `values`: by the names of its parameters. */
  const call = <R>(name: string, values: Record<string, SqlValue>): Promise<R[]> =>
    sender.send<R>(statements.call(name, Object.keys(values)), Object.values(values));

  return {
    skipLocked: " FOR UPDATE SKIP LOCKED",
    settled: () => sender.settled(),
    begin: (text) => sender.sendPlain(text),
    rollBack: () => sender.rollBack(),
    async commit() {
      // After a statement that failed, Postgres rolls back instead.
      sender.sendPlain("COMMIT");
      await sender.settled();
    },
    all: (text, values = []) => sender.send(statements.query(text), values),
    forEach(text, types, lists) {
      if (!isChecked) sender.sendPlain(`SELECT "${schema}".check_encoding()::text`);
      isChecked = true;
      return query(lists.length === 1 ? statements.query(text) : statements.forEach(text, types), lists);
    },
    lockRows: (table, key, values, columns = ["*"]) =>
      query(
        statements.lockRows(values.length === 1, table, key, columns),
        values.map((value) => [value]),
      ),
    insert: (table, columns, rows, unless) =>
      write(table, statements.insert(rows.length === 1, table, columns, unless), rows),
    async insertNumbered(table, columns, rows, unless) {
      const text = statements.insertNumbered(rows.length === 1, table, columns, unless);
      const inserted = await query<{ position: number | null }>(text, rows);
      // A single row that was left out returns nothing.
      return rows.map((_, index) => inserted[index]?.position ?? undefined);
    },
    update: (table, keys, columns, rows) =>
      write(table, statements.update(rows.length === 1, table, keys, columns), rows),
    remove: (table, keys, rows) => write(table, statements.remove(rows.length === 1, table, keys), rows),
    async lock(name) {
      await sender.send("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${schema} ${name}`]);
    },
    async appendEvents(events, now, assumed) {
      const hasDeliveries = events.some(({ endpoints }) => endpoints.length > 0);
      const rows = await call<{ append_events: number | null }>("append_events", {
        p_now: now,
        p_events: JSON.stringify(events),
        p_assumed: assumed === undefined ? null : JSON.stringify(assumed),
        p_channel: (hasDeliveries && join?.channel) || null,
      });
      // The function returns a row for each event, or none.
      return rows.length < events.length ? undefined : rows.map((row) => row.append_events ?? undefined);
    },
    async leaseDue({ now, token, leaseUntil, room, perEndpoint, perSecond, turn, isChecking }) {
      const [row] = await call<Record<"leased_rows" | "served_endpoints" | "next_times", string>>(
        "lease_due",
        {
          p_now: now,
          p_token: token,
          p_lease_until: leaseUntil,
          p_fast_room: Math.max(0, room.fast),
          p_slow_room: Math.max(0, room.slow),
          p_per_endpoint: perEndpoint,
          p_per_second: perSecond,
          p_turn: turn,
          p_is_checking: String(isChecking),
        },
      );
      if (row?.next_times == null) return undefined;
      return {
        rows: JSON.parse(row.leased_rows) as LeasedRound["rows"],
        endpoints: JSON.parse(row.served_endpoints) as LeasedRound["endpoints"],
        next: JSON.parse(row.next_times) as LeasedRound["next"],
      };
    },
    async settleDelivered({ now, perEndpoint, perSecond, turn, endpoints, deliveries }) {
      const [row] = await call<{ is_settled: string; wake_at: number | null }>("settle_delivered", {
        p_now: now,
        p_per_endpoint: perEndpoint,
        p_per_second: perSecond,
        p_turn: turn,
        p_endpoints: JSON.stringify(endpoints),
        p_deliveries: JSON.stringify(deliveries),
      });
      return row?.is_settled === "t" ? { wakeAt: row.wake_at } : undefined;
    },
  };
}
