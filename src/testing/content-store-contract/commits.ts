/** Commits: all or nothing, and only over the expected versions. */

import assert from "node:assert/strict";
import {
  type DeclareContentTest,
  listChanges,
  put,
  readSequence,
  remove,
  toChange,
  toRecord,
} from "./fixture.js";

/** A commit is refused if any of its expectations fails, and then stores nothing. */
export function testCommits(it: DeclareContentTest): void {
  it("a write that expects another version is refused", async (s) => {
    await s.commit(put("post/1", 0));
    await s.commit(put("post/1", 1));
    for (const version of [0, 1, 3]) {
      await s.refuse([put("post/1", version)], "post/1");
      await s.refuse([remove("post/1", version)], "post/1");
    }
    await s.refuse([put("post/2", 1)], "post/2");
    await s.refuse([remove("post/2", 1)], "post/2");
  });

  it("a commit with one refused write stores nothing", async (s) => {
    await s.commit(put("post/1", 0, { unique: ["a"] }), put("post/2", 0, { unique: ["b"] }));
    await s.refuse([put("post/3", 0), put("post/1", 1), remove("post/2", 7)], "post/2");
    await s.refuse([remove("post/2", 1), put("post/3", 0, { unique: ["a"] })], "post/3", "a");
    await s.commit(put("post/3", 0, { unique: ["c"] }));
  });

  it("of concurrent commits that change one record, one succeeds", async (s) => {
    await s.commit(put("post/1", 0));
    const attempts = Array.from({ length: 10 }, (_, place) =>
      (place % 2 === 0 ? s.store : s.peer).commit([put("post/1", 1), put(`post/${place + 2}`, 0)]),
    );
    const won = (await Promise.all(attempts)).flatMap(({ ok }, place) => (ok ? [place] : []));
    assert.equal(won.length, 1);
    const records = await s.store.read(attempts.map((_, place) => `post/${place + 2}`));
    assert.deepEqual(
      records.flatMap((record, place) => (record ? [place] : [])),
      won,
    );
  });

  it("sequence numbers increase by one per commit, over all processes", async (s) => {
    const first = await s.commit(put("post/1", 0));
    await s.refuse([put("post/1", 0)], "post/1");
    const responses = await Promise.all(
      [2, 3, 4, 5].map((id) => (id % 2 === 0 ? s.store : s.peer).commit([put(`post/${id}`, 0)])),
    );
    const sequences = responses.map((response) => (response.ok ? response.sequence : Number.NaN));
    assert.deepEqual(
      sequences.sort((a, b) => a - b),
      [1, 2, 3, 4].map((step) => first + step),
    );
  });

  it("a commit is refused if a record it depends on was changed, removed or created", async (s) => {
    await s.commit(put("post/1", 0), put("revision/1", 0, { columns: null }));
    const since = await readSequence(s.store);
    const basis = [
      { key: "post/1", version: 1 },
      { key: "post/2", version: 0 },
      { key: "revision/1", version: 1 },
    ];
    const write = put("post/3", 0);
    assert.ok((await s.store.commit([write], basis)).ok);
    assert.deepEqual(await listChanges(s.peer, since), [toChange(toRecord(write))]);
    assert.deepEqual(await s.peer.read(["post/1", "post/2"]), [toRecord(put("post/1", 0)), undefined]);

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

  it("of two concurrent commits that each depend on the other's record, one is refused", async (s) => {
    for (let round = 0; round < 10; round += 1) {
      const [a, b] = [`post/a-${round}`, `post/b-${round}`];
      const responses = await Promise.all([
        s.store.commit([put(a, 0)], [{ key: b, version: 0 }]),
        s.peer.commit([put(b, 0)], [{ key: a, version: 0 }]),
      ]);
      assert.notEqual(responses[0].ok, responses[1].ok);
      const stored = await s.store.read([a, b]);
      assert.deepEqual(
        stored.map((record) => record !== undefined),
        responses.map(({ ok }) => ok),
      );
    }
  });
}
