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
  readonly version: number;
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
] as const satisfies readonly (keyof PostColumns)[];

export function encodePost(post: Post): EncodedRecord {
  const { version: _, ...whole } = post;
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, whole[name]]));
  const body = Object.fromEntries(Object.entries(whole).filter(([name]) => !Object.hasOwn(columns, name)));
  return {
    columns: JSON.stringify(columns),
    body: JSON.stringify(body),
    unique: listUniqueNamesOfPost(post),
  };
}

export function decodePost({ columns, body, version }: ContentRecord): Post {
  return Object.freeze({ ...JSON.parse(columns ?? "{}"), ...JSON.parse(body), version }) as Post;
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
