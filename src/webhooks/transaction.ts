/** Transactions that a host has begun: their types, and the errors for other values. */

import { PostbellError } from "../core/errors.js";

/**
 * A connection on which a transaction of SQL is open: a client of `pg`, the result of a function of
 * `postbell/orm`, or any such object. A pool does not fit, because it runs each statement on
 * another connection.
 */
export interface SqlConnection {
  /** Runs a statement with the values of `$1`, `$2` …, and resolves with its rows as objects. */
  query(text: string, values: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }>;
}

/** An open database of `node:sqlite`, better-sqlite3 or libsql on which a transaction is open. */
export interface SqliteConnection {
  /** Compiles a statement. */
  prepare(text: string): unknown;
  /** Runs statements without values. */
  exec(text: string): unknown;
}

/** A transaction that you have begun, in which `emit` writes its events. */
export type HostTransaction = SqlConnection | SqliteConnection;

/** The fields that identify a library's object, and what to pass instead. No field is read. */
const LIBRARIES: readonly (readonly [name: string, fields: readonly string[], action: string])[] = [
  ["Drizzle", ["session", "dialect"], "pass fromDrizzle(tx)"],
  ["Prisma", ["$queryRawUnsafe"], "pass fromPrisma(tx)"],
  ["Kysely", ["executeQuery", "getExecutor"], "pass fromKysely(trx)"],
  ["Knex", ["raw", "client", "transaction"], "pass fromKnex(trx)"],
  ["TypeORM", ["queryRunner", "getRepository"], "pass fromTypeOrm(manager)"],
  ["TypeORM", ["isTransactionActive", "startTransaction"], "pass fromTypeOrm(queryRunner)"],
  ["Sequelize", ["sequelize", "afterCommit"], "pass fromSequelize(transaction)"],
  ["MikroORM", ["getUnitOfWork", "getTransactionContext"], "pass fromMikroOrm(em)"],
  ["postgres", ["unsafe", "savepoint"], "pass fromPostgresJs(sql)"],
];

/**
 * The same for objects of drivers: pools, which would run each statement on another connection, and
 * connections that return no promises.
 */
const DRIVERS: readonly (readonly [name: string, fields: readonly string[], action: string])[] = [
  ["a pool of pg", ["totalCount", "idleCount"], "pass the client that pool.connect() has lent"],
  ["postgres", ["unsafe", "begin"], "pass fromPostgresJs(sql) with the sql that begin() gives its function"],
  ["a pool of mysql2", ["getConnection"], "pass the connection that pool.getConnection() has lent"],
  ["a connection of mysql2 with callbacks", ["execute", "promise"], "pass connection.promise()"],
];

/**
 * True if a value has all of these fields. Reads none of them, because a getter may do anything.
 */
function hasFields(value: object, fields: readonly string[]): boolean {
  try {
    return fields.every((field) => field in value);
  } catch {
    return false;
  }
}

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function";

function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object of another kind" : `a ${typeof value}`;
}

/**
 * Returns why a value is no transaction, and what to pass instead; `undefined` for one that may be
 * one. `field`: the name of the argument.
 */
function describeNoTransaction(value: unknown, field: string): string | undefined {
  if (isObject(value)) {
    const orm = LIBRARIES.find(([, fields]) => hasFields(value, fields));
    if (orm) return `${field} looks like a transaction of ${orm[0]}: ${orm[2]} of postbell/orm.`;
    const driver = DRIVERS.find(([, fields]) => hasFields(value, fields));
    if (driver) {
      return `${field} must be the connection on which the transaction was begun, and this looks like ${driver[0]}: ${driver[2]}.`;
    }
    if (["query", "execute", "prepare"].some((method) => hasFields(value, [method]))) return undefined;
  }
  return `${field} must be the connection on which the transaction was begun: a client of pg, an object with query(text, values), a SQLite database, or the result of a function of postbell/orm (got ${describe(value)}).`;
}

/** Throws `invalid_argument` for a value that is no transaction. */
export function requireTransactionValue(value: unknown, field: string): void {
  const problem = describeNoTransaction(value, field);
  if (problem !== undefined) throw new PostbellError("invalid_argument", problem, { field });
}
