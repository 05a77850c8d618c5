/** The content store on SQL: records by key, unique names, and the changes of the latest commits. */

import { randomUUID } from "node:crypto";
import type {
  ContentBasis,
  ContentChange,
  ContentChanges,
  ContentCommit,
  ContentRecord,
  ContentStore,
  ContentWrite,
} from "../../src/content/store.js";
import { contentChanges, contentCommits, contentNames, contentRecords } from "./content-tables.js";
import type { SqlDatabase, SqlTransaction } from "./database.js";
import type { RowOf } from "./table.js";
import { decodeText, encodeText } from "./text.js";

/** Records in one page of a load, so that none blocks the event loop for long. */
const PAGE = 1_000;
/** The most commits whose changes are forgotten with one new commit. */
const MOST_FORGOTTEN = 100;
/** Commits whose nonces this process knows. */
const COMMITS_KNOWN = 100;

export interface SqlContentStoreOptions {
  readonly database: SqlDatabase;
  readonly now: () => number;
  /** The latest commits whose changes a caller can catch up with. */
  readonly changesKept: number;
}

type RecordRow = RowOf<typeof contentRecords>;
type CommitRow = RowOf<typeof contentCommits>;
type StoredRow = Pick<RecordRow, "key" | "version" | "columns" | "names">;

const NOTHING: CommitRow = { sequence: 0, nonce: "" };

async function readLast(transaction: SqlTransaction): Promise<CommitRow> {
  const [last] = await transaction.all<CommitRow>(
    "SELECT sequence, nonce FROM {content_commits} ORDER BY sequence DESC LIMIT 1",
  );
  return last ?? NOTHING;
}

/** Reads what a commit compares: the version, the columns and the names of each record. */
async function readStored(
  transaction: SqlTransaction,
  keys: readonly string[],
): Promise<ReadonlyMap<string, StoredRow>> {
  const rows = await transaction.forEach<StoredRow>(
    "SELECT key, version, columns, names FROM {content_records} WHERE key = $1",
    ["text"],
    [...new Set(keys)].map((key) => [key]),
  );
  return new Map(rows.map((row) => [row.key, row]));
}

type Conflict = Extract<ContentCommit, { readonly ok: false }>["conflict"];

/** Finds a record that has changed since the caller read it. */
function findChanged(
  stored: ReadonlyMap<string, StoredRow>,
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
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
  writes: readonly ContentWrite[],
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
  writes: readonly ContentWrite[],
  stored: ReadonlyMap<string, StoredRow>,
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
  writes: readonly ContentWrite[],
  sequence: number,
): Promise<void> {
  await transaction.remove(
    contentRecords,
    ["key"],
    writes.filter(({ record }) => record === null).map(({ key }) => [key]),
  );
  const kept = writes.flatMap(({ key, expectedVersion, record }) =>
    record === null ? [] : [{ key, isNew: expectedVersion === 0, version: expectedVersion + 1, ...record }],
  );
  const columns = ["version", "columns", "body", "names", "sequence"] as const;
  const toValues = ({ key, version, columns: own, body, unique }: (typeof kept)[number]) => [
    ...[key, version, own, body, JSON.stringify(unique), sequence],
  ];
  const added = kept.filter(({ isNew }) => isNew).map(toValues);
  await transaction.insert(contentRecords, ["key", ...columns], added);
  const changed = kept.filter(({ isNew }) => !isNew).map(toValues);
  await transaction.update(contentRecords, ["key"], columns, changed);
}

/** Records what a commit has changed, and forgets the oldest commits beyond those that are kept. */
async function saveChanges(
  transaction: SqlTransaction,
  { keys, sequence, changesKept }: { keys: readonly string[]; sequence: number; changesKept: number },
): Promise<void> {
  await transaction.insert(contentCommits, ["sequence", "nonce"], [[sequence, randomUUID()]]);
  await transaction.insert(
    contentChanges,
    ["sequence", "key"],
    keys.map((key) => [sequence, key]),
  );
  const old = await transaction.all<{ sequence: number }>(
    `SELECT sequence FROM {content_commits} WHERE sequence <= $1 ORDER BY sequence LIMIT ${MOST_FORGOTTEN}`,
    [sequence - changesKept],
  );
  const sequences = old.map((row) => [row.sequence]);
  await transaction.remove(contentChanges, ["sequence"], sequences);
  await transaction.remove(contentCommits, ["sequence"], sequences);
}

async function commit(
  transaction: SqlTransaction,
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
  changesKept: number,
): Promise<ContentCommit> {
  await transaction.lock("content");
  const stored = await readStored(
    transaction,
    [...basis, ...writes].map(({ key }) => key),
  );
  const conflict = findChanged(stored, writes, basis) ?? (await findTakenName(transaction, writes));
  if (conflict) return { ok: false, conflict };
  const sequence = (await readLast(transaction)).sequence + 1;
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

const encodeOptional = (text: string | null): string | null => (text === null ? null : encodeText(text));
const decodeOptional = (text: string | null): string | null => (text === null ? null : decodeText(text));

/** Copies writes, because the caller may change its own while they wait, and encodes their texts. */
const encodeWrites = (writes: readonly ContentWrite[]): readonly ContentWrite[] =>
  writes.map(({ key, expectedVersion, record }) => ({
    key: encodeText(key),
    expectedVersion,
    record: record && {
      columns: encodeOptional(record.columns),
      body: encodeText(record.body),
      unique: record.unique.map(encodeText),
    },
  }));

const decodeConflict = (result: ContentCommit): ContentCommit => {
  if (result.ok) return result;
  const { key, unique } = result.conflict;
  const conflict = { key: decodeText(key), ...(unique !== undefined && { unique: decodeText(unique) }) };
  return { ok: false, conflict };
};

const toRecord = ({ key, version, columns, body, names }: RecordRow): ContentRecord =>
  Object.freeze({
    key: decodeText(key),
    version,
    columns: decodeOptional(columns),
    body: decodeText(body),
    unique: Object.freeze((JSON.parse(names) as string[]).map(decodeText)),
  });

type ChangeRow = { readonly key: string; readonly version: number | null; readonly columns: string | null };

const toChange = ({ key, version, columns }: ChangeRow): ContentChange => ({
  key: decodeText(key),
  version: version ?? 0,
  columns: decodeOptional(columns),
});

export function createSqlContentStore({ database, now, changesKept }: SqlContentStoreOptions): ContentStore {
  /** Nonces by sequence. If a sequence has another nonce now, the data was replaced. */
  const known = new Map<number, string>();
  const remember = ({ sequence, nonce }: CommitRow): void => {
    known.delete(sequence);
    known.set(sequence, nonce);
    const [oldest] = known.keys();
    if (known.size > COMMITS_KNOWN && oldest !== undefined) known.delete(oldest);
  };

  async function* scan(): AsyncGenerator<readonly ContentChange[]> {
    for (let after = ""; ; ) {
      const rows = await database.read((transaction) =>
        transaction.all<ChangeRow>(
          `SELECT key, version, columns FROM {content_records} WHERE key > $1 AND columns IS NOT NULL ORDER BY key LIMIT ${PAGE}`,
          [after],
        ),
      );
      if (rows.length > 0) yield rows.map(toChange);
      if (rows.length < PAGE) return;
      after = rows.at(-1)?.key ?? after;
    }
  }

  const readChanges = async (transaction: SqlTransaction, since: number): Promise<ContentChanges> => {
    const last = await readLast(transaction);
    const nonce = known.get(since);
    const isOther = since > 0 && nonce !== undefined && since === last.sequence && nonce !== last.nonce;
    if (since > last.sequence || isOther) return "reload";
    if (since === last.sequence) return { sequence: since, changes: [] };
    const [first] = await transaction.all<CommitRow>(
      "SELECT sequence, nonce FROM {content_commits} WHERE sequence >= $1 ORDER BY sequence LIMIT 1",
      [Math.max(since, 1)],
    );
    const isKept = first !== undefined && first.sequence <= since + 1;
    if (!isKept || (first.sequence === since && nonce !== undefined && nonce !== first.nonce))
      return "reload";
    const rows = await transaction.all<ChangeRow>(
      `SELECT c.key, r.version, r.columns FROM (SELECT DISTINCT key FROM {content_changes} WHERE sequence > $1) AS c
        LEFT JOIN {content_records} r ON r.key = c.key`,
      [since],
    );
    remember(last);
    return { sequence: last.sequence, changes: rows.map(toChange) };
  };

  return Object.freeze<ContentStore>({
    now,
    async load() {
      const last = await database.read(readLast);
      remember(last);
      return { sequence: last.sequence, batches: scan() };
    },
    async read(keys) {
      const rows = await database.read((transaction) =>
        transaction.forEach<RecordRow>(
          "SELECT * FROM {content_records} WHERE key = $1",
          ["text"],
          [...new Set(keys)].map((key) => [encodeText(key)]),
        ),
      );
      const records = new Map(rows.map(toRecord).map((record) => [record.key, record]));
      return keys.map((key) => records.get(key));
    },
    allocate: (kind, count) =>
      database.write(async (transaction) => {
        await transaction.lock(`content ids ${kind}`);
        const [row] = await transaction.all<{ last: number }>(
          "SELECT last FROM {content_ids} WHERE kind = $1",
          [kind],
        );
        const text =
          row === undefined
            ? "INSERT INTO {content_ids} (kind, last) VALUES ($1, $2)"
            : "UPDATE {content_ids} SET last = last + $2 WHERE kind = $1";
        await transaction.all(text, [kind, count]);
        return (row?.last ?? 0) + 1;
      }),
    async commit(writes, basis = []) {
      const encoded = encodeWrites(writes);
      const read = basis.map(({ key, version }) => ({ key: encodeText(key), version }));
      const result = await database.write((transaction) => commit(transaction, encoded, read, changesKept));
      return decodeConflict(result);
    },
    changes: (since) => database.read((transaction) => readChanges(transaction, since)),
  });
}
