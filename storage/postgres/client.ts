/** The part of `pg` that the storage uses: a pool, and the clients that it lends. */

/** The parsers of values. */
export interface PgTypes {
  /** Returns the parser of a type, by its number in Postgres. */
  getTypeParser(type: number): (text: string) => unknown;
}

/** A query, with the parsers of its values: a pool of the host may have others. */
export interface PgQuery {
  readonly text: string;
  readonly values?: unknown[];
  /** The name under which the server keeps the plan of the statement. */
  readonly name?: string;
  readonly types?: PgTypes;
}

/** The socket of a connection. */
export interface PgSocket {
  /** Ends the connection at once. */
  destroy(): unknown;
  /** Keeps what is written until `uncork`. */
  cork?(): void;
  /** Writes what `cork` has kept. */
  uncork?(): void;
}

/** A connection of `pg`: a `Client`, or one that a pool lends. */
export interface PgClient {
  /** The socket of the connection. */
  readonly connection?: { readonly stream?: PgSocket | undefined } | undefined;
  /** True if statements are sent without waiting for those before them. */
  readonly pipeline?: boolean | undefined;
  /** Runs a query, or several statements without values. */
  query(query: PgQuery | string): PromiseLike<{ readonly rows: unknown[] }>;
  /** Adds a listener of `error`, `end` or `notification`. */
  on(event: string, listener: (given: never) => void): unknown;
  /** Removes a listener. */
  removeListener(event: string, listener: () => void): unknown;
}

/** A client that a pool lends. */
export interface PgPoolClient extends PgClient {
  /** Returns the client to its pool; with an error, its connection is closed. */
  release(error?: Error | boolean): void;
}

/** A `Pool` of `pg`. */
export interface PostgresPool {
  /** Lends a client. */
  connect(): Promise<PgPoolClient>;
  /** Ends the pool. The storage only ends a pool that it has made. */
  end(): Promise<void>;
}

/** Types that Postgres sends as text and that are numbers here: int8, int2, int4 and numeric. */
const NUMBERS: ReadonlySet<number> = new Set([20, 21, 23, 1700]);

const TYPES = {
  getTypeParser: (type: number) => (text: string) => (NUMBERS.has(type) ? Number(text) : text),
};

/** Runs a query and returns its rows, with numbers as numbers whatever the host has set. */
export async function runQuery<R>(
  client: PgClient,
  text: string,
  values: unknown[],
  name?: string,
): Promise<readonly R[]> {
  const query = { text, values, types: TYPES };
  const { rows } = await client.query(name === undefined ? query : { ...query, name });
  return rows as R[];
}
