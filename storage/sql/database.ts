/**
 * The port to an SQL database: transactions, and statements for many rows. SQLite runs a statement
 * for each row, because a call costs little there. Postgres gets all rows with one statement,
 * because a round trip costs much.
 */

import type { ClaimRequest, Lane } from "../../src/webhooks/store.js";
import type { SqlTable } from "./table.js";
import type { DueRow, EndpointRow } from "./webhook-tables.js";

export type SqlValue = string | number | null;

/** The values of one row, in the order of the columns that were named. */
export type SqlValues = readonly SqlValue[];

/** The name of a column, in the form of a list: `["position", "state"]`. */
export type Columns = readonly string[];

/** The type of a parameter, where a database has to be told. */
export type ParameterType = "int" | "text";

/** An event to insert, with its deliveries. Its texts are encoded. */
export interface NewEvent {
  account: string;
  id: string;
  type: string;
  subject: string | null;
  /** Null if it has none. */
  tags: readonly string[] | null;
  digest: string;
  payload: string;
  bytes: number;
  rememberUntil: number;
  /** A JSON list of the ids of the webhooks that get it. */
  receivers: string;
  isTest: boolean;
  /** The positions of these webhooks. */
  endpoints: readonly number[];
  /** The positions of the webhooks whose filters refuse it. */
  filtered?: readonly number[] | undefined;
  /** How long it is kept once it is completed. Absent: the retention of all. */
  keepMs?: number | undefined;
}

/** An account as a plan takes it for granted that was made without reading. */
export interface AssumedAccount {
  account: string;
  /** The positions and versions of its webhooks, as `position:version,position:version`. */
  webhooks: string;
  /** The most deliveries that may be pending before the events are added. */
  maxPending: number;
}

/** The request for one round of a claim. */
export interface LeaseRoundRequest extends ClaimRequest {
  perEndpoint: number;
  /** `null` for any number. */
  perSecond: number | null;
  /** The first of as many numbers as endpoints may be served; see `reserveTurns`. */
  turn: number;
  /** True if nothing is to be leased while changes wait to be added up, or leases have expired. */
  isChecking: boolean;
}

/** When an endpoint of each lane is ready, and when a lease expires; null for never. */
export type NextTimes = Record<Lane | "lease", number | null>;

/** The columns of an endpoint that a claim reads. */
export type ServedEndpoint = Pick<
  EndpointRow,
  "position" | "id" | "lane" | "status" | "updated_at" | HealthColumn | "ready_at"
>;
type HealthColumn = "failing_since" | "warned_at" | "notice_at";

/** The result of a round: what was leased, and the endpoints that were served, as they are now. */
export interface LeasedRound {
  rows: DueRow[];
  endpoints: ServedEndpoint[];
  next: NextTimes;
}

/** An endpoint, and how many of its deliveries were delivered. All are reported as successes. */
export interface DeliveredEndpoint {
  id: string;
  account: string;
  generation: number;
  lane: string;
  /** The hour of all attempts; see `recent-attempts.ts`. */
  hour: number;
  count: number;
  /** The sum of all attempts. */
  durationMs: number;
  /** The last attempt as JSON. */
  lastAttempt: string;
  /** How long all attempts took. */
  sketch: string;
}

/** A delivery in flight that was delivered. */
export interface DeliveredRow {
  token: string;
  account: string;
  position: number;
  event: number;
  /** True if its event had no other delivery when it was claimed, and has no `keepMs`. */
  isOnly: boolean;
  startedAt: number;
  endedAt: number;
  /** All attempts, as they are stored. */
  attempts: string;
}

/** Settlements of the common kind. */
export interface DeliveredBatch {
  now: number;
  perEndpoint: number;
  perSecond: number | null;
  turn: number;
  endpoints: readonly DeliveredEndpoint[];
  deliveries: readonly DeliveredRow[];
}

/** A transaction. Its methods reject with the error of the database. */
export interface SqlTransaction {
  /** Runs a statement. Its parameters are `$1`, `$2` … */
  all<R>(text: string, values?: SqlValues): Promise<R[]>;
  /**
   * Runs a query once for each of `lists`, and returns all rows: those of the first list, then
   * those of the second. Names of columns must differ.
   */
  forEach<R>(text: string, types: readonly ParameterType[], lists: readonly SqlValues[]): Promise<R[]>;
  /**
   * Reads the rows of a table with positions whose `key` is one of `values`, and locks them until
   * the transaction ends: in the order of their positions, whatever the key, so that transactions
   * that lock the same rows do not wait for each other. Without `columns`, it reads all.
   */
  lockRows<R>(table: SqlTable, key: string, values: readonly SqlValue[], columns?: Columns): Promise<R[]>;
  /** Inserts rows. A row whose `unless` columns are those of another row is left out. */
  insert(table: SqlTable, columns: Columns, rows: readonly SqlValues[], unless?: Columns): Promise<void>;
  /**
   * Inserts rows into a table with positions, and returns their positions, in order. With `unless`,
   * a row whose columns are those of another row is left out, and has no position.
   */
  insertNumbered(
    table: SqlTable,
    columns: Columns,
    rows: readonly SqlValues[],
    unless?: Columns,
  ): Promise<(number | undefined)[]>;
  /** Sets columns of the rows that have these keys. Each row: the keys, then the columns. */
  update(table: SqlTable, keys: Columns, columns: Columns, rows: readonly SqlValues[]): Promise<void>;
  /** Deletes the rows that have these keys. */
  remove(table: SqlTable, keys: Columns, rows: readonly SqlValues[]): Promise<void>;
  // Calls of the common kind, in one statement each. Absent where the general way costs no more.
  /**
   * Inserts events with everything that belongs to them, as `insertEvents` does. In a transaction
   * of the host, it also notifies the workers once that commits. With `assumed`, it returns
   * `undefined` and inserts nothing if one of the events is known, or an account is not as assumed.
   */
  appendEvents?(
    events: readonly NewEvent[],
    now: number,
    assumed?: readonly AssumedAccount[],
  ): Promise<(number | undefined)[] | undefined>;
  /** Leases what is due. Returns `undefined` if it has checked, and catching up comes first. */
  leaseDue?(request: LeaseRoundRequest): Promise<LeasedRound | undefined>;
  /**
   * Settles deliveries that were delivered. Returns when workers should claim (`null`: no change),
   * or `undefined` if one of the endpoints or deliveries is not as assumed: then nothing changed.
   */
  settleDelivered?(batch: DeliveredBatch): Promise<{ wakeAt: number | null } | undefined>;
  /** Waits until no other transaction holds the lock of this name, and holds it until the end. */
  lock(name: string): Promise<void>;
  /** The text that ends a query which locks its rows and leaves out those that are locked. */
  skipLocked: string;
}

/** How a transaction is run. */
export interface TransactionOptions {
  /**
   * False if losing the transaction in a crash of the server does no harm. Default true: the
   * promise resolves when the transaction is durable.
   */
  isDurable?: boolean | undefined;
}

/** How a read is run. */
export interface SqlReadOptions {
  /**
   * True if `work` runs one statement and nothing else. A database whose statements cost a round
   * trip then needs no transaction around it. Default false.
   */
  isOneStatement?: boolean | undefined;
}

/** A database, whatever its kind. Its methods reject with `storage_unavailable` and its like. */
export interface SqlDatabase {
  /** True if its transactions have `settleDelivered`. */
  settlesDelivered: boolean;
  /** True if a transaction that writes keeps all others waiting. */
  hasOneWriter: boolean;
  /** Runs `work` in a transaction. It may be run several times, until one of them commits. */
  write<T>(work: (transaction: SqlTransaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /**
   * Like `write`, but only if a connection is free now: otherwise it resolves with `undefined`, and
   * nothing has happened. For calls in a transaction of the host, which holds a connection itself:
   * if all are held by hosts that wait for another one, none of them goes on. Absent: a connection
   * is never free then.
   */
  writeIfFree?<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T | undefined>;
  /** Runs `work`, which only reads, on one state of the database. */
  read<T>(work: (transaction: SqlTransaction) => Promise<T>, options?: SqlReadOptions): Promise<T>;
  /**
   * Runs `work` in the transaction that the host has begun on its connection. Absent: a host cannot
   * do so with this database.
   */
  join?<T>(connection: object, work: (transaction: SqlTransaction) => Promise<T>): Promise<T>;
}
