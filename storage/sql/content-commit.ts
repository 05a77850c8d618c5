/** Commits changes of content: all of them, or none after a conflict. */

import { randomUUID } from "node:crypto";
import type {
  ContentBasis,
  ContentChange,
  ContentCommit,
  ContentRecord,
  ContentWrite,
} from "../../src/content/store.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import { contentChanges, contentCommits, contentNames, contentRecords } from "./content-tables.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import type { RowOf } from "./table.js";

/** The most commits whose changes are forgotten with one new commit. */
const MAX_FORGOTTEN = 100;
export type CommitRow = RowOf<typeof contentCommits>;
type StoredRow = Pick<RecordRow, "key" | "version" | "columns" | "names">;

const NOTHING: CommitRow = { sequence: 0, nonce: "" };

export async function readLastCommit(transaction: SqlTransaction): Promise<CommitRow> {
  const [last] = await transaction.all<CommitRow>(
    "SELECT sequence, nonce FROM {content_commits} ORDER BY sequence DESC LIMIT 1",
  );
  return last ?? NOTHING;
}

/** Reads what a commit compares: the version, the columns and the names of each record. */
async function readStored(transaction: SqlTransaction, keys: string[]): Promise<Map<string, StoredRow>> {
  const rows = await transaction.forEach<StoredRow>(
    "SELECT key, version, columns, names FROM {content_records} WHERE key = $1",
    ["text"],
    [...new Set(keys)].map((key) => [key]),
  );
  return new Map(rows.map((row) => [row.key, row]));
}

type Conflict = Extract<ContentCommit, { ok: false }>["conflict"];

/** Finds a record that has changed since the caller read it. */
function findChanged(
  stored: Map<string, StoredRow>,
  writes: ContentWrite[],
  basis: ContentBasis[],
): Conflict | undefined {
  const getVersion = (key: string): number => stored.get(key)?.version ?? 0;
  const changed =
    basis.find(({ key, version }) => getVersion(key) !== version) ??
    writes.find(({ key, expectedVersion }) => getVersion(key) !== expectedVersion);
  return changed && { key: changed.key };
}

/** Finds a unique name that a write claims and another record holds. */
async function findTakenName(
  transaction: SqlTransaction,
  writes: ContentWrite[],
): Promise<Conflict | undefined> {
  const names = writes.flatMap(({ record }) => record?.unique ?? []);
  const rows = await transaction.forEach<RowOf<typeof contentNames>>(
    "SELECT name, key FROM {content_names} WHERE name = $1",
    ["text"],
    names.map((name) => [name]),
  );
  const holders = new Map(rows.map(({ name, key }) => [name, key]));
  const written = new Set(writes.map(({ key }) => key));
  const claimed = new Map<string, string>();
  for (const { key, record } of writes) {
    for (const name of record?.unique ?? []) {
      // A record of the same commit releases the names that it does not claim again.
      const holder = claimed.get(name) ?? holders.get(name);
      const isFree = holder === undefined || holder === key || (!claimed.has(name) && written.has(holder));
      if (!isFree) return { key, unique: name };
      claimed.set(name, key);
    }
  }
  return undefined;
}

async function saveNames(
  transaction: SqlTransaction,
  writes: ContentWrite[],
  stored: Map<string, StoredRow>,
): Promise<void> {
  const released = writes.flatMap(({ key }) => JSON.parse(stored.get(key)?.names ?? "[]") as string[]);
  await transaction.remove(
    contentNames,
    ["name"],
    released.map((name) => [name]),
  );
  const claimed = writes.flatMap(({ key, record }) =>
    [...new Set(record?.unique ?? [])].map((name) => [name, key]),
  );
  await transaction.insert(contentNames, ["name", "key"], claimed);
}

async function saveRecords(
  transaction: SqlTransaction,
  writes: ContentWrite[],
  sequence: number,
): Promise<void> {
  await transaction.remove(
    contentRecords,
    ["key"],
    writes.filter(({ record }) => record === null).map(({ key }) => [key]),
  );
  const columns = ["version", "columns", "body", "names", "sequence"];
  const added: SqlValues[] = [];
  const changed: SqlValues[] = [];
  for (const { key, expectedVersion, record } of writes) {
    if (record === null) continue;
    const names = JSON.stringify(record.unique);
    const row = [key, expectedVersion + 1, record.columns, record.body, names, sequence];
    (expectedVersion === 0 ? added : changed).push(row);
  }
  await transaction.insert(contentRecords, ["key", ...columns], added);
  await transaction.update(contentRecords, ["key"], columns, changed);
}

/** Records what a commit has changed, and forgets the oldest commits beyond those that are kept. */
async function saveChanges(
  transaction: SqlTransaction,
  { keys, sequence, changesKept }: { keys: string[]; sequence: number; changesKept: number },
): Promise<void> {
  await transaction.insert(contentCommits, ["sequence", "nonce"], [[sequence, randomUUID()]]);
  await transaction.insert(
    contentChanges,
    ["sequence", "key"],
    keys.map((key) => [sequence, key]),
  );
  const old = await transaction.all<{ sequence: number }>(
    `SELECT sequence FROM {content_commits} WHERE sequence <= $1 ORDER BY sequence LIMIT ${MAX_FORGOTTEN}`,
    [sequence - changesKept],
  );
  const sequences = old.map((row) => [row.sequence]);
  await transaction.remove(contentChanges, ["sequence"], sequences);
  await transaction.remove(contentCommits, ["sequence"], sequences);
}

export async function commitContent(
  transaction: SqlTransaction,
  writes: ContentWrite[],
  basis: ContentBasis[],
  changesKept: number,
): Promise<ContentCommit> {
  await transaction.lock("content");
  const stored = await readStored(
    transaction,
    [...basis, ...writes].map(({ key }) => key),
  );
  const conflict = findChanged(stored, writes, basis) ?? (await findTakenName(transaction, writes));
  if (conflict) return { ok: false, conflict };
  const sequence = (await readLastCommit(transaction)).sequence + 1;
  await saveNames(transaction, writes, stored);
  await saveRecords(transaction, writes, sequence);
  const keys = writes
    .filter(
      ({ key, record }) =>
        typeof record?.columns === "string" || typeof stored.get(key)?.columns === "string",
    )
    .map(({ key }) => key);
  await saveChanges(transaction, { keys, sequence, changesKept });
  return { ok: true, sequence };
}

// Encodes and decodes the rows of content.

export type RecordRow = RowOf<typeof contentRecords>;

const encodeOptional = (text: string | null): string | null =>
  text === null ? null : encodeStoredText(text);
const decodeOptional = (text: string | null): string | null =>
  text === null ? null : decodeStoredText(text);

/** Encodes the texts of writes, and copies them: the caller may change its arguments meanwhile. */
export const encodeWrites = (writes: readonly ContentWrite[]): ContentWrite[] =>
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
  key: string;
  version: number | null;
  columns: string | null;
};

export const toContentChange = ({ key, version, columns }: ChangeRow): ContentChange => ({
  key: decodeStoredText(key),
  version: version ?? 0,
  columns: decodeOptional(columns),
});
