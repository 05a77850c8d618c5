/** Creates the tables and functions of a schema, and checks that they exist. */

import { PostbellError } from "../../src/core/errors.js";
import { describeTables, LATEST_LAYOUT } from "../sql/layout.js";
import type { SchemaDialect } from "../sql/table.js";
import { type PgClient, type PostgresPool, runQuery } from "./client.js";
import { borrow } from "./database.js";
import { isMissingPrivilege, toPostgresError } from "./errors.js";
import { describeFunctions } from "./functions.js";

/** Reads the version of the tables; 0 without tables. */
async function readVersion(client: PgClient, schema: string): Promise<number> {
  const name = `"${schema}"."layout"`;
  const [found] = await runQuery<{ name: string | null }>(client, "SELECT to_regclass($1)::text AS name", [
    name,
  ]);
  if (found?.name == null) return 0;
  const [row] = await runQuery<{ version: number | null }>(
    client,
    `SELECT max(version) AS version FROM ${name}`,
    [],
  );
  return row?.version ?? 0;
}

function checkKnown(version: number, schema: string): void {
  if (version <= LATEST_LAYOUT) return;
  throw new PostbellError(
    "invalid_option",
    `postgresStorage: the schema ${schema} has layout ${version}, and this version of Postbell knows layouts up to ${LATEST_LAYOUT}. Use the newer version.`,
    { field: "schema" },
  );
}

const PRIVILEGES = `SELECT quote_ident(current_user) AS role, quote_ident(current_database()) AS database,
  (to_regnamespace($1) IS NOT NULL)::int AS "hasSchema",
  has_database_privilege(current_database(), 'CREATE')::int AS "mayCreateSchema",
  (SELECT (has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE'))::int
    FROM pg_namespace WHERE oid = to_regnamespace($1)::oid) AS "mayCreateTables"`;

interface Privileges {
  role: string;
  database: string;
  hasSchema: number;
  mayCreateSchema: number;
  /** `null` without the schema. */
  mayCreateTables: number | null;
}

/** Returns what the role of the connection lacks, and the statement that grants it. */
function describeMissing({ role, database, ...found }: Privileges, schema: string): string {
  if (found.hasSchema === 0 && found.mayCreateSchema === 0) {
    return `The role ${role} lacks the privilege CREATE on the database ${database}, which is needed to create the schema "${schema}". Let the owner of the database run: GRANT CREATE ON DATABASE ${database} TO ${role}; or: CREATE SCHEMA "${schema}" AUTHORIZATION ${role};`;
  }
  if (found.hasSchema === 1 && found.mayCreateTables === 0) {
    return `The role ${role} lacks the privilege CREATE or USAGE on the schema "${schema}". Let the owner of the schema run: GRANT USAGE, CREATE ON SCHEMA "${schema}" TO ${role};`;
  }
  return `The role ${role} does not own all tables and functions in the schema "${schema}", which is needed to change them. Migrate as the role that owns them.`;
}

/** The error of a migration that the role may not make. The transaction was rolled back. */
async function toPrivilegeError(client: PgClient, schema: string, cause: unknown): Promise<unknown> {
  const [found] = await runQuery<Privileges>(client, PRIVILEGES, [`"${schema}"`]);
  if (found === undefined) return cause;
  return new PostbellError(
    "storage_unavailable",
    `Postgres refuses the migration (42501); nothing was changed. ${describeMissing(found, schema)}`,
    { effect: "none", reason: "42501", isPermanent: true, cause },
  );
}

/** Another process may hold the lock for as long as it takes. pg has no greater limit than this. */
const NO_LIMIT = null;
const LONGEST_MS = 2 ** 31 - 1;

/**
 * With another level, a process that waited for the lock would not see the earlier migration. A
 * client that vanishes must not keep the locks.
 */
const BEGIN =
  "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 60000";

const runLong = (client: PgClient, text: string): PromiseLike<unknown> =>
  client.query({ text, query_timeout: LONGEST_MS });

/** Runs the missing migrations in one transaction. Several processes may do so at once. */
export async function migrate(pool: PostgresPool, schema: string): Promise<{ version: number }> {
  let isCommitting = false;
  try {
    return await borrow(
      pool,
      async (client) => {
        await client.query(BEGIN);
        try {
          await runLong(client, `SELECT pg_advisory_xact_lock(hashtextextended('${schema} migrate', 0))`);
          const version = await readVersion(client, schema);
          checkKnown(version, schema);
          for (const migration of listMigrations(schema)) {
            if (migration.version > version) await runLong(client, migration.sql);
          }
          isCommitting = true;
          await client.query("COMMIT");
        } catch (error) {
          await client.query("ROLLBACK");
          throw isMissingPrivilege(error) ? await toPrivilegeError(client, schema, error) : error;
        }
        return { version: LATEST_LAYOUT };
      },
      NO_LIMIT,
    );
  } catch (error) {
    throw toPostgresError(error, isCommitting);
  }
}

/** Rejects with `invalid_option` unless the tables have the layout that this version knows. */
export async function checkLayout(pool: PostgresPool, schema: string): Promise<void> {
  try {
    await borrow(pool, async (client) => {
      const version = await readVersion(client, schema);
      checkKnown(version, schema);
      if (version === LATEST_LAYOUT) return;
      throw new PostbellError(
        "invalid_option",
        `postgresStorage: the schema ${schema} has ${version === 0 ? "no tables of Postbell" : `layout ${version}`}. Call storage.migrate(), or run \`postbell migrate\`, before the services start.`,
        { field: "schema" },
      );
    });
  } catch (error) {
    throw toPostgresError(error, false);
  }
}

/** Letters, digits and underscores, so that the name needs no escapes between quotation marks. */
export const SCHEMA_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/**
 * Rows of queues live for seconds. With the default scale factor, vacuuming would come when the
 * tables have grown to many times their size.
 */
const VACUUM = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000";

/** Leaves room in a page for the new versions of its rows, which then need no new index entries. */
const FILL = "fillfactor = 60";

const createPostgresSchema = (schema: string): SchemaDialect => ({
  types: {
    position: "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
    int: "bigint NOT NULL",
    "int?": "bigint",
    text: "text NOT NULL",
    "text?": "text",
  },
  suffix: ({ isUpdatedInPlace }) => ` WITH (${isUpdatedInPlace ? `${FILL}, ` : ""}${VACUUM})`,
  name: (name) => `"${schema}"."${name}"`,
});

/** A step from one layout to the next, as a text for the host's migrations. */
export interface PostgresMigration {
  readonly version: number;
  /** Statements that are run once, in this order, in one transaction. */
  readonly sql: string;
}

/** Returns all steps, the oldest first. */
export function listMigrations(schema: string): PostgresMigration[] {
  const dialect = createPostgresSchema(schema);
  const statements = [
    // IF NOT EXISTS requires the privilege to create schemas even if there is nothing to create.
    `DO $$ BEGIN IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF; END $$;`,
    `CREATE TABLE ${dialect.name("layout")} (version bigint NOT NULL);`,
    ...describeTables(dialect),
    ...describeFunctions(schema),
    `INSERT INTO ${dialect.name("layout")} (version) VALUES (${LATEST_LAYOUT});`,
  ];
  return [{ version: LATEST_LAYOUT, sql: statements.join("\n") }];
}
