/** Statements in a transaction that the host has begun on a connection of its own to the file. */

import { PostbellError } from "../../src/core/errors.js";
import type { SqlTransaction } from "../sql/database.js";
import { isClosed, type SqliteHandle } from "./handle.js";
import { createSqliteTransaction } from "./transaction.js";

/** Tells if a transaction is open: better-sqlite3 and libsql, or `node:sqlite`. */
interface Connection extends Partial<SqliteHandle> {
  readonly inTransaction?: unknown;
  readonly isTransaction?: unknown;
}

const refuse = (message: string): PostbellError =>
  new PostbellError("invalid_argument", message, { field: "transaction" });

/** Errors: `invalid_argument` for a connection that the host has closed. */
export function requireOpenConnection(connection: object): void {
  if (!isClosed(connection)) return;
  throw refuse(
    "transaction is a closed database, so the event is not stored. Wait for emit() before you commit, and close the database after that.",
  );
}

/** Returns the statements on a connection of the host. `own`: the one of the storage. */
export function createJoin(): (connection: object, own: SqliteHandle) => SqlTransaction {
  const known = new WeakMap<object, SqlTransaction>();
  return (connection, own) => {
    requireOpenConnection(connection);
    const { prepare, exec, inTransaction, isTransaction } = connection as Connection;
    if (typeof prepare !== "function" || typeof exec !== "function" || connection === own) {
      throw refuse(
        "transaction must be another open database of the same file, on which the transaction was begun.",
      );
    }
    if (inTransaction === false || isTransaction === false) {
      throw refuse("transaction must be a database with an open transaction: run BEGIN IMMEDIATE first.");
    }
    const joined = known.get(connection) ?? createSqliteTransaction(connection as SqliteHandle);
    known.set(connection, joined);
    return joined;
  };
}
