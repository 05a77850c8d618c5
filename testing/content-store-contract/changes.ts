/** The content store contract: what changed since, and the state to start from. */

import assert from "node:assert/strict";
import {
  createChange,
  createRecord,
  type DeclareContentTest,
  getSequence,
  listChanges,
  loaded,
  put,
  remove,
  sorted,
} from "./scenario.js";

export function changes(declare: DeclareContentTest): void {
  declare("a store with nothing in it loads nothing, and nothing has changed", async (s) => {
    const { sequence, records } = await loaded(s.store);
    assert.equal(records.size, 0);
    assert.deepEqual(await s.other.changes(sequence), { sequence, changes: [] });
  });

  declare("what any process committed is seen by each, with its sequence number", async (s) => {
    const since = await getSequence(s.store);
    const write = put("post/1", 0);
    const sequence = await s.commit(write);
    for (const store of [s.store, s.other]) {
      assert.deepEqual(await store.changes(since), {
        sequence,
        changes: [createChange(createRecord(write))],
      });
      assert.deepEqual(await store.changes(sequence), { sequence, changes: [] });
    }
  });

  declare("each record that changed comes once, in its newest state", async (s) => {
    await s.commit(put("post/1", 0), put("post/2", 0), put("post/3", 0));
    const since = await getSequence(s.store);
    await s.commit(put("post/1", 1));
    await s.commit(remove("post/2", 1), put("post/4", 0));
    await s.commit(put("post/1", 2));
    await s.commit(put("post/5", 0));
    await s.commit(remove("post/5", 1));
    assert.deepEqual(await listChanges(s.other, since), [
      createChange(createRecord(put("post/1", 2))),
      { key: "post/2", version: 0, columns: null },
      createChange(createRecord(put("post/4", 0))),
      { key: "post/5", version: 0, columns: null },
    ]);
  });

  declare("a record without columns is never loaded, one that had them leaves", async (s) => {
    await s.commit(put("revision/1", 0, { columns: null }), put("post/1", 0), put("post/2", 0));
    const since = await getSequence(s.store);
    await s.commit(put("post/1", 1, { columns: null }));
    const { records } = await loaded(s.other);
    assert.deepEqual([...records.keys()], ["post/2"]);
    const answer = await s.other.changes(since);
    assert.ok(answer !== "reload");
    assert.deepEqual(
      answer.changes.map(({ key, columns }) => [key, columns]),
      [["post/1", null]],
    );
  });

  declare(
    "a load holds every record with columns, and changes after it make up for what was committed meanwhile",
    async (s) => {
      const ids = Array.from({ length: 3_000 }, (_, place) => place);
      const expected = new Map(
        ids.map((id) => [`post/${id}`, createChange(createRecord(put(`post/${id}`, 0)))]),
      );
      await s.commit(...ids.map((id) => put(`post/${id}`, 0)));
      let round = 0;
      const { sequence, records } = await loaded(s.store, async () => {
        const changed = put(`post/${round}`, 1);
        const gone = `post/${2_999 - round}`;
        const added = put(`post/new-${round}`, 0);
        await s.commit(changed, added, remove(gone, 1));
        expected.set(changed.key, createChange(createRecord(changed)));
        expected.set(added.key, createChange(createRecord(added)));
        expected.delete(gone);
        round += 1;
      });
      assert.ok(round > 0);
      for (const change of await listChanges(s.store, sequence)) {
        if (change.columns === null) records.delete(change.key);
        else records.set(change.key, change);
      }
      assert.deepEqual(sorted(records.values()), sorted(expected.values()));
    },
  );

  declare("changes of long ago are all there, or have to be loaded again", async (s) => {
    const since = await getSequence(s.store);
    const keys = Array.from({ length: 9_000 }, (_, place) => `post/${place}`);
    for (let version = 0; version < 6; version += 1) {
      await s.commit(...keys.map((key) => put(key, version, { body: "" })));
    }
    const answer = await s.other.changes(since);
    if (answer !== "reload") assert.equal(answer.changes.length, keys.length);
    const { sequence, records } = await loaded(s.other);
    assert.equal(records.size, keys.length);
    const write = put("post/0", 6);
    await s.commit(write);
    assert.deepEqual(await listChanges(s.other, sequence), [createChange(createRecord(write))]);
  });

  declare("changes of many commits are all there, each record once and in its newest state", async (s) => {
    const since = await getSequence(s.store);
    const expected = new Map<string, ReturnType<typeof createChange>>();
    const commit = async (...writes: readonly ReturnType<typeof put>[]): Promise<void> => {
      await s.commit(...writes);
      for (const write of writes) expected.set(write.key, createChange(createRecord(write)));
    };
    for (let round = 0; round < 15; round += 1) {
      const keys = Array.from({ length: 50 }, (_, place) => `post/${round}-${place}`);
      await commit(...keys.map((key) => put(key, 0)));
      await commit(put(`post/${round}-0`, 1), put(`post/0-${round + 1}`, 1));
    }
    assert.deepEqual(await listChanges(s.other, since), sorted(expected.values()));
    const write = put("post/14-49", 1);
    const before = await getSequence(s.store);
    await s.commit(write);
    assert.deepEqual(await listChanges(s.other, before), [createChange(createRecord(write))]);
  });

  declare("records are read in the order of their keys, however many and however large", async (s) => {
    const writes = Array.from({ length: 300 }, (_, place) =>
      put(`post/${place}`, 0, { body: `${place} ${"x".repeat(20_000)}` }),
    );
    for (let first = 0; first < writes.length; first += 100)
      await s.commit(...writes.slice(first, first + 100));
    const asked = writes.flatMap((write, place) => (place % 7 ? [write.key] : [write.key, `none/${place}`]));
    const known = new Map(writes.map((write) => [write.key, createRecord(write)]));
    assert.deepEqual(
      await s.other.read(asked),
      asked.map((key) => known.get(key)),
    );
    assert.deepEqual(await s.other.read([]), []);
  });

  declare("a sequence number that was never given is no place to go on from", async (s) => {
    const sequence = await s.commit(put("post/1", 0));
    assert.equal(await s.other.changes(sequence + 1), "reload");
  });
}
