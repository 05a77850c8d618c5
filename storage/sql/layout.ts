/** The layout of the tables, which a database keeps with them. */

import { CONTENT_TABLES } from "./content-tables.js";
import { describeTable, type SchemaDialect } from "./table.js";
import { WEBHOOK_TABLES } from "./webhook-tables.js";

/** The layout that this version of Postbell reads and writes. A newer one is refused. */
export const LATEST_LAYOUT = 1;

/** Returns the statements that create the tables. */
export const describeTables = (dialect: SchemaDialect): string[] => [
  ...WEBHOOK_TABLES.flatMap((table) => describeTable(table, dialect)),
  ...CONTENT_TABLES.flatMap((table) => describeTable(table, dialect)),
  `INSERT INTO ${dialect.name("totals")} (name, events, bytes) VALUES ('webhooks', 0, 0);`,
];
