/** The content store on the heap of this process: records by key, names that are taken, and what changed last. */

import type {
  ContentBasis,
  ContentChange,
  ContentContext,
  ContentRecord,
  ContentStore,
  ContentWrite,
} from "../../src/content/store.js";
import { PostbellError } from "../../src/core/errors.js";
import { textBytes } from "./bounds.js";
import { type Epoch, readTime } from "./time.js";

/** What a record holds on the heap besides text, with its places in maps: rounded up. */
const RECORD_BYTES = 500;
/** Changes that can be asked for at least; at most twice as many are kept. */
const CHANGES_KEPT = 20_000;
const BATCH = 1_000;

export interface ContentState extends Epoch {
  readonly records: Map<string, ContentRecord>;
  /** By name, the key of the record that holds it. */
  readonly names: Map<string, string>;
  /** By kind, the last one that was handed out. */
  readonly ids: Map<string, number>;
  /** Oldest first; a record stands in it as often as it changed. */
  changes: { readonly sequence: number; readonly key: string }[];
  /** Of the last commit whose changes may have been dropped. */
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

const changeOf = (state: ContentState, key: string): ContentChange => {
  const record = state.records.get(key);
  return { key, version: record?.version ?? 0, columns: record?.columns ?? null };
};

/** What keeps `writes` from being stored. */
function conflictOf(
  { records, names }: ContentState,
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
): { readonly key: string; readonly unique?: string } | undefined {
  const changed = basis.find(({ key, version }) => (records.get(key)?.version ?? 0) !== version);
  if (changed) return { key: changed.key };
  const written = new Set<string>();
  for (const { key, expectedVersion } of writes) {
    if ((records.get(key)?.version ?? 0) !== expectedVersion) return { key };
    written.add(key);
  }
  const claimed = new Map<string, string>();
  for (const { key, record } of writes) {
    for (const name of record?.unique ?? []) {
      // A record of the same commit gives up what it does not claim again.
      const holder = claimed.get(name) ?? names.get(name);
      const isFree = holder === undefined || holder === key || (!claimed.has(name) && written.has(holder));
      if (!isFree) return { key, unique: name };
      claimed.set(name, key);
    }
  }
  return undefined;
}

function store(state: ContentState, writes: readonly ContentWrite[]): void {
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

/** `maxBytes` bounds all records together: a commit that passes it is refused with `storage_full`. */
export function createMemoryContentStore(
  state: ContentState,
  { clock }: ContentContext,
  maxBytes: number,
): ContentStore {
  return Object.freeze<ContentStore>({
    now: () => readTime(state, clock),
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
      const conflict = conflictOf(state, writes, basis);
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
      store(state, writes);
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
      return { sequence, changes: [...keys].map((key) => changeOf(state, key)) };
    },
  });
}
