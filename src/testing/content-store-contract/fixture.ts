/**
 * The fixture of the content store contract: an empty storage, bound by two processes, a clock that
 * stands still, and the builders and assertions that the tests share.
 */

import assert from "node:assert/strict";
import type {
  ContentBasis,
  ContentChange,
  ContentCommit,
  ContentRecord,
  ContentStorage,
  ContentStore,
  ContentWrite,
} from "../../content/store.js";
import { silentLogger } from "../../core/logger.js";
import { type ManualClock, manualClock } from "../manual-clock.js";

/** A storage without content. */
export interface ContentStorageUnderTest {
  storage: ContentStorage;
  /**
   * Another connection to the same records, as a second process has it. Default: the same storage,
   * bound a second time.
   */
  peer?: ContentStorage | undefined;
  /** Called after the test, when the storages are closed. */
  destroy?: (() => unknown) | undefined;
}

/** Declares one test, which gets a separate fixture. */
export type DeclareContentTest = (
  name: string,
  run: (scenario: ContentScenario) => Promise<void>,
  seed?: number,
) => void;

export type ContentScenario = ReturnType<typeof createContentScenario>;

const START_MS = Date.UTC(2026, 0, 5, 8);

type Fields = Partial<NonNullable<ContentWrite["record"]>>;

/** Builds a write of `key`. The fields that `fields` leaves out are derived from the key. */
export const put = (key: string, expectedVersion: number, fields: Fields = {}): ContentWrite => ({
  key,
  expectedVersion,
  record: {
    columns: JSON.stringify({ of: key, after: expectedVersion }),
    body: JSON.stringify({ text: `${key} after ${expectedVersion}` }),
    unique: [],
    ...fields,
  },
});

/** Builds a write that removes `key`. */
export const remove = (key: string, expectedVersion: number): ContentWrite => ({
  key,
  expectedVersion,
  record: null,
});

/** Returns the record that a write stores. */
export function toRecord({ key, expectedVersion, record }: ContentWrite): ContentRecord {
  assert.ok(record);
  return { key, version: expectedVersion + 1, ...record };
}

/** Returns the change that a record appears as. */
export const toChange = ({ key, version, columns }: ContentRecord): ContentChange => ({
  key,
  version,
  columns,
});

const byKey = (a: { key: string }, b: { key: string }): number =>
  a.key < b.key ? -1 : Number(a.key > b.key);

/**
 * Sorts `changes` by key and drops what a test must not rely on: a store may omit records that
 * never had columns.
 */
export const sortChanges = (changes: Iterable<ContentChange>): ContentChange[] =>
  [...changes].filter(({ version, columns }) => version === 0 || columns !== null).sort(byKey);

/** Creates the fixture of one test. */
export function createContentScenario(
  { storage, peer: peerStorage = storage }: ContentStorageUnderTest,
  seed = 1,
) {
  const clock: ManualClock = manualClock(START_MS, { seed });
  const context = { clock, logger: silentLogger };
  const store = storage.content(context);
  const peer = peerStorage.content(context);

  return {
    clock,
    store,
    /** The same records as a second process uses them. */
    peer,

    /** Commits `writes`, which must succeed. Returns the sequence number. */
    async commit(...writes: ContentWrite[]): Promise<number> {
      const committed = await store.commit(writes);
      assert.ok(committed.ok, `refused: ${JSON.stringify(committed)}`);
      return committed.sequence;
    },

    /** Asserts that a commit is refused because of `key`, and that it stores nothing. */
    async refuse(
      writes: ContentWrite[],
      key: string,
      unique?: string,
      basis?: ContentBasis[],
    ): Promise<void> {
      const keys = writes.map((write) => write.key);
      const before = await store.read(keys);
      const since = await readSequence(store);
      const response: ContentCommit = await peer.commit(writes, basis);
      assert.ok(!response.ok, "the commit is refused");
      assert.equal(response.conflict.key, key);
      assert.equal(response.conflict.unique, unique);
      assert.deepEqual(await store.read(keys), before);
      assert.deepEqual(await listChanges(store, since), []);
      assert.equal(await readSequence(store), since);
    },
  };
}

/** Reads the sequence number of the last commit. */
export const readSequence = async (store: ContentStore): Promise<number> => (await store.load()).sequence;

/** Lists the changes after `since`, which the store must still know. */
export async function listChanges(store: ContentStore, since: number): Promise<ContentChange[]> {
  const response = await store.changes(since);
  assert.ok(response !== "reload", "the store still knows the changes");
  return sortChanges(response.changes);
}

/** Loads every record with columns. `between` runs after each batch. */
export async function loadAll(
  store: ContentStore,
  between: () => Promise<unknown> = async () => {},
): Promise<{ sequence: number; records: Map<string, ContentChange> }> {
  const { sequence, batches } = await store.load();
  const records = new Map<string, ContentChange>();
  for await (const batch of batches) {
    for (const change of batch) {
      assert.notEqual(change.columns, null, "only records with columns are loaded");
      records.set(change.key, change);
    }
    await between();
  }
  return { sequence, records };
}
