/**
 * A random run of two processes against one content store and a model that is too simple to be
 * wrong. After each command both must agree: commits are whole or refused, one record holds a name,
 * and a process that follows the changes has the whole state.
 */

import assert from "node:assert/strict";
import type {
  ContentBasis,
  ContentChange,
  ContentRecord,
  ContentStore,
  ContentWrite,
} from "../../content/store.js";
import { type ContentScenario, loadAll, put, remove, sortChanges, toChange } from "./fixture.js";

const KEYS = Array.from({ length: 12 }, (_, place) =>
  place % 4 === 3 ? `revision/${place}` : `post/${place}`,
);
const NAMES = ["slug/a", "slug/b", "slug/c", "slug/d"];

/** A process that follows the change feed. */
interface Follower {
  store: ContentStore;
  sequence: number;
  records: Map<string, ContentChange>;
}

/** The state that the store must have, and the random choices of the run. */
interface ContentModel {
  s: ContentScenario;
  records: Map<string, ContentRecord>;
  /** The sequence number of the last commit. */
  sequence: number;
  /** Returns a random whole number from 0 to `count - 1`. */
  below: (count: number) => number;
  pick: <T>(items: T[]) => T;
}

/** True if a commit must be refused by the rules of the port. */
function isRefused({ records }: ContentModel, writes: ContentWrite[], basis: ContentBasis[]): boolean {
  const expected = [
    ...basis,
    ...writes.map(({ key, expectedVersion }) => ({ key, version: expectedVersion })),
  ];
  if (expected.some(({ key, version }) => (records.get(key)?.version ?? 0) !== version)) return true;
  const written = new Set(writes.map(({ key }) => key));
  const unchanged = [...records.values()].filter(({ key }) => !written.has(key));
  const names = [
    ...unchanged.flatMap(({ unique }) => unique),
    ...writes.flatMap(({ record }) => record?.unique ?? []),
  ];
  return new Set(names).size < names.length;
}

/** Builds a random write of `key`, one in ten with a wrong version. */
function buildWrite({ records, below, pick }: ContentModel, key: string): ContentWrite {
  const version = records.get(key)?.version ?? 0;
  const expected = below(10) === 0 ? version + pick([-1, 1]) : version;
  if (below(4) === 0) return remove(key, Math.max(0, expected));
  return put(key, Math.max(0, expected), {
    columns: key.startsWith("revision/") ? null : JSON.stringify(below(1_000_000)),
    body: JSON.stringify(below(1_000_000)),
    unique: below(2) === 0 ? [pick(NAMES)] : [],
  });
}

async function commitRandomly(model: ContentModel): Promise<void> {
  const { s, records, below, pick } = model;
  const keys = new Set(Array.from({ length: 1 + below(4) }, () => pick(KEYS)));
  const writes = [...keys].map((key) => buildWrite(model, key));
  const basis = Array.from({ length: below(3) }, () => pick(KEYS)).map((key) => ({
    key,
    version: Math.max(0, (records.get(key)?.version ?? 0) - Number(below(8) === 0)),
  }));
  const response = await pick([s.store, s.peer]).commit(writes, basis);
  assert.equal(response.ok, !isRefused(model, writes, basis));
  if (!response.ok) {
    assert.ok([...keys, ...basis.map(({ key }) => key)].includes(response.conflict.key));
    return;
  }
  model.sequence += 1;
  assert.equal(response.sequence, model.sequence);
  for (const { key, expectedVersion, record } of writes) {
    if (record) records.set(key, { key, version: expectedVersion + 1, ...record });
    else records.delete(key);
  }
}

/** Brings a follower up to date, now and then by a reload, and compares it with the model. */
async function followChanges(model: ContentModel, follower: Follower): Promise<void> {
  const response =
    follower.sequence < 0 || model.below(15) === 0
      ? "reload"
      : await follower.store.changes(follower.sequence);
  if (response === "reload") {
    const { sequence, records } = await loadAll(follower.store);
    follower.records = records;
    follower.sequence = sequence;
  } else {
    assert.equal(new Set(response.changes.map(({ key }) => key)).size, response.changes.length);
    for (const change of response.changes) {
      if (change.columns === null) follower.records.delete(change.key);
      else follower.records.set(change.key, change);
    }
    follower.sequence = response.sequence;
  }
  assert.equal(follower.sequence, model.sequence);
  assert.deepEqual(
    sortChanges(follower.records.values()),
    sortChanges([...model.records.values()].map(toChange)),
  );
}

/** Runs `steps` random commands. */
export async function runContentModel(s: ContentScenario, steps: number): Promise<void> {
  const below = (count: number): number => Math.floor(s.clock.random() * count);
  const pick = <T>(items: T[]): T => items[below(items.length)] as T;
  const { sequence } = await s.store.load();
  const model: ContentModel = { s, records: new Map(), sequence, below, pick };
  const followers: Follower[] = [s.store, s.peer].map((store) => ({
    store,
    sequence: -1,
    records: new Map(),
  }));

  for (let step = 0; step < steps; step += 1) {
    if (below(3) > 0) await commitRandomly(model);
    else await followChanges(model, pick(followers));
    const keys = [pick(KEYS), pick(KEYS)];
    assert.deepEqual(
      await pick([s.store, s.peer]).read(keys),
      keys.map((key) => model.records.get(key)),
    );
  }
  for (const follower of followers) await followChanges(model, follower);
}
