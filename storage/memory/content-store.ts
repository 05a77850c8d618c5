/**
 * The content store on the heap of this process: records by key, unique names, and the latest
 * changes.
 */

import type {
  ContentBasis,
  ContentChange,
  ContentContext,
  ContentRecord,
  ContentStore,
  ContentWrite,
} from "../../src/content/store.js";
import { PostbellError } from "../../src/core/errors.js";
import { createTime, type Epoch, textBytes } from "./state.js";

/** The heap that a record takes besides text, with its entries in maps: rounded up. */
const RECORD_BYTES = 500;
/** Changes that a caller can catch up with; at most twice as many are kept. */
const CHANGES_KEPT = 20_000;
const BATCH = 1_000;

export interface ContentState extends Epoch {
  records: Map<string, ContentRecord>;
  /** The key of the record that holds each name. */
  names: Map<string, string>;
  /** The last id that was allocated, by kind. */
  ids: Map<string, number>;
  /** Oldest first. A record that changed several times has several entries. */
  changes: { sequence: number; key: string }[];
  /** The sequence of the last commit whose changes may have been dropped. */
  forgotten: number;
  sequence: number;
  bytes: number;
}

export const createContentState = (): ContentState => ({
  records: new Map(),
  names: new Map(),
  ids: new Map(),
  changes: [],
  forgotten: 0,
  sequence: 0,
  bytes: 0,
  epoch: undefined,
});

const recordBytes = ({ columns, body, unique }: NonNullable<ContentWrite["record"]>): number =>
  [columns ?? "", body, ...unique].reduce((sum, text) => sum + textBytes(text), RECORD_BYTES);

const toChange = (state: ContentState, key: string): ContentChange => {
  const record = state.records.get(key);
  return { key, version: record?.version ?? 0, columns: record?.columns ?? null };
};

interface Conflict {
  key: string;
  /** The unique name that another record holds. */
  unique?: string;
}

/** Finds a record that has changed since the caller read it. */
function findChanged(
  { records }: ContentState,
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
): Conflict | undefined {
  const getVersion = (key: string): number => records.get(key)?.version ?? 0;
  const changed =
    basis.find(({ key, version }) => getVersion(key) !== version) ??
    writes.find(({ key, expectedVersion }) => getVersion(key) !== expectedVersion);
  return changed && { key: changed.key };
}

/** Finds a unique name that a write claims and another record holds. */
function findTakenName({ names }: ContentState, writes: readonly ContentWrite[]): Conflict | undefined {
  const written = new Set(writes.map(({ key }) => key));
  const claimed = new Map<string, string>();
  for (const { key, record } of writes) {
    for (const name of record?.unique ?? []) {
      // A record of the same commit releases the names that it does not claim again.
      const holder = claimed.get(name) ?? names.get(name);
      const isFree = holder === undefined || holder === key || (!claimed.has(name) && written.has(holder));
      if (!isFree) return { key, unique: name };
      claimed.set(name, key);
    }
  }
  return undefined;
}

function applyWrites(state: ContentState, writes: readonly ContentWrite[]): void {
  const { records, names } = state;
  state.sequence += 1;
  const isResident = ({ key }: ContentWrite): boolean => typeof records.get(key)?.columns === "string";
  const before = new Set(writes.filter(isResident));
  for (const { key } of writes) for (const name of records.get(key)?.unique ?? []) names.delete(name);
  for (const { key, record, expectedVersion } of writes) {
    if (record === null) {
      records.delete(key);
      continue;
    }
    const { columns, body } = record;
    const unique = Object.freeze([...record.unique]);
    for (const name of unique) names.set(name, key);
    records.set(key, Object.freeze({ key, version: expectedVersion + 1, columns, body, unique }));
  }
  for (const write of writes) {
    if (before.has(write) || isResident(write))
      state.changes.push({ sequence: state.sequence, key: write.key });
  }
  if (state.changes.length > 2 * CHANGES_KEPT) {
    state.forgotten = state.changes[state.changes.length - CHANGES_KEPT - 1]?.sequence ?? state.sequence;
    state.changes = state.changes.slice(-CHANGES_KEPT);
  }
}

/**
 * `maxBytes` bounds all records together: a commit that would exceed it is refused with
 * `storage_full`.
 */
export function createMemoryContentStore(
  state: ContentState,
  { clock }: ContentContext,
  maxBytes: number,
): ContentStore {
  return Object.freeze<ContentStore>({
    now: createTime(state, clock),
    async load() {
      const resident = [...state.records.values()].filter(({ columns }) => columns !== null);
      async function* batches() {
        for (let start = 0; start < resident.length; start += BATCH) {
          yield resident
            .slice(start, start + BATCH)
            .map(({ key, version, columns }): ContentChange => ({ key, version, columns }));
        }
      }
      return { sequence: state.sequence, batches: batches() };
    },
    async read(keys) {
      return keys.map((key) => state.records.get(key));
    },
    async allocate(kind, count) {
      const last = state.ids.get(kind) ?? 0;
      state.ids.set(kind, last + count);
      return last + 1;
    },
    async commit(writes, basis = []) {
      const conflict = findChanged(state, writes, basis) ?? findTakenName(state, writes);
      if (conflict) return { ok: false, conflict };
      const growth = writes.reduce((sum, { key, record }) => {
        const old = state.records.get(key);
        return sum + (record ? recordBytes(record) : 0) - (old ? recordBytes(old) : 0);
      }, 0);
      if (state.bytes + growth > maxBytes) {
        throw new PostbellError(
          "storage_full",
          `The memory storage has reached limits.contentBytes (${maxBytes}); nothing was stored. Raise it, or remove content.`,
          { field: "limits.contentBytes" },
        );
      }
      state.bytes += growth;
      applyWrites(state, writes);
      return { ok: true, sequence: state.sequence };
    },
    changes(since) {
      const { sequence, forgotten, changes } = state;
      if (since < forgotten || since > sequence) return "reload";
      const keys = new Set<string>();
      for (let place = changes.length - 1; place >= 0; place -= 1) {
        const change = changes[place];
        if (change === undefined || change.sequence <= since) break;
        keys.add(change.key);
      }
      return { sequence, changes: [...keys].map((key) => toChange(state, key)) };
    },
  });
}
