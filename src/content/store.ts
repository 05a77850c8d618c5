/** What the content service asks of a storage: load, read by key, commit, and tell what changed. A store knows no post and no query. */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";

/** One stored record. Texts only, so that no backend can hand out a live reference. */
export interface ContentRecord {
  /** `post/12`, `term/3`, `revision/14`: the kind, a slash, the id. */
  readonly key: string;
  /** 1 for a new record, one more with every change of it. */
  readonly version: number;
  /** What every process keeps in memory to answer lists, as JSON; `null` for a record that is never resident, such as a revision. */
  readonly columns: string | null;
  /** The rest, as JSON; read when it is needed. */
  readonly body: string;
  /** Names that no other record may hold at the same time: `slug/post/hello-world`. */
  readonly unique: readonly string[];
}

/** A write of one record: with `record: null` it is removed. */
export interface ContentWrite {
  readonly key: string;
  /** The version it is based on; 0 for a record that must not exist yet. */
  readonly expectedVersion: number;
  readonly record: Omit<ContentRecord, "key" | "version"> | null;
}

/** A record as it was read; version 0 where there was none. */
export interface ContentBasis {
  readonly key: string;
  readonly version: number;
}

/** What became of a commit. */
export type ContentCommit =
  | { readonly ok: true /** Of this commit. */; readonly sequence: number }
  /** Nothing was stored: another writer was faster, or holds the name. */
  | {
      readonly ok: false;
      readonly conflict: { readonly key: string; readonly unique?: string | undefined };
    };

/** The new state of a record's columns; `columns: null` with `version: 0` for one that was removed. */
export interface ContentChange {
  readonly key: string;
  readonly version: number;
  readonly columns: string | null;
}

/** What {@link ContentStore.changes} answers. */
export type ContentChanges =
  | { readonly sequence: number; readonly changes: readonly ContentChange[] }
  /** The stream no longer reaches back that far: load again. */
  | "reload";

/** All records with columns, as a process loads them when it starts. */
export interface ContentSnapshot {
  /** Changes after this one are not in `batches` for certain, those up to it are. */
  readonly sequence: number;
  /** Every record with columns, in batches, in no promised order. */
  readonly batches: AsyncIterable<readonly ContentChange[]>;
}

/**
 * Guarantee of every backend: a commit is stored whole or not at all; commits are ordered by `sequence`, which grows by 1 with each; what `commit` has
 * acknowledged is seen by every later `read` and `changes`. A record handed out never changes, nor does it change what is stored.
 * Errors of every method: `storage_unavailable`; of `commit` also `storage_full`.
 */
export interface ContentStore {
  /** Epoch ms by the storage's clock. */
  now(): number;
  /** What a process needs to answer lists: every record with columns. */
  load(): Promise<ContentSnapshot>;
  /** In the order of `keys`, `undefined` for what does not exist. At most 1 000 keys. */
  read(keys: readonly string[]): Promise<readonly (ContentRecord | undefined)[]>;
  /** Ids that were never handed out before and never will be again: the first of `count` consecutive ones. Starts at 1 for each kind. */
  allocate(kind: string, count: number): Promise<number>;
  /**
   * All writes or none. At most one write for each key; at most 10 000 writes. `basis`: records that the writes were decided upon without changing them;
   * one that has another version by now is a conflict too.
   */
  commit(writes: readonly ContentWrite[], basis?: readonly ContentBasis[]): Promise<ContentCommit>;
  /**
   * What changed after `since`, each record once with its newest state; one that never had columns may be left out. Synchronous where the storage is in this process, so that a read that finds
   * nothing new costs no turn of the event loop.
   */
  changes(since: number): ContentChanges | Promise<ContentChanges>;
}

/** What a storage is given by the service that binds it. */
export interface ContentContext {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A storage that can hold content. One storage holds one site. */
export interface ContentStorage {
  /** The content store on this storage. Two services on one storage see the same records. Does no I/O yet. */
  content(context: ContentContext): ContentStore;
  /** Lets go of what the storage itself opened. Calling it again changes nothing. */
  close(): Promise<void>;
}
