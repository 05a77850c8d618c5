/** The content store contract: records, versions, names and ids. */

import assert from "node:assert/strict";
import type { ContentWrite } from "../../src/content/store.js";
import { vandalise } from "../storage-contract/lists.js";
import {
  createChange,
  createRecord,
  type DeclareContentTest,
  getSequence,
  listChanges,
  put,
  remove,
} from "./scenario.js";

export function commits(declare: DeclareContentTest): void {
  declare("a record is read back by every process, as it was written", async (s) => {
    const write = put("post/1", 0, { unique: ["slug/post/hello"] });
    await s.commit(write);
    for (const store of [s.store, s.other]) {
      assert.deepEqual(await store.read(["post/2", "post/1", "post/1"]), [
        undefined,
        createRecord(write),
        createRecord(write),
      ]);
    }
    assert.deepEqual(await s.store.read([]), []);
  });

  declare("a version grows by one with each change, and starts anew after a removal", async (s) => {
    await s.commit(put("post/1", 0));
    await s.commit(put("post/1", 1, { columns: null }));
    await s.commit(put("post/1", 2));
    assert.deepEqual(await s.other.read(["post/1"]), [createRecord(put("post/1", 2))]);
    await s.commit(remove("post/1", 3));
    assert.deepEqual(await s.other.read(["post/1"]), [undefined]);
    await s.commit(put("post/1", 0));
    assert.deepEqual(await s.other.read(["post/1"]), [createRecord(put("post/1", 0))]);
  });

  declare("a write that is based on another version is refused", async (s) => {
    await s.commit(put("post/1", 0));
    await s.commit(put("post/1", 1));
    for (const version of [0, 1, 3]) {
      await s.refuse([put("post/1", version)], "post/1");
      await s.refuse([remove("post/1", version)], "post/1");
    }
    await s.refuse([put("post/2", 1)], "post/2");
    await s.refuse([remove("post/2", 1)], "post/2");
  });

  declare("of a commit with one write that is refused nothing is stored", async (s) => {
    await s.commit(put("post/1", 0, { unique: ["a"] }), put("post/2", 0, { unique: ["b"] }));
    await s.refuse([put("post/3", 0), put("post/1", 1), remove("post/2", 7)], "post/2");
    await s.refuse([remove("post/2", 1), put("post/3", 0, { unique: ["a"] })], "post/3", "a");
    await s.commit(put("post/3", 0, { unique: ["c"] }));
  });

  declare("of two processes that change one record at once, one is refused", async (s) => {
    await s.commit(put("post/1", 0));
    const attempts = Array.from({ length: 10 }, (_, place) =>
      (place % 2 === 0 ? s.store : s.other).commit([put("post/1", 1), put(`post/${place + 2}`, 0)]),
    );
    const won = (await Promise.all(attempts)).flatMap(({ ok }, place) => (ok ? [place] : []));
    assert.equal(won.length, 1);
    const records = await s.store.read(attempts.map((_, place) => `post/${place + 2}`));
    assert.deepEqual(
      records.flatMap((record, place) => (record ? [place] : [])),
      won,
    );
  });

  declare("sequence numbers grow by one with each commit, over all processes", async (s) => {
    const first = await s.commit(put("post/1", 0));
    await s.refuse([put("post/1", 0)], "post/1");
    const answers = await Promise.all(
      [2, 3, 4, 5].map((id) => (id % 2 === 0 ? s.store : s.other).commit([put(`post/${id}`, 0)])),
    );
    const sequences = answers.map((answer) => (answer.ok ? answer.sequence : Number.NaN));
    assert.deepEqual(
      sequences.sort((a, b) => a - b),
      [1, 2, 3, 4].map((step) => first + step),
    );
  });

  declare("a name is held by one record at a time", async (s) => {
    await s.commit(put("post/1", 0, { unique: ["slug/a", "slug/b"] }));
    await s.refuse([put("post/2", 0, { unique: ["slug/c", "slug/b"] })], "post/2", "slug/b");
    await s.refuse(
      [put("post/2", 0, { unique: ["slug/c"] }), put("post/3", 0, { unique: ["slug/c"] })],
      "post/3",
      "slug/c",
    );
    await s.commit(put("post/2", 0, { unique: ["slug/c"] }));
    await s.refuse([put("post/2", 1, { unique: ["slug/a"] })], "post/2", "slug/a");
  });

  declare("a name is kept by a change that claims it again, and free after one that does not", async (s) => {
    await s.commit(put("post/1", 0, { unique: ["slug/a"] }));
    await s.commit(put("post/1", 1, { unique: ["slug/a", "slug/b"] }));
    await s.refuse([put("post/2", 0, { unique: ["slug/a"] })], "post/2", "slug/a");
    await s.commit(put("post/1", 2, { unique: ["slug/b"] }));
    await s.commit(put("post/2", 0, { unique: ["slug/a"] }));
    await s.commit(remove("post/1", 3));
    await s.commit(put("post/3", 0, { unique: ["slug/b"] }));
    await s.refuse([put("post/4", 0, { unique: ["slug/b"] })], "post/4", "slug/b");
  });

  declare("names move between records of one commit, in whatever order it names them", async (s) => {
    await s.commit(put("post/1", 0, { unique: ["slug/a"] }), put("post/2", 0, { unique: ["slug/b"] }));
    await s.commit(put("post/1", 1, { unique: ["slug/b"] }), put("post/2", 1, { unique: ["slug/a"] }));
    await s.commit(put("post/3", 0, { unique: ["slug/a"] }), remove("post/2", 2));
    await s.commit(put("post/1", 2), put("post/4", 0, { unique: ["slug/b"] }));
    await s.refuse([put("post/5", 0, { unique: ["slug/a"] })], "post/5", "slug/a");
    await s.refuse([put("post/5", 0, { unique: ["slug/b"] })], "post/5", "slug/b");
    await s.refuse(
      [put("post/5", 0, { unique: ["slug/b"] }), put("post/4", 1, { unique: ["slug/b"] })],
      "post/4",
      "slug/b",
    );
  });

  declare(
    "names go round among the records of one commit, unless one of them is held by another record",
    async (s) => {
      const names = ["slug/a", "slug/b", "slug/c"];
      const putAll = (version: number, shift: number): readonly ContentWrite[] =>
        names.map((_, place) =>
          put(`post/${place}`, version, { unique: [names[(place + shift) % 3] as string] }),
        );
      await s.commit(...putAll(0, 0), put("post/3", 0, { unique: ["slug/d"] }));
      await s.commit(...putAll(1, 1));
      const [first, second] = putAll(2, 2);
      assert.ok(first && second);
      await s.refuse([first, second, put("post/2", 2, { unique: ["slug/d"] })], "post/2", "slug/d");
      await s.refuse([first, second], "post/1", "slug/a");
      await s.commit(...putAll(2, 2));
      for (const [place, name] of ["slug/c", "slug/a", "slug/b"].entries()) {
        await s.refuse([put("post/4", 0, { unique: [name] })], "post/4", name);
        await s.commit(put(`post/${place}`, 3, { unique: [name] }));
      }
    },
  );

  declare("what a commit was decided upon may not have changed, gone or come meanwhile", async (s) => {
    await s.commit(put("post/1", 0), put("revision/1", 0, { columns: null }));
    const since = await getSequence(s.store);
    const basis = [
      { key: "post/1", version: 1 },
      { key: "post/2", version: 0 },
      { key: "revision/1", version: 1 },
    ];
    const write = put("post/3", 0);
    assert.ok((await s.store.commit([write], basis)).ok);
    assert.deepEqual(await listChanges(s.other, since), [createChange(createRecord(write))]);
    assert.deepEqual(await s.other.read(["post/1", "post/2"]), [createRecord(put("post/1", 0)), undefined]);

    const refused = (key: string): Promise<void> =>
      s.refuse([put("post/3", 1, { unique: ["slug/a"] }), put("post/4", 0)], key, undefined, basis);
    await s.commit(put("post/2", 0));
    await refused("post/2");
    await s.commit(remove("post/2", 1), put("post/1", 1));
    await refused("post/1");
    await s.commit(remove("post/1", 2));
    await refused("post/1");
    await s.commit(put("post/1", 0), put("revision/1", 1, { columns: null }));
    await refused("revision/1");
    await s.commit(remove("revision/1", 2));
    await refused("revision/1");
    await s.commit(put("post/4", 0, { unique: ["slug/a"] }));
  });

  declare("of two processes that each decided upon what the other one writes, one is refused", async (s) => {
    for (let round = 0; round < 10; round += 1) {
      const [a, b] = [`post/a-${round}`, `post/b-${round}`];
      const answers = await Promise.all([
        s.store.commit([put(a, 0)], [{ key: b, version: 0 }]),
        s.other.commit([put(b, 0)], [{ key: a, version: 0 }]),
      ]);
      assert.notEqual(answers[0].ok, answers[1].ok);
      const stored = await s.store.read([a, b]);
      assert.deepEqual(
        stored.map((record) => record !== undefined),
        answers.map(({ ok }) => ok),
      );
    }
  });

  declare("ids are handed out once, in a row, and start at 1 for each kind", async (s) => {
    assert.equal(await s.store.allocate("post", 1), 1);
    assert.equal(await s.other.allocate("term", 2), 1);
    const counts = Array.from({ length: 60 }, (_, place) => 1 + (place % 7));
    const firsts = await Promise.all(
      counts.map((count, place) => (place % 2 === 0 ? s.store : s.other).allocate("post", count)),
    );
    const ids = firsts.flatMap((first, place) =>
      Array.from({ length: counts[place] ?? 0 }, (_, step) => first + step),
    );
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(!ids.includes(1));
    await s.commit(put(`post/${Math.max(...ids)}`, 0));
    await s.commit(remove(`post/${Math.max(...ids)}`, 1));
    assert.ok((await s.store.allocate("post", 1)) > Math.max(...ids));
    assert.ok((await s.other.allocate("term", 1)) > 2);
  });

  declare("what was handed in or out may be changed, and nothing that is stored changes", async (s) => {
    const write = put("post/1", 0, { unique: ["slug/a"] });
    const expected = structuredClone(createRecord(write));
    const committing = s.store.commit([write]);
    vandalise(write);
    assert.ok((await committing).ok);
    vandalise(await s.store.read(["post/1"]));
    vandalise(await s.store.changes(0));
    for await (const batch of (await s.store.load()).batches) vandalise(batch);
    assert.deepEqual(await s.store.read(["post/1"]), [expected]);
    await s.refuse([put("post/2", 0, { unique: ["slug/a"] })], "post/2", "slug/a");
  });

  declare("texts come back as they are: large, empty, and of any script", async (s) => {
    const texts = [
      "",
      "\u0000\n\r\t\"'\\",
      "Ünïcödé 東京 🔔 \u2028 \ufeff",
      "é".repeat(500_000),
      "x".repeat(1_048_576),
    ];
    const writes = texts.map((text, place) =>
      put(`post/${place}`, 0, {
        columns: JSON.stringify(text),
        body: text,
        unique: [`slug/${place}/${text.slice(0, 100)}`],
      }),
    );
    await s.commit(...writes);
    assert.deepEqual(await s.other.read(writes.map(({ key }) => key)), writes.map(createRecord));
  });

  declare("a thousand records are read at once, and ten thousand written", async (s) => {
    const writes = Array.from({ length: 10_000 }, (_, place) => put(`post/${place}`, 0));
    await s.commit(...writes);
    const asked = writes.filter((_, place) => place % 10 === 3);
    assert.equal(asked.length, 1_000);
    assert.deepEqual(await s.other.read(asked.map(({ key }) => key)), asked.map(createRecord));
  });

  declare("the time is a whole number of milliseconds and goes on", async (s) => {
    const before = s.store.now();
    assert.ok(Number.isInteger(before));
    await s.clock.advance(1_000);
    assert.ok(s.store.now() >= before);
  });
}
