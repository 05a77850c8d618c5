/** The part of a SQLite driver that the storage uses: `node:sqlite`, better-sqlite3 or libsql. */

/** A statement of `node:sqlite` or better-sqlite3. */
export interface SqliteStatement {
  /** Runs a query and returns its rows as objects. */
  all(...values: (string | number | null)[]): unknown[];
  /** Runs a statement that returns no rows. */
  run(...values: (string | number | null)[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
}

/** An open database of `node:sqlite` (`DatabaseSync`), better-sqlite3 or libsql (`Database`). */
export interface SqliteHandle {
  /** Compiles a statement. */
  prepare(text: string): SqliteStatement;
  /** Runs statements without values. */
  exec(text: string): unknown;
  /** Closes the database. The storage only closes a handle that it has opened. */
  close(): unknown;
}

/**
 * True if a database was closed. Check it before anything else: to read `inTransaction` of a closed
 * database of libsql ends the process. `open` of `node:sqlite` is a method.
 */
export function isClosed(database: object): boolean {
  const { open, isOpen } = database as { readonly open?: unknown; readonly isOpen?: unknown };
  return open === false || isOpen === false;
}

/**
 * Writes `$1`, `$2` … as `?`, and lists which value goes to each place. SQLite plans by a limit
 * that is a plain parameter, so it would compile the statement again for each value. That costs ten
 * times as much as reading a row.
 */
export function compileParameters(text: string): {
  readonly text: string;
  readonly order: readonly number[];
} {
  const order: number[] = [];
  const compiled = text.replace(/\$([1-9][0-9]?)/g, (_, number: string) => {
    order.push(Number(number) - 1);
    return "?";
  });
  return { text: compiled.replaceAll("LIMIT ?", "LIMIT CAST(? AS INTEGER)"), order };
}
