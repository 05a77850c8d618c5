/** The layouts of the tables, by version: a version is never changed, a new one is added. */

import { CONTENT_TABLES } from "./content-tables.js";
import { describeTable, type SchemaDialect } from "./table.js";
import { WEBHOOK_TABLES } from "./webhook-tables.js";

/**
 * The layout that this version of Postbell reads and writes. The tables of layout 2 are those of 1:
 * Postgres got the functions that claim and settle. Layout 3 added the audit log, the hours of
 * webhooks, and columns for their description, metadata and rate. Postgres also got the functions
 * that limit the rate and keep sketches.
 */
export const LATEST_LAYOUT = 3;

/** Returns the statements that lead from the layout before `version` to `version`. */
export const describeLayout = (version: number, dialect: SchemaDialect): readonly string[] => [
  ...[...WEBHOOK_TABLES, ...CONTENT_TABLES].flatMap((table) => describeTable(table, version, dialect)),
  ...(version === 1
    ? [`INSERT INTO ${dialect.name("totals")} (name, events, bytes) VALUES ('webhooks', 0, 0);`]
    : []),
];
