/** Describes tables, once for all databases, and generates the statements that create them. */

/** `position`: a number that the database gives to a row, and that grows. `?`: may be null. */
export type ColumnType = "position" | "int" | "int?" | "text" | "text?";

export interface SqlTable {
  name: string;
  columns: Readonly<Record<string, ColumnType>>;
  /** The columns of the primary key, if no column is a `position`. */
  primaryKey?: readonly string[];
  /** Further constraints and indexes, as lists of columns. */
  unique?: readonly (readonly string[])[];
  indexes?: readonly Index[];
  /**
   * True if rows are updated often, and no indexed column with them: the database then leaves room
   * for the new version of a row next to the old one.
   */
  isUpdatedInPlace?: boolean;
}

export interface Index {
  columns: readonly string[];
  /** The index holds only the rows in which this column is not null. */
  present?: string;
}

type ValueOf<T extends ColumnType> = T extends "text"
  ? string
  : T extends "text?"
    ? string | null
    : T extends "int?"
      ? number | null
      : number;

/** The type of a row of a table. */
export type RowOf<T extends { columns: Readonly<Record<string, ColumnType>> }> = {
  -readonly [C in keyof T["columns"]]: ValueOf<T["columns"][C]>;
};

/** How a database writes the types of columns and the end of a table. */
export interface SchemaDialect {
  types: Readonly<Record<ColumnType, string>>;
  /** Returns the text after the closing bracket of a table. */
  suffix: (table: SqlTable) => string;
  /** Returns the name of a table or an index with its schema. */
  name: (name: string) => string;
}

/** True if the primary key is one column with numbers. */
export const isKeyedByNumber = ({ primaryKey = [], columns }: SqlTable): boolean =>
  primaryKey.length === 1 && columns[primaryKey[0] ?? ""] === "int";

/** Returns the statements that create a table and its indexes. */
export function describeTable(table: SqlTable, { types, suffix, name }: SchemaDialect): string[] {
  const columns = Object.entries(table.columns).map(([column, type]) => `${column} ${types[type]}`);
  const keys = table.primaryKey === undefined ? [] : [`PRIMARY KEY (${table.primaryKey.join(", ")})`];
  const unique = (table.unique ?? []).map((list) => `UNIQUE (${list.join(", ")})`);
  const indexes = (table.indexes ?? []).map(({ columns: list, present }) => {
    const condition = present === undefined ? "" : ` WHERE ${present} IS NOT NULL`;
    return `CREATE INDEX ${table.name}_${list.join("_")} ON ${name(table.name)} (${list.join(", ")})${condition};`;
  });
  const body = [...columns, ...keys, ...unique].join(",\n  ");
  return [`CREATE TABLE ${name(table.name)} (\n  ${body}\n)${suffix(table)};`, ...indexes];
}
