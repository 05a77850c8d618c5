/** The change feed, and loading the state that it continues. */

import assert from "node:assert/strict";
import {
  type DeclareContentTest,
  listChanges,
  loadAll,
  put,
  readSequence,
  remove,
  sortChanges,
  toChange,
  toRecord,
} from "./fixture.js";

/** `changes` returns each record that changed since a sequence number, in its newest state. */
export function testChanges(it: DeclareContentTest): void {
  it("an empty store loads no records and has no changes", async (s) => {
    const { sequence, records } = await loadAll(s.store);
    assert.equal(records.size, 0);
    assert.deepEqual(await s.peer.changes(sequence), { sequence, changes: [] });
  });

  it("every process sees each commit with its sequence number", async (s) => {
    const since = await readSequence(s.store);
    const write = put("post/1", 0);
    const sequence = await s.commit(write);
    for (const store of [s.store, s.peer]) {
      assert.deepEqual(await store.changes(since), {
        sequence,
        changes: [toChange(toRecord(write))],
      });
      assert.deepEqual(await store.changes(sequence), { sequence, changes: [] });
    }
  });

  it("each changed record is returned once, in its newest state", async (s) => {
    await s.commit(put("post/1", 0), put("post/2", 0), put("post/3", 0));
    const since = await readSequence(s.store);
    await s.commit(put("post/1", 1));
    await s.commit(remove("post/2", 1), put("post/4", 0));
    await s.commit(put("post/1", 2));
    await s.commit(put("post/5", 0));
    await s.commit(remove("post/5", 1));
    assert.deepEqual(await listChanges(s.peer, since), [
      toChange(toRecord(put("post/1", 2))),
      { key: "post/2", version: 0, columns: null },
      toChange(toRecord(put("post/4", 0))),
      { key: "post/5", version: 0, columns: null },
    ]);
  });

  it("changes of many commits are complete, each record once and in its newest state", async (s) => {
    const since = await readSequence(s.store);
    const expected = new Map<string, ReturnType<typeof toChange>>();
    const commit = async (...writes: ReturnType<typeof put>[]): Promise<void> => {
      await s.commit(...writes);
      for (const write of writes) expected.set(write.key, toChange(toRecord(write)));
    };
    for (let round = 0; round < 15; round += 1) {
      const keys = Array.from({ length: 50 }, (_, place) => `post/${round}-${place}`);
      await commit(...keys.map((key) => put(key, 0)));
      await commit(put(`post/${round}-0`, 1), put(`post/0-${round + 1}`, 1));
    }
    assert.deepEqual(await listChanges(s.peer, since), sortChanges(expected.values()));
    const write = put("post/14-49", 1);
    const before = await readSequence(s.store);
    await s.commit(write);
    assert.deepEqual(await listChanges(s.peer, before), [toChange(toRecord(write))]);
  });

  it("old changes are complete, or the store asks for a reload", async (s) => {
    const since = await readSequence(s.store);
    const keys = Array.from({ length: 9_000 }, (_, place) => `post/${place}`);
    for (let version = 0; version < 6; version += 1) {
      await s.commit(...keys.map((key) => put(key, version, { body: "" })));
    }
    const response = await s.peer.changes(since);
    if (response !== "reload") assert.equal(response.changes.length, keys.length);
    const { sequence, records } = await loadAll(s.peer);
    assert.equal(records.size, keys.length);
    const write = put("post/0", 6);
    await s.commit(write);
    assert.deepEqual(await listChanges(s.peer, sequence), [toChange(toRecord(write))]);
  });

  it("a sequence number that was never assigned asks for a reload", async (s) => {
    const sequence = await s.commit(put("post/1", 0));
    assert.equal(await s.peer.changes(sequence + 1), "reload");
  });
}

/** `load` and `read` return the records themselves. */
export function testLoading(it: DeclareContentTest): void {
  it("a record without columns is not loaded, and one that loses them is reported as removed", async (s) => {
    await s.commit(put("revision/1", 0, { columns: null }), put("post/1", 0), put("post/2", 0));
    const since = await readSequence(s.store);
    await s.commit(put("post/1", 1, { columns: null }));
    const { records } = await loadAll(s.peer);
    assert.deepEqual([...records.keys()], ["post/2"]);
    const response = await s.peer.changes(since);
    assert.ok(response !== "reload");
    assert.deepEqual(
      response.changes.map(({ key, columns }) => [key, columns]),
      [["post/1", null]],
    );
  });

  it("a load and the changes since its sequence number together give the whole state", async (s) => {
    const ids = Array.from({ length: 3_000 }, (_, place) => place);
    const expected = new Map(ids.map((id) => [`post/${id}`, toChange(toRecord(put(`post/${id}`, 0)))]));
    await s.commit(...ids.map((id) => put(`post/${id}`, 0)));
    let round = 0;
    const { sequence, records } = await loadAll(s.store, async () => {
      const changed = put(`post/${round}`, 1);
      const gone = `post/${2_999 - round}`;
      const added = put(`post/new-${round}`, 0);
      await s.commit(changed, added, remove(gone, 1));
      expected.set(changed.key, toChange(toRecord(changed)));
      expected.set(added.key, toChange(toRecord(added)));
      expected.delete(gone);
      round += 1;
    });
    assert.ok(round > 0);
    for (const change of await listChanges(s.store, sequence)) {
      if (change.columns === null) records.delete(change.key);
      else records.set(change.key, change);
    }
    assert.deepEqual(sortChanges(records.values()), sortChanges(expected.values()));
  });

  it("records are read in the order of the requested keys, whatever their number and size", async (s) => {
    const writes = Array.from({ length: 300 }, (_, place) =>
      put(`post/${place}`, 0, { body: `${place} ${"x".repeat(20_000)}` }),
    );
    for (let first = 0; first < writes.length; first += 100)
      await s.commit(...writes.slice(first, first + 100));
    const asked = writes.flatMap((write, place) => (place % 7 ? [write.key] : [write.key, `none/${place}`]));
    const records = new Map(writes.map((write) => [write.key, toRecord(write)]));
    assert.deepEqual(
      await s.peer.read(asked),
      asked.map((key) => records.get(key)),
    );
    assert.deepEqual(await s.peer.read([]), []);
  });
}
