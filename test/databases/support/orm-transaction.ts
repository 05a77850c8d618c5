/** Transactions of libraries behind one interface, so that each test runs with all of them. */

import type { SqlConnection } from "../../../src/webhooks/transaction.js";

/** A transaction of a library, as a host uses it. */
export interface OrmTransaction {
  /** Its form for `emit`, from the function of `postbell/orm`. */
  readonly connection: SqlConnection;
  /** The library's own object. */
  readonly raw: unknown;
  /** Runs a statement with the library. */
  readonly run: (text: string) => Promise<unknown>;
  /** Runs `work` in a savepoint, which is rolled back if it rejects. */
  readonly savepoint: (work: (inner: OrmTransaction) => Promise<unknown>) => Promise<unknown>;
}

export interface Orm {
  readonly transaction: (work: (transaction: OrmTransaction) => Promise<unknown>) => Promise<unknown>;
  /** Calls the function with an object of the library on which no transaction is open. */
  readonly outside: () => unknown;
  /**
   * True for postgres 3.4.9: a statement on a transaction whose connection has ended throws in a
   * callback of its own, whoever sends it. The transaction rejects without one.
   */
  readonly crashesAfterLoss?: boolean;
  readonly close: () => Promise<unknown>;
}

/** A library's own transaction object, to which each of these belongs. */
export interface Parts<T> {
  connect: (raw: T) => SqlConnection;
  run: (raw: T, text: string) => Promise<unknown>;
  nested: (raw: T, work: (inner: T) => Promise<unknown>) => Promise<unknown>;
}

export function toTransaction<T>(raw: T, parts: Parts<T>): OrmTransaction {
  return {
    connection: parts.connect(raw),
    raw,
    run: async (text) => parts.run(raw, text),
    savepoint: async (work) => parts.nested(raw, (inner) => work(toTransaction(inner, parts))),
  };
}

/** Savepoints by hand, for libraries that have none of their own. */
export async function bySavepoint<T>(
  raw: T,
  run: (raw: T, text: string) => Promise<unknown>,
  work: (inner: T) => Promise<unknown>,
): Promise<unknown> {
  await run(raw, "SAVEPOINT inner_work");
  try {
    return await work(raw);
  } catch (error) {
    await run(raw, "ROLLBACK TO SAVEPOINT inner_work");
    throw error;
  }
}
