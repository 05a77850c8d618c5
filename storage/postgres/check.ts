/** `storage.check()`: reports on the server and the schema. */

import { type PgClient, type PostgresPool, runQuery } from "./client.js";
import { borrow } from "./database.js";
import { toPostgresError } from "./errors.js";
import { checkLayout } from "./migrate.js";

/** The result of `check`. `ok` is true if there is no warning. */
export interface PostgresReport {
  readonly ok: boolean;
  /** Sentences that say what is wrong and what to change. */
  readonly warnings: readonly string[];
  /** The version of the server: `17.2`. */
  readonly version: string;
  /** The size of the schema in bytes, with its indexes. */
  readonly bytes: number;
}

const OLDEST_VERSION = 140_000;

interface Settings {
  readonly version: string;
  readonly number: number;
  readonly fsync: string;
  readonly commit: string;
  readonly autovacuum: string;
  readonly standby: string;
  readonly encoding: string;
  readonly bytes: number;
}

const SETTINGS = `SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::bigint AS number, current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS commit, current_setting('autovacuum') AS autovacuum,
  pg_is_in_recovery()::text AS standby, current_setting('server_encoding') AS encoding,
  (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r') AS bytes`;

const WARNINGS: readonly (readonly [isWrong: (settings: Settings) => boolean, warning: string])[] = [
  [({ number }) => number < OLDEST_VERSION, "The server is older than Postgres 14. Upgrade it."],
  [({ fsync }) => fsync !== "on", "fsync is off: a power cut may destroy the database. Set fsync = on."],
  [
    ({ commit }) => commit === "off",
    "synchronous_commit is off: a crash of the server loses what it has just acknowledged. Set synchronous_commit = on for the role or the database.",
  ],
  [
    ({ autovacuum }) => autovacuum !== "on",
    "autovacuum is off: the tables of the queue grow without end. Set autovacuum = on.",
  ],
  [
    ({ standby }) => standby === "true",
    "The server is a standby, which is read-only. Connect to the primary.",
  ],
  [
    ({ encoding }) => encoding !== "UTF8",
    "The encoding of the database is not UTF8. Create it with ENCODING 'UTF8'.",
  ],
];

async function readSettings(client: PgClient, schema: string): Promise<Settings | undefined> {
  const [settings] = await runQuery<Settings>(client, SETTINGS, [schema]);
  return settings;
}

export async function checkServer(pool: PostgresPool, schema: string): Promise<PostgresReport> {
  await checkLayout(pool, schema);
  try {
    const settings = await borrow(pool, (client) => readSettings(client, schema));
    if (settings === undefined) throw new Error("no row");
    const warnings = WARNINGS.filter(([isWrong]) => isWrong(settings)).map(([, warning]) => warning);
    const { version, bytes } = settings;
    return { ok: warnings.length === 0, warnings, version, bytes };
  } catch (error) {
    throw toPostgresError(error, false);
  }
}
