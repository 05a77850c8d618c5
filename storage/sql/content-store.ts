/** The content store on SQL: records by key, unique names, and the latest changes. */

import type { ContentChange, ContentChanges, ContentStore } from "../../src/content/store.js";
import { encodeStoredText } from "../stored-text.js";
import {
  type ChangeRow,
  type CommitRow,
  commitContent,
  decodeConflict,
  encodeWrites,
  type RecordRow,
  readLastCommit,
  toContentChange,
  toContentRecord,
} from "./content-commit.js";
import type { SqlDatabase, SqlTransaction } from "./database.js";

/** Records in one page of a load, so that none blocks the event loop for long. */
const PAGE = 1_000;
/** Commits whose nonces this process knows. */
const COMMITS_KNOWN = 100;

const ONE_STATEMENT = { isOneStatement: true } as const;

export interface SqlContentStoreOptions {
  database: SqlDatabase;
  now: () => number;
  /** The latest commits whose changes a caller can catch up with. */
  changesKept: number;
}

export function createSqlContentStore({ database, now, changesKept }: SqlContentStoreOptions): ContentStore {
  /** Nonces by sequence. If a sequence has another nonce now, the data was replaced. */
  const nonces = new Map<number, string>();
  const remember = ({ sequence, nonce }: CommitRow): void => {
    nonces.delete(sequence);
    nonces.set(sequence, nonce);
    const [oldest] = nonces.keys();
    if (nonces.size > COMMITS_KNOWN && oldest !== undefined) nonces.delete(oldest);
  };

  async function* scan(): AsyncGenerator<ContentChange[]> {
    for (let after = ""; ; ) {
      const rows = await database.read(
        (transaction) =>
          transaction.all<ChangeRow>(
            `SELECT key, version, columns FROM {content_records} WHERE key > $1 AND columns IS NOT NULL ORDER BY key LIMIT ${PAGE}`,
            [after],
          ),
        ONE_STATEMENT,
      );
      if (rows.length > 0) yield rows.map(toContentChange);
      if (rows.length < PAGE) return;
      after = rows.at(-1)?.key ?? after;
    }
  }

  const readChanges = async (transaction: SqlTransaction, since: number): Promise<ContentChanges> => {
    const last = await readLastCommit(transaction);
    const nonce = nonces.get(since);
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
    return { sequence: last.sequence, changes: rows.map(toContentChange) };
  };

  return Object.freeze<ContentStore>({
    now,
    async load() {
      const last = await database.read(readLastCommit, ONE_STATEMENT);
      remember(last);
      return { sequence: last.sequence, batches: scan() };
    },
    async read(keys) {
      const rows = await database.read(
        (transaction) =>
          transaction.forEach<RecordRow>(
            "SELECT * FROM {content_records} WHERE key = $1",
            ["text"],
            [...new Set(keys)].map((key) => [encodeStoredText(key)]),
          ),
        ONE_STATEMENT,
      );
      const records = new Map(rows.map(toContentRecord).map((record) => [record.key, record]));
      return keys.map((key) => records.get(key));
    },
    allocate: (name, count) => {
      const kind = encodeStoredText(name);
      return database.write(async (transaction) => {
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
      });
    },
    async commit(writes, basis = []) {
      const encoded = encodeWrites(writes);
      const read = basis.map(({ key, version }) => ({ key: encodeStoredText(key), version }));
      const result = await database.write((transaction) =>
        commitContent(transaction, encoded, read, changesKept),
      );
      return decodeConflict(result);
    },
    async changes(since) {
      const { sequence, nonce } = await database.read(readLastCommit, ONE_STATEMENT);
      // Most often nothing has changed, and this read is all.
      if (sequence === since && nonce === nonces.get(since)) return { sequence, changes: [] };
      return database.read((transaction) => readChanges(transaction, since));
    },
  });
}
