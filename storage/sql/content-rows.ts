/** Encodes and decodes the rows of content. */

import type { ContentChange, ContentCommit, ContentRecord, ContentWrite } from "../../src/content/store.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import type { contentRecords } from "./content-tables.js";
import type { RowOf } from "./table.js";

export type RecordRow = RowOf<typeof contentRecords>;

const encodeOptional = (text: string | null): string | null =>
  text === null ? null : encodeStoredText(text);
const decodeOptional = (text: string | null): string | null =>
  text === null ? null : decodeStoredText(text);

/** Encodes the texts of writes, and copies them: the caller may change its own while they wait. */
export const encodeWrites = (writes: readonly ContentWrite[]): readonly ContentWrite[] =>
  writes.map(({ key, expectedVersion, record }) => ({
    key: encodeStoredText(key),
    expectedVersion,
    record: record && {
      columns: encodeOptional(record.columns),
      body: encodeStoredText(record.body),
      unique: record.unique.map(encodeStoredText),
    },
  }));

export const decodeConflict = (result: ContentCommit): ContentCommit => {
  if (result.ok) return result;
  const { key, unique } = result.conflict;
  const conflict = {
    key: decodeStoredText(key),
    ...(unique !== undefined && { unique: decodeStoredText(unique) }),
  };
  return { ok: false, conflict };
};

export const toContentRecord = ({ key, version, columns, body, names }: RecordRow): ContentRecord =>
  Object.freeze({
    key: decodeStoredText(key),
    version,
    columns: decodeOptional(columns),
    body: decodeStoredText(body),
    unique: Object.freeze((JSON.parse(names) as string[]).map(decodeStoredText)),
  });

export type ChangeRow = {
  readonly key: string;
  readonly version: number | null;
  readonly columns: string | null;
};

export const toContentChange = ({ key, version, columns }: ChangeRow): ContentChange => ({
  key: decodeStoredText(key),
  version: version ?? 0,
  columns: decodeOptional(columns),
});
