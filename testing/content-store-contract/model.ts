/**
 * A random run of two processes against one content store, checked after each step against a model that is too simple to be wrong:
 * commits are whole or nothing, names are held once, and each process that follows the changes has the whole state.
 */

import assert from "node:assert/strict";
import type {
  ContentBasis,
  ContentChange,
  ContentRecord,
  ContentStore,
  ContentWrite,
} from "../../src/content/store.js";
import { type ContentScenario, loadAll, put, remove, sortChanges, toChange } from "./fixture.js";

const KEYS = Array.from({ length: 12 }, (_, place) =>
  place % 4 === 3 ? `revision/${place}` : `post/${place}`,
);
const NAMES = ["slug/a", "slug/b", "slug/c", "slug/d"];

interface Follower {
  readonly store: ContentStore;
  sequence: number;
  records: Map<string, ContentChange>;
}

/** Whether `writes` have to be refused, by the rules of the port. */
function isRefused(
  records: ReadonlyMap<string, ContentRecord>,
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
): boolean {
  const expected = [
    ...basis,
    ...writes.map(({ key, expectedVersion }) => ({ key, version: expectedVersion })),
  ];
  if (expected.some(({ key, version }) => (records.get(key)?.version ?? 0) !== version)) return true;
  const written = new Set(writes.map(({ key }) => key));
  const names = [
    ...[...records.values()].filter(({ key }) => !written.has(key)).flatMap(({ unique }) => unique),
    ...writes.flatMap(({ record }) => record?.unique ?? []),
  ];
  return new Set(names).size < names.length;
}

/** Runs `steps` random commands. */
export async function runContentModel(s: ContentScenario, steps: number): Promise<void> {
  const records = new Map<string, ContentRecord>();
  const below = (count: number): number => Math.floor(s.clock.random() * count);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
  const followers: Follower[] = [s.store, s.peer].map((store) => ({
    store,
    sequence: -1,
    records: new Map(),
  }));
  let sequence = (await s.store.load()).sequence;

  function writeOf(key: string): ContentWrite {
    const version = records.get(key)?.version ?? 0;
    const expected = below(10) === 0 ? version + pick([-1, 1]) : version;
    if (below(4) === 0) return remove(key, Math.max(0, expected));
    return put(key, Math.max(0, expected), {
      columns: key.startsWith("revision/") ? null : JSON.stringify(below(1_000_000)),
      body: JSON.stringify(below(1_000_000)),
      unique: below(2) === 0 ? [pick(NAMES)] : [],
    });
  }

  async function commit(): Promise<void> {
    const keys = new Set(Array.from({ length: 1 + below(4) }, () => pick(KEYS)));
    const writes = [...keys].map(writeOf);
    const basis = Array.from({ length: below(3) }, () => pick(KEYS)).map((key) => ({
      key,
      version: Math.max(0, (records.get(key)?.version ?? 0) - Number(below(8) === 0)),
    }));
    const answer = await pick([s.store, s.peer]).commit(writes, basis);
    assert.equal(answer.ok, !isRefused(records, writes, basis));
    if (!answer.ok) {
      assert.ok([...keys, ...basis.map(({ key }) => key)].includes(answer.conflict.key));
      return;
    }
    sequence += 1;
    assert.equal(answer.sequence, sequence);
    for (const { key, expectedVersion, record } of writes) {
      if (record) records.set(key, { key, version: expectedVersion + 1, ...record });
      else records.delete(key);
    }
  }

  async function follow(follower: Follower): Promise<void> {
    const answer =
      follower.sequence < 0 || below(15) === 0 ? "reload" : await follower.store.changes(follower.sequence);
    if (answer === "reload") {
      const { sequence: at, records: all } = await loadAll(follower.store);
      follower.records = all;
      follower.sequence = at;
    } else {
      assert.equal(new Set(answer.changes.map(({ key }) => key)).size, answer.changes.length);
      for (const change of answer.changes) {
        if (change.columns === null) follower.records.delete(change.key);
        else follower.records.set(change.key, change);
      }
      follower.sequence = answer.sequence;
    }
    assert.equal(follower.sequence, sequence);
    assert.deepEqual(
      sortChanges(follower.records.values()),
      sortChanges([...records.values()].map(toChange)),
    );
  }

  for (let step = 0; step < steps; step += 1) {
    if (below(3) > 0) await commit();
    else await follow(pick(followers));
    const keys = [pick(KEYS), pick(KEYS)];
    assert.deepEqual(
      await pick([s.store, s.peer]).read(keys),
      keys.map((key) => records.get(key)),
    );
  }
  for (const follower of followers) await follow(follower);
}
