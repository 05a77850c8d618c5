/** The pool of a storage: the host's, or one that is made from a URL when it is first needed. */

import { systemClock } from "../../src/core/clock.js";
import { guardPool } from "../../src/core/error-events.js";
import { PostbellError } from "../../src/core/errors.js";
import { importFromPackage } from "../../src/core/import-package.js";
import type { PgClient, PostgresPool } from "./client.js";

/** Connections of a pool that is made here: claims, settlements, appends, calls of the REST API. */
const POOL_SIZE = 8;

/** How long closing waits for the goodbye of the server, which may have fallen silent. */
const GOODBYE_MS = 1_000;

/** How long a call waits for a connection: less than the service gives a storage. */
const CONNECT_MS = 3_000;

export interface Pools {
  readonly main: () => Promise<PostgresPool>;
  readonly close: () => Promise<void>;
}

interface OwnPool extends PostgresPool {
  on(event: "connect" | "remove", listener: (client: PgClient) => void): unknown;
}
type Constructor = new (options: object) => OwnPool;

async function createPool(url: string): Promise<OwnPool> {
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
    // Statements are sent without waiting for those before them: few round trips a transaction.
    pipeline: true,
  });
}

/**
 * `onLost` is called with the error of an idle connection that ended. A pool of the host is guarded
 * from now on until `close`, because its idle connections may end before the first call.
 */
export function createPools(
  { url, pool }: { readonly url: string | undefined; readonly pool: PostgresPool | undefined },
  onLost: (error: unknown) => void,
): Pools {
  if ((url === undefined) === (pool === undefined)) {
    throw new PostbellError(
      "invalid_option",
      `postgresStorage: give either url or pool (got ${url === undefined ? "neither" : "both"}).`,
      { field: "url" },
    );
  }
  let own: Promise<OwnPool> | undefined;
  let isClosed = false;
  const clients = new Set<PgClient>();
  const removeGuard = guardPool(pool, onLost);
  const open = async (address: string): Promise<OwnPool> => {
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
      own ??= open(url ?? "");
      return own;
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      removeGuard();
      const timer = systemClock.setTimeout(() => {
        for (const { connection } of clients) connection?.stream?.destroy();
      }, GOODBYE_MS);
      await (await own)?.end();
      systemClock.clearTimeout(timer);
    },
  };
}
