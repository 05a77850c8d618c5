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
  const { open, isOpen } = database as { open?: unknown; isOpen?: unknown };
  return open === false || isOpen === false;
}

/** How a statement returns its rows: better-sqlite3 and libsql, or `node:sqlite`. */
interface RowSettings {
  safeIntegers?(isOn: boolean): unknown;
  setReadBigInts?(isOn: boolean): unknown;
  setReturnArrays?(isOn: boolean): unknown;
}

/**
 * Compiles a statement that returns rows as objects and integers as numbers, also where the host
 * has set its driver to something else, such as `defaultSafeIntegers()` or `returnArrays`.
 */
export function prepare(handle: SqliteHandle, text: string): SqliteStatement {
  const statement: SqliteStatement & RowSettings = handle.prepare(text);
  statement.safeIntegers?.(false);
  statement.setReadBigInts?.(false);
  statement.setReturnArrays?.(false);
  return statement;
}

/** Runs a query without values. */
export const query = <R>(handle: SqliteHandle, text: string): readonly R[] =>
  prepare(handle, text).all() as R[];

/** True if rows are objects and integers are numbers, as the storage reads them. */
export function returnsPlainRows(handle: SqliteHandle): boolean {
  const [row] = query<{ number?: unknown } | undefined>(handle, "SELECT 1 AS number");
  return row?.number === 1;
}

/**
 * Identifies the build of SQLite that a database uses. Two builds of one version differ in their
 * options. Two copies of one build do not differ here; see `FileWatch`.
 */
export function readBuild(handle: SqliteHandle): { version: string; id: string } {
  const [row] = query<{ version: string; source: string }>(
    handle,
    "SELECT sqlite_version() AS version, sqlite_source_id() AS source",
  );
  const options = query<object>(handle, "PRAGMA compile_options").flatMap((option) =>
    Object.values(option).map(String),
  );
  return {
    version: row?.version ?? "",
    id: `${row?.source} ${options.toSorted((one, other) => (one < other ? -1 : 1)).join(" ")}`,
  };
}

/**
 * Writes `$1`, `$2` … as `?`, and lists which value goes to each place. SQLite plans by a limit
 * that is a plain parameter, so it would compile the statement again for each value. That costs ten
 * times as much as reading a row.
 */
export function compileParameters(text: string): {
  text: string;
  order: number[];
} {
  const order: number[] = [];
  const compiled = text.replace(/\$([1-9][0-9]?)/g, (_, number: string) => {
    order.push(Number(number) - 1);
    return "?";
  });
  return { text: compiled.replaceAll("LIMIT ?", "LIMIT CAST(? AS INTEGER)"), order };
}
