/** `check()`: what of a server, its sessions and the tables may lose or stop deliveries. */

import type { Logger } from "../../src/core/logger.js";
import { type PgClient, type PostgresPool, runQuery } from "./client.js";
import { borrow } from "./database.js";
import { isTransactionConflict, toPostgresError } from "./errors.js";
import { checkLayout } from "./migrate.js";

/** The result of `check`. `ok` is true if there is no warning. */
export interface PostgresReport {
  readonly ok: boolean;
  /** Sentences that say what is wrong and what to change. */
  readonly warnings: readonly string[];
  /** The version of the server: `17.2`. */
  readonly version: string;
  /** The size of the schema in bytes, with its indexes; 0 while somebody has locked the tables. */
  readonly bytes: number;
}

const OLDEST_VERSION = 140_000;

interface Settings {
  version: string;
  number: number;
  fsync: string;
  commit: string;
  autovacuum: string;
  standby: string;
  encoding: string;
}

const SETTINGS = `SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::bigint AS number, current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS commit, current_setting('autovacuum') AS autovacuum,
  pg_is_in_recovery()::text AS standby, current_setting('server_encoding') AS encoding`;

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

const SIZE = `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`;

/** A transaction of another session with locks on the tables, except those of reads and VACUUM. */
interface LockHolder {
  pid: number;
  application: string;
  state: string;
  heldMs: number;
}

const HOLDERS = `SELECT a.pid, a.application_name AS application, coalesce(a.state, a.backend_type) AS state,
    round(extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS "heldMs"
  FROM pg_stat_activity AS a WHERE a.pid <> pg_backend_pid() AND a.xact_start < clock_timestamp() - $2 * interval '1 ms'
    AND EXISTS (SELECT 1 FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
      WHERE l.pid = a.pid AND l.granted AND l.mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock') AND c.relnamespace = to_regnamespace($1))
  ORDER BY a.xact_start LIMIT 5`;

const readHolders = (client: PgClient, schema: string, heldMs: number): Promise<LockHolder[]> =>
  runQuery<LockHolder>(client, HOLDERS, [`"${schema}"`, heldMs]);

const toHolderWarning = ({ pid, application, state, heldMs }: LockHolder): string =>
  `Process ${pid} (${application || "without application_name"}, ${state}) has had locks on the tables for ${Math.round(heldMs / 1_000)} s: deliveries may wait for it. Have it commit, or run SELECT pg_terminate_backend(${pid}).`;

/** A statement waits for a lock no longer than this. */
const HELD_MS = 2_000;

/** `check()` reports transactions that are older. */
const HELD_TOO_LONG_MS = 10_000;

/** Logs who holds the locks that a call has waited for in vain. */
export async function logHolders(pool: PostgresPool, schema: string, logger: Logger): Promise<void> {
  const [holder] = await borrow(pool, (client) => readHolders(client, schema, HELD_MS));
  if (holder === undefined) return;
  logger.warn({ ...holder }, "a transaction holds locks on the tables, and calls of the storage wait for it");
}

/**
 * Each pending delivery that is not in flight has a row in `queue`. Appends that were not added up
 * yet have rows there, and are not counted in `pending`, so that no figure is too high.
 */
const STRANDED = `SELECT coalesce(sum(greatest(0, e.pending - e.in_flight - (SELECT count(*) FROM {queue} AS q WHERE q.endpoint = e.position))), 0)::bigint AS stranded
  FROM {endpoints} AS e WHERE e.pending > e.in_flight`;

/** The statements that queue such deliveries again. */
const REQUEUE = `INSERT INTO {queue} (endpoint, at, delivery) SELECT endpoint, queued_at, position FROM {deliveries} WHERE state = 'pending' AND position NOT IN (SELECT x::bigint FROM {leases}, json_array_elements_text(deliveries::json) AS x) ON CONFLICT DO NOTHING; UPDATE {endpoints} SET ready_at = 0 WHERE position IN (SELECT endpoint FROM {queue});`;

const fill = (text: string, schema: string): string => text.replace(/\{([a-z]+)\}/g, `"${schema}".$1`);

/** Returns how many pending deliveries nobody will find, because the queue was emptied. */
async function countStranded(client: PgClient, schema: string): Promise<number> {
  const [row] = await runQuery<{ stranded: number }>(client, fill(STRANDED, schema), []);
  return row?.stranded ?? 0;
}

const toStrandedWarning = (stranded: number, schema: string): string =>
  `${stranded} pending deliveries are not in the table queue any more: somebody has emptied it. They are not sent until they are queued again: ${fill(REQUEUE, schema)}`;

/** Logs that the queue was emptied. */
export async function logStranded(pool: PostgresPool, schema: string, logger: Logger): Promise<void> {
  const deliveries = await borrow(pool, (client) => countStranded(client, schema));
  if (deliveries === 0) return;
  logger.error(
    { code: "store_reset", deliveries },
    "the table queue was emptied: pending deliveries are not sent. storage.check() says how to queue them again",
  );
}

interface Size {
  bytes: number;
  stranded: number;
}

/** Reads what may wait for a lock. Zeros while another transaction holds the lock. */
async function readSize(client: PgClient, schema: string, isLocked: boolean): Promise<Size> {
  await client.query("BEGIN; SET LOCAL lock_timeout = 2000");
  try {
    const [row] = await runQuery<{ bytes: number }>(client, SIZE, [schema]);
    return { bytes: row?.bytes ?? 0, stranded: await countStranded(client, schema) };
  } catch (error) {
    if (isLocked && isTransactionConflict(error)) return { bytes: 0, stranded: 0 };
    throw error;
  } finally {
    await client.query("ROLLBACK");
  }
}

export async function checkServer(pool: PostgresPool, schema: string): Promise<PostgresReport> {
  await checkLayout(pool, schema);
  try {
    return await borrow(pool, async (client) => {
      const [settings] = await runQuery<Settings>(client, SETTINGS, []);
      if (settings === undefined) throw new Error("no row");
      const holders = await readHolders(client, schema, HELD_TOO_LONG_MS);
      const { bytes, stranded } = await readSize(client, schema, holders.length > 0);
      const warnings = WARNINGS.filter(([isWrong]) => isWrong(settings)).map(([, warning]) => warning);
      warnings.push(...holders.map(toHolderWarning));
      if (stranded > 0) warnings.push(toStrandedWarning(stranded, schema));
      return { ok: warnings.length === 0, warnings, version: settings.version, bytes };
    });
  } catch (error) {
    throw toPostgresError(error, false);
  }
}
