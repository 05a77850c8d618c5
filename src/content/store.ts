/**
 * The port to a storage: load, read by key, commit, and report changes. A store knows no post.
 * `contentStoreContract` of `postbell/testing` checks the rules.
 */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";

/** A stored record. It holds strings only, so that no backend can hand out a live reference. */
export interface ContentRecord {
  /** `post/12`, `term/3`, `revision/14`: the kind, a slash, the id. */
  readonly key: string;
  /** 1 for a new record, one more with every change of it. */
  readonly version: number;
  /**
   * The columns that every process keeps in memory to answer lists, as JSON. `null` for a record
   * that is never resident, such as a revision.
   */
  readonly columns: string | null;
  /** The rest, as JSON; read when needed. */
  readonly body: string;
  /** Names that no other record may have at the same time: `slug/post/hello-world`. */
  readonly unique: readonly string[];
}

/** A write of one record. `record: null` removes it. */
export interface ContentWrite {
  readonly key: string;
  /** The version that the write is based on; 0 for a new record. */
  readonly expectedVersion: number;
  readonly record: Omit<ContentRecord, "key" | "version"> | null;
}

/** The version of a record as it was read; 0 if it did not exist. */
export interface ContentBasis {
  readonly key: string;
  readonly version: number;
}

/** The result of a commit. */
export type ContentCommit =
  | { readonly ok: true /** Of this commit. */; readonly sequence: number }
  /** Nothing was stored, since another writer was faster or holds the name. */
  | {
      readonly ok: false;
      readonly conflict: { readonly key: string; readonly unique?: string | undefined };
    };

/** The new columns of a record. A removed record has `columns: null` and `version: 0`. */
export interface ContentChange {
  key: string;
  version: number;
  columns: string | null;
}

/** The result of {@link ContentStore.changes}. */
export type ContentChanges =
  | { readonly sequence: number; readonly changes: readonly ContentChange[] }
  /** The stream no longer goes back that far: load again. */
  | "reload";

/** All records with columns, as a process loads them when it starts. */
export interface ContentSnapshot {
  /** `batches` contains every change up to this one, and perhaps later ones. */
  readonly sequence: number;
  /** Every record with columns, in batches, in any order. */
  readonly batches: AsyncIterable<readonly ContentChange[]>;
}

/**
 * The guarantees of every backend:
 *
 * - A commit is stored whole or not at all.
 * - Commits are ordered by `sequence`, which grows by 1 with each.
 * - Every later `read` and `changes` sees an acknowledged commit.
 * - A record that was handed out never changes, and changing it does not change the stored one.
 *
 * Every method may throw `storage_unavailable`, and `commit` also `storage_full`.
 */
export interface ContentStore {
  /** The time by the storage's clock, in epoch milliseconds. */
  now(): number;
  /** Loads every record with columns, as a process needs them to answer lists. */
  load(): Promise<ContentSnapshot>;
  /**
   * Returns the records in the order of `keys`, with `undefined` for missing ones. At most 1 000
   * keys.
   */
  read(keys: string[]): Promise<(ContentRecord | undefined)[]>;
  /**
   * Reserves `count` consecutive ids that were never handed out before, and returns the first. Each
   * kind starts at 1.
   */
  allocate(kind: string, count: number): Promise<number>;
  /**
   * Stores all writes or none. At most one write per key, and 10 000 writes.
   *
   * `basis`: records that the writes depend on without changing them. If one has another version by
   * now, the result is a conflict.
   */
  commit(writes: ContentWrite[], basis?: ContentBasis[]): Promise<ContentCommit>;
  /**
   * Returns each record that changed after `since`, once, in its newest state. Records that never
   * had columns may be left out.
   *
   * Returns without a promise if the storage is in this process, so that a read that finds nothing
   * new costs no turn of the event loop.
   */
  changes(since: number): ContentChanges | Promise<ContentChanges>;
  /**
   * Returns why the storage has no connection at present, if it knows: `ECONNREFUSED
   * 127.0.0.1:6379`. The error of a call that takes too long names it. Does no I/O.
   */
  connectionProblem?(): string | undefined;
}

/** The context that a service passes to its storage. */
export interface ContentContext {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A storage that can hold content. One storage holds one site. */
export interface ContentStorage {
  /**
   * Creates the content store on this storage. Two services on one storage see the same records.
   * Does no I/O yet.
   */
  content(context: ContentContext): ContentStore;
  /** Releases what the storage itself opened. Safe to call again. */
  close(): Promise<void>;
}
