/** The part of `pg` that the storage uses: a pool, and the clients that it lends. */

import { systemClock } from "../../src/core/clock.js";
import { guardPool } from "../../src/core/error-events.js";
import { PostbellError } from "../../src/core/errors.js";
import { importFromPackage } from "../../src/core/import-package.js";

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
  /** Rows are objects, also if the host has set something else. */
  readonly rowMode?: "object";
  /** When pg gives the query up, in milliseconds, instead of the time that the host has set. */
  readonly query_timeout?: number;
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
  /** True if values arrive in the binary format, which the storage does not read. */
  readonly binary?: boolean | undefined;
  /** Runs a query, or several statements without values. */
  query(query: PgQuery | string): PromiseLike<{ readonly rows: unknown[] }>;
  /** Adds a listener of `error`, `end` or `notification`. */
  on(event: string, listener: (value: never) => void): unknown;
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
  /** How many clients the pool has, how many are not lent, and how many calls wait for one. */
  readonly totalCount?: number | undefined;
  readonly idleCount?: number | undefined;
  readonly waitingCount?: number | undefined;
  readonly options?: { readonly binary?: boolean | undefined; readonly max?: number | undefined } | undefined;
}

/** Types that Postgres sends as text and that are numbers here: int8, int2, int4 and numeric. */
const NUMBERS = new Set([20, 21, 23, 1700]);

const TYPES = {
  getTypeParser: (type: number) => (text: string) => (NUMBERS.has(type) ? Number(text) : text),
};

const toUnusable = (what: string): PostbellError =>
  new PostbellError(
    "invalid_option",
    `postgresStorage: connections of pg must return ${what}. Use a pool or client without that setting, or give url.`,
    { field: "pool" },
  );

/** Throws if the values of a connection, or of all of a pool, cannot be read. */
function checkFormat(settings: { binary?: boolean | undefined } | undefined): void {
  if (settings?.binary === true) throw toUnusable("values as text (got binary: true)");
}

/** Runs a query and returns its rows, with numbers as numbers whatever the host has set. */
export async function runQuery<R>(
  client: PgClient,
  text: string,
  values: unknown[],
  name?: string,
): Promise<R[]> {
  checkFormat(client);
  const query = { text, values, types: TYPES, rowMode: "object" } as const;
  const { rows } = await client.query(name === undefined ? query : { ...query, name });
  if (Array.isArray(rows[0])) throw toUnusable('rows as objects (got arrays, as with rowMode: "array")');
  return rows as R[];
}

/** Connections of a pool that is made here: claims, settlements, appends, calls of the REST API. */
const POOL_SIZE = 8;

/** How long closing waits for the goodbye of the server, which may have fallen silent. */
const GOODBYE_MS = 1_000;

/** How long a call waits for a connection: less than the service gives a storage. */
const CONNECT_MS = 3_000;

/** How long a connection is silent before the system asks if the server is still there. */
const KEEP_ALIVE_MS = 10_000;

interface Pools {
  main: () => Promise<PostgresPool>;
  close: () => Promise<void>;
}

interface EventPool extends PostgresPool {
  on(event: "connect" | "remove", listener: (client: PgClient) => void): unknown;
}
type Constructor = new (options: object) => EventPool;

async function createPool(url: string): Promise<EventPool> {
  const Pool = await importFromPackage<Constructor>(() => import("pg"), "Pool", {
    message: "postgresStorage({ url }) needs the package pg: npm install pg.",
    field: "url",
  });
  return new Pool({
    connectionString: url,
    max: POOL_SIZE,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: "postbell",
    keepAlive: true,
    // Without it, the system probes a silent connection after two hours.
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // Statements are sent without waiting for those before them: few round trips a transaction.
    pipeline: true,
  });
}

/**
 * `onLost` is called with the error of an idle connection that ended. A pool of the host is guarded
 * from now on until `close`, because its idle connections may end before the first call.
 */
export function createPools(
  { url, pool }: { url: string | undefined; pool: PostgresPool | undefined },
  onLost: (error: unknown) => void,
): Pools {
  if ((url === undefined) === (pool === undefined)) {
    throw new PostbellError(
      "invalid_option",
      `postgresStorage: give either url or pool (got ${url === undefined ? "neither" : "both"}).`,
      { field: "url" },
    );
  }
  checkFormat(pool?.options);
  let opened: Promise<EventPool> | undefined;
  let isClosed = false;
  const clients = new Set<PgClient>();
  const removeGuard = guardPool(pool, onLost);
  const open = async (address: string): Promise<EventPool> => {
    const made = await createPool(address);
    guardPool(made, onLost);
    made.on("connect", (client) => clients.add(client));
    made.on("remove", (client) => clients.delete(client));
    return made;
  };
  return {
    async main() {
      if (isClosed) {
        throw new PostbellError("storage_unavailable", "The storage is closed.", {
          effect: "none",
          isPermanent: true,
          isOutage: false,
        });
      }
      if (pool !== undefined) return pool;
      opened ??= open(url ?? "");
      return opened;
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      removeGuard();
      const timer = systemClock.setTimeout(() => {
        for (const { connection } of clients) connection?.stream?.destroy();
      }, GOODBYE_MS);
      await (await opened)?.end();
      systemClock.clearTimeout(timer);
    },
  };
}
