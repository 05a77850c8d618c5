/** Unique names: one record holds a name at a time. */

import assert from "node:assert/strict";
import type { ContentWrite } from "../../content/store.js";
import { type DeclareContentTest, put, remove } from "./fixture.js";

/** A commit is refused if another record holds one of its names. */
export function testUniqueNames(it: DeclareContentTest): void {
  it("a name is held by one record at a time", async (s) => {
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

  it("a record keeps a name as long as each of its writes claims it", async (s) => {
    await s.commit(put("post/1", 0, { unique: ["slug/a"] }));
    await s.commit(put("post/1", 1, { unique: ["slug/a", "slug/b"] }));
    await s.refuse([put("post/2", 0, { unique: ["slug/a"] })], "post/2", "slug/a");
    await s.commit(put("post/1", 2, { unique: ["slug/b"] }));
    await s.commit(put("post/2", 0, { unique: ["slug/a"] }));
    await s.commit(remove("post/1", 3));
    await s.commit(put("post/3", 0, { unique: ["slug/b"] }));
    await s.refuse([put("post/4", 0, { unique: ["slug/b"] })], "post/4", "slug/b");
  });

  it("names move between records of one commit, in any order of its writes", async (s) => {
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

  it("hundreds of names of one stem are held one by one, and each free one can be taken", async (s) => {
    const toName = (n: number): string => `slug/page/0/${"x".repeat(190)}-${n}`;
    const putOne = (n: number): ContentWrite => put(`post/${n}`, 0, { unique: [toName(n)] });
    for (let start = 0; start < 600; start += 200)
      await s.commit(...Array.from({ length: 200 }, (_, n) => putOne(start + n)));
    for (const n of [0, 199, 200, 599])
      await s.refuse([put("post/700", 0, { unique: [toName(n)] })], "post/700", toName(n));
    await s.commit(remove("post/399", 1), put("post/7", 1, { unique: [toName(600)] }));
    await s.commit(
      put("post/700", 0, { unique: [toName(399)] }),
      put("post/701", 0, { unique: [toName(7)] }),
    );
    await s.refuse([put("post/702", 0, { unique: [toName(600)] })], "post/702", toName(600));
  });

  it("names rotate among the records of one commit unless another record holds one of them", async (s) => {
    const names = ["slug/a", "slug/b", "slug/c"];
    const putAll = (version: number, shift: number): ContentWrite[] =>
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
  });
}
