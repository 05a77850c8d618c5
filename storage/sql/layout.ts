/** The layouts of the tables, by version: a version is never changed, a new one is added. */

import { CONTENT_TABLES } from "./content-tables.js";
import { describeTable, type SchemaDialect } from "./table.js";
import { WEBHOOK_TABLES } from "./webhook-tables.js";

/** The steps from nothing to the layout that this version of Postbell reads and writes. */
const LAYOUTS: readonly ((dialect: SchemaDialect) => readonly string[])[] = [
  (dialect) => [
    ...[...WEBHOOK_TABLES, ...CONTENT_TABLES].flatMap((table) => describeTable(table, dialect)),
    `INSERT INTO ${dialect.name("totals")} (name, events, bytes) VALUES ('webhooks', 0, 0);`,
  ],
  // The tables stay as they are. Postgres gets the functions that claim and settle.
  () => [],
];

export const LATEST_LAYOUT = LAYOUTS.length;

/** Returns the statements that lead from a layout to the next one. */
export const describeLayout = (version: number, dialect: SchemaDialect): readonly string[] =>
  LAYOUTS[version - 1]?.(dialect) ?? [];
