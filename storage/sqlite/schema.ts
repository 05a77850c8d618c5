/** How SQLite writes the tables, and the names that they have in a file. */

import { isKeyedByNumber, type SchemaDialect } from "../sql/table.js";

/** A file may hold tables of the host too. */
const PREFIX = "postbell_";

export const toTableName = (name: string): string => PREFIX + name;

/** Replaces `{name}` by the name of the table. */
export const fillTableNames = (text: string): string =>
  text.replace(/\{([a-z_]+)\}/g, (_, name: string) => toTableName(name));

export const sqliteSchema: SchemaDialect = {
  types: {
    position: "INTEGER PRIMARY KEY AUTOINCREMENT",
    int: "INTEGER NOT NULL",
    "int?": "INTEGER",
    text: "TEXT NOT NULL",
    "text?": "TEXT",
  },
  // A row of a table without rowid that is longer than a quarter of a page is read in two parts.
  suffix: (table) => (table.primaryKey === undefined || isKeyedByNumber(table) ? "" : " WITHOUT ROWID"),
  name: toTableName,
};
