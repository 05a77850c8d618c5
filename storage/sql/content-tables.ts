/** The tables of the content store. */

import type { SqlTable } from "./table.js";

export const contentRecords = {
  name: "content_records",
  columns: {
    key: "text",
    version: "int",
    /** Null for a record that is never resident. */
    columns: "text?",
    body: "text",
    /** A JSON list of the names that no other record may have. */
    names: "text",
    /** The commit that wrote it last. */
    sequence: "int",
  },
  primaryKey: ["key"],
  isUpdatedInPlace: true,
} as const satisfies SqlTable;

/** The record that holds each unique name. */
export const contentNames = {
  name: "content_names",
  columns: { name: "text", key: "text" },
  primaryKey: ["name"],
} as const satisfies SqlTable;

/** The last id that was allocated, by kind. */
const contentIds = {
  name: "content_ids",
  columns: { kind: "text", last: "int" },
  primaryKey: ["kind"],
} as const satisfies SqlTable;

/** The records with columns that each commit changed. */
export const contentChanges = {
  name: "content_changes",
  columns: { sequence: "int", key: "text" },
  primaryKey: ["sequence", "key"],
} as const satisfies SqlTable;

/** The commits whose changes are kept, with the nonce that was generated for each. */
export const contentCommits = {
  name: "content_commits",
  columns: { sequence: "int", nonce: "text" },
  primaryKey: ["sequence"],
} as const satisfies SqlTable;

export const CONTENT_TABLES: readonly SqlTable[] = [
  contentRecords,
  contentNames,
  contentIds,
  contentChanges,
  contentCommits,
];
