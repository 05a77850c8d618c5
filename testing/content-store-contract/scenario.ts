/** What the tests of the content store contract work with: a fresh storage bound twice, a clock that stands still, and short words for the calls. */

import assert from "node:assert/strict";
import type {
  ContentBasis,
  ContentChange,
  ContentCommit,
  ContentRecord,
  ContentStorage,
  ContentStore,
  ContentWrite,
} from "../../src/content/store.js";
import { silentLogger } from "../../src/core/logger.js";
import { type ManualClock, manualClock } from "../manual-clock.js";

/** A storage that holds no content yet. */
export interface ContentStorageUnderTest {
  readonly storage: ContentStorage;
  /** Another connection to the same records, as a second process would have it. Default: the same storage, bound a second time. */
  readonly peer?: ContentStorage | undefined;
  /** Called after the test, once the storages are closed. */
  readonly destroy?: (() => unknown) | undefined;
}

/** Declares one test of the contract. */
export type DeclareContentTest = (
  name: string,
  run: (scenario: ContentScenario) => Promise<void>,
  seed?: number,
) => void;

export type ContentScenario = ReturnType<typeof createContentScenario>;

const START_MS = Date.UTC(2026, 0, 5, 8);

type Fields = Partial<NonNullable<ContentWrite["record"]>>;

/** A write of `key`; what `fields` leaves out is made from the key. */
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

export const remove = (key: string, expectedVersion: number): ContentWrite => ({
  key,
  expectedVersion,
  record: null,
});

/** The record that a write leaves. */
export function createRecord({ key, expectedVersion, record }: ContentWrite): ContentRecord {
  assert.ok(record);
  return { key, version: expectedVersion + 1, ...record };
}

export const createChange = ({ key, version, columns }: ContentRecord): ContentChange => ({
  key,
  version,
  columns,
});

const byKey = (a: { readonly key: string }, b: { readonly key: string }): number =>
  a.key < b.key ? -1 : Number(a.key > b.key);

/** What a test may rely on: changes have no order, and of records that never had columns a store may say nothing. */
export const sorted = (changes: Iterable<ContentChange>): readonly ContentChange[] =>
  [...changes].filter(({ version, columns }) => version === 0 || columns !== null).sort(byKey);

export function createContentScenario({ storage, peer = storage }: ContentStorageUnderTest, seed = 1) {
  const clock: ManualClock = manualClock(START_MS, { seed });
  const context = { clock, logger: silentLogger };
  const store = storage.content(context);
  const other = peer.content(context);

  return {
    clock,
    store,
    /** A second binding, as another process would have it. */
    other,

    /** Commits what must not be refused, and says its sequence number. */
    async commit(...writes: readonly ContentWrite[]): Promise<number> {
      const committed = await store.commit(writes);
      assert.ok(committed.ok, `refused: ${JSON.stringify(committed)}`);
      return committed.sequence;
    },

    /** Asserts that `writes` are refused, and that nothing of them is stored. */
    async refuse(
      writes: readonly ContentWrite[],
      key: string,
      unique?: string,
      basis?: readonly ContentBasis[],
    ): Promise<void> {
      const keys = writes.map((write) => write.key);
      const before = await store.read(keys);
      const since = await getSequence(store);
      const answer: ContentCommit = await other.commit(writes, basis);
      assert.ok(!answer.ok, "the commit is refused");
      assert.equal(answer.conflict.key, key);
      assert.equal(answer.conflict.unique, unique);
      assert.deepEqual(await store.read(keys), before);
      assert.deepEqual(await listChanges(store, since), []);
      assert.equal(await getSequence(store), since);
    },
  };
}

/** Of the last commit. */
export const getSequence = async (store: ContentStore): Promise<number> => (await store.load()).sequence;

/** What changed after `since`; it must not be so long ago that the store has forgotten. */
export async function listChanges(store: ContentStore, since: number): Promise<readonly ContentChange[]> {
  const answer = await store.changes(since);
  assert.ok(answer !== "reload", "the store still knows what changed");
  return sorted(answer.changes);
}

/** Every record with columns, by its key. */
export async function loaded(
  store: ContentStore,
  between: () => Promise<unknown> = async () => {},
): Promise<{ readonly sequence: number; readonly records: Map<string, ContentChange> }> {
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
