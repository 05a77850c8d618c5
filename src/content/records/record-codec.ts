/**
 * Encodes records for the content store and decodes what it returns. `columns` is the part of a
 * record that every process holds in memory; `body` is the rest.
 */

import type { ContentRecord, ContentWrite } from "../store.js";
import type { Post, PostColumns, Revision, Term } from "./records.js";
import { listUniqueNamesOfPost, listUniqueNamesOfTerm } from "./unique-names.js";

type EncodedRecord = NonNullable<ContentWrite["record"]>;

/** A revision with the version of its record, which a later write of it needs. */
export interface StoredRevision extends Revision {
  version: number;
}

const COLUMNS = [
  "id",
  "type",
  "status",
  "author",
  "date",
  "dateGmt",
  "modified",
  "modifiedGmt",
  "slug",
  "title",
  "parent",
  "menuOrder",
  "hasPassword",
  "sticky",
  "format",
  "terms",
  "mimeType",
  "target",
  "beforeTrash",
  "importedAs",
  "importedOpen",
] as const satisfies (keyof PostColumns)[];

const COLUMN_NAMES: Set<string> = new Set(COLUMNS);

export function encodePost(post: Post): EncodedRecord {
  const columns: { [name: string]: unknown } = {};
  const body: { [name: string]: unknown } = {};
  for (const name of COLUMNS) columns[name] = post[name];
  for (const [name, value] of Object.entries(post)) {
    if (name !== "version" && !COLUMN_NAMES.has(name)) body[name] = value;
  }
  return {
    columns: JSON.stringify(columns),
    body: JSON.stringify(body),
    unique: listUniqueNamesOfPost(post),
  };
}

/** Copies into the parsed object: a literal that spreads two of so many members takes ten times. */
export function decodePost({ columns, body, version }: ContentRecord): Post {
  return Object.freeze(Object.assign(JSON.parse(columns ?? "{}"), JSON.parse(body), { version }));
}

export function encodeTerm(term: Term): EncodedRecord {
  const { version: _, ...columns } = term;
  return {
    columns: JSON.stringify(columns),
    body: "{}",
    unique: listUniqueNamesOfTerm(term),
  };
}

export function encodeRevision(revision: Revision): EncodedRecord {
  return { columns: null, body: JSON.stringify(revision), unique: [] };
}

export function decodeRevision({ body, version }: ContentRecord): StoredRevision {
  return { ...(JSON.parse(body) as Revision), version };
}
