/** Content records: versions, texts, sizes and ids. */

import assert from "node:assert/strict";
import { overwriteDeep } from "../storage-contract/assertions.js";
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

/** A record is returned as it was committed. */
export function testRecords(it: DeclareContentTest): void {
  it("every process reads a record as it was committed", async (s) => {
    const write = put("post/1", 0, { unique: ["slug/post/hello"] });
    await s.commit(write);
    for (const store of [s.store, s.peer]) {
      assert.deepEqual(await store.read(["post/2", "post/1", "post/1"]), [
        undefined,
        toRecord(write),
        toRecord(write),
      ]);
    }
    assert.deepEqual(await s.store.read([]), []);
  });

  it("a version increases by one per change, and starts at 1 after a removal", async (s) => {
    await s.commit(put("post/1", 0));
    await s.commit(put("post/1", 1, { columns: null }));
    await s.commit(put("post/1", 2));
    assert.deepEqual(await s.peer.read(["post/1"]), [toRecord(put("post/1", 2))]);
    await s.commit(remove("post/1", 3));
    assert.deepEqual(await s.peer.read(["post/1"]), [undefined]);
    await s.commit(put("post/1", 0));
    assert.deepEqual(await s.peer.read(["post/1"]), [toRecord(put("post/1", 0))]);
  });

  it("mutating a value that was passed in or returned does not change the stored one", async (s) => {
    const write = put("post/1", 0, { unique: ["slug/a"] });
    const expected = structuredClone(toRecord(write));
    const committing = s.store.commit([write]);
    overwriteDeep(write);
    assert.ok((await committing).ok);
    overwriteDeep(await s.store.read(["post/1"]));
    overwriteDeep(await s.store.changes(0));
    for await (const batch of (await s.store.load()).batches) overwriteDeep(batch);
    assert.deepEqual(await s.store.read(["post/1"]), [expected]);
    await s.refuse([put("post/2", 0, { unique: ["slug/a"] })], "post/2", "slug/a");
  });

  it("texts of any length and script are returned as they were stored", async (s) => {
    const texts = [
      "",
      "\u0000\n\r\t\"'\\",
      "Ünïcödé 東京 🔔 \u2028 \ufeff",
      "\ud800 and \udc00 and \ufffd",
      "é".repeat(500_000),
      "x".repeat(1_048_576),
    ];
    const writes = texts.map((text, place) =>
      put(`post/${place}`, 0, {
        columns: text,
        body: text,
        unique: [`slug/${place}/${text.slice(0, 100)}`],
      }),
    );
    await s.commit(...writes);
    assert.deepEqual(await s.peer.read(writes.map(({ key }) => key)), writes.map(toRecord));
  });

  it("keys that differ in characters which a backend may change are different records", async (s) => {
    const names = ["t", "T", "t\ud800", "t\udc00", "t\ufffd", "t\u0000", "\u00e9", "e\u0301", '\u0001"t"'];
    const writes = names.map((name) => put(`option/${name}`, 0, { unique: [`slug/${name}`] }));
    const keys = writes.map(({ key }) => key);
    const since = await readSequence(s.peer);
    for (const write of writes) await s.commit(write);
    assert.deepEqual(await s.peer.read(keys), writes.map(toRecord));
    const changes = sortChanges(writes.map((write) => toChange(toRecord(write))));
    assert.deepEqual(await listChanges(s.peer, since), changes);
    assert.deepEqual(sortChanges((await loadAll(s.peer)).records.values()), changes);
    for (const [index, key] of keys.entries()) {
      await s.refuse([put(key, 0)], key);
      await s.refuse([put("post/1", 0)], key, undefined, [{ key, version: 2 }]);
      const unique = `slug/${names[index]}`;
      await s.refuse([put("post/1", 0, { unique: [unique] })], "post/1", unique);
      await s.commit(remove(key, 1));
      assert.deepEqual(
        (await s.peer.read(keys)).map((record) => record !== undefined),
        names.map((_, place) => place > index),
      );
      assert.equal(await s.store.allocate(key, 1), 1);
    }
  });

  it("one call writes ten thousand records and one call reads a thousand", async (s) => {
    const writes = Array.from({ length: 10_000 }, (_, place) => put(`post/${place}`, 0));
    await s.commit(...writes);
    const asked = writes.filter((_, place) => place % 10 === 3);
    assert.equal(asked.length, 1_000);
    assert.deepEqual(await s.peer.read(asked.map(({ key }) => key)), asked.map(toRecord));
  });

  it("the storage's time is a whole number of milliseconds and never moves backwards", async (s) => {
    const before = s.store.now();
    assert.ok(Number.isInteger(before));
    await s.clock.advance(1_000);
    assert.ok(s.store.now() >= before);
  });
}

/** `allocate` never returns an id twice. */
export function testIds(it: DeclareContentTest): void {
  it("ids are allocated once, in a row, and start at 1 for each kind", async (s) => {
    assert.equal(await s.store.allocate("post", 1), 1);
    assert.equal(await s.peer.allocate("term", 2), 1);
    const counts = Array.from({ length: 60 }, (_, place) => 1 + (place % 7));
    const firsts = await Promise.all(
      counts.map((count, place) => (place % 2 === 0 ? s.store : s.peer).allocate("post", count)),
    );
    const ids = firsts.flatMap((first, place) =>
      Array.from({ length: counts[place] ?? 0 }, (_, step) => first + step),
    );
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(!ids.includes(1));
    await s.commit(put(`post/${Math.max(...ids)}`, 0));
    await s.commit(remove(`post/${Math.max(...ids)}`, 1));
    assert.ok((await s.store.allocate("post", 1)) > Math.max(...ids));
    assert.ok((await s.peer.allocate("term", 1)) > 2);
  });
}
