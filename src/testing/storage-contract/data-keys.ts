/** Data keys: one for each account, whoever creates it, until it is erased. */

import assert from "node:assert/strict";
import type { WebhookStore } from "../../webhooks/store.js";
import { repeat } from "./assertions.js";
import type { DeclareTest, Scenario } from "./fixture.js";
import { SIMILAR_NAMES } from "./similar-names.js";

/** Returns a key of 32 equal bytes, in base64. */
const buildKey = (byte: number): string => Buffer.alloc(32, byte).toString("base64");

/** Returns the methods of a store that has them. The others are not tested. */
function findDataKeys(store: WebhookStore) {
  const addDataKey = store.addDataKey?.bind(store);
  const readDataKeys = store.readDataKeys?.bind(store);
  const eraseDataKey = store.eraseDataKey?.bind(store);
  if (addDataKey === undefined || readDataKeys === undefined || eraseDataKey === undefined) return undefined;
  return { addDataKey, readDataKeys, eraseDataKey };
}

type DataKeys = NonNullable<ReturnType<typeof findDataKeys>>;

/** Declares the tests of data keys. */
export function testDataKeys(it: DeclareTest): void {
  const test = (name: string, run: (store: DataKeys, peer: DataKeys, s: Scenario) => Promise<void>): void =>
    it(name, async (s) => {
      const [store, peer] = [findDataKeys(s.store), findDataKeys(s.peer)];
      if (store !== undefined && peer !== undefined) await run(store, peer, s);
    });

  test("a data key that one process added is read by the other, and no account without one has a key", async (store, peer) => {
    assert.deepEqual(await store.readDataKeys(["clinic", "hospital"]), [undefined, undefined]);
    const added = await store.addDataKey({ account: "clinic", key: buildKey(1) });
    assert.deepEqual(added, { key: buildKey(1), isCommitted: true });
    assert.deepEqual(await peer.readDataKeys(["hospital", "clinic"]), [undefined, buildKey(1)]);
    assert.deepEqual(await peer.readDataKeys([]), []);
  });

  test("a second data key of an account is not stored, and the first one is returned", async (store, peer) => {
    await store.addDataKey({ account: "clinic", key: buildKey(1) });
    assert.equal((await peer.addDataKey({ account: "clinic", key: buildKey(2) })).key, buildKey(1));
    assert.deepEqual(await store.readDataKeys(["clinic"]), [buildKey(1)]);
  });

  test("ten data keys that two processes add at once to one account become one", async (_, __, s) => {
    let count = 0;
    const added = await s.callConcurrently(10, async (by) => {
      const key = buildKey(++count);
      return (await by.addDataKey?.({ account: "clinic", key }))?.key;
    });
    assert.equal(new Set(added).size, 1);
    assert.deepEqual(await s.peer.readDataKeys?.(["clinic"]), [added[0]]);
  });

  test("accounts with similar names have data keys of their own", async (store, peer) => {
    for (const [index, account] of SIMILAR_NAMES.entries())
      await store.addDataKey({ account, key: buildKey(index) });
    const keys = SIMILAR_NAMES.map((_, index) => buildKey(index));
    assert.deepEqual(await peer.readDataKeys(SIMILAR_NAMES), keys);
  });

  test("250 data keys are read in one call, in the order of their accounts", async (store, peer) => {
    const accounts = Array.from({ length: 250 }, (_, index) => `account ${index}`);
    await Promise.all(accounts.map((account, index) => store.addDataKey({ account, key: buildKey(index) })));
    const backwards = accounts.toReversed();
    const keys = backwards.map((_, index) => buildKey(249 - index));
    assert.deepEqual(await peer.readDataKeys(backwards), keys);
  });

  test("an erased data key is gone for every process, and the account may get another one", async (store, peer) => {
    await store.addDataKey({ account: "clinic", key: buildKey(1) });
    await store.addDataKey({ account: "hospital", key: buildKey(2) });
    await peer.eraseDataKey("clinic");
    assert.deepEqual(await store.readDataKeys(["clinic", "hospital"]), [undefined, buildKey(2)]);
    await repeat(2, () => store.eraseDataKey("clinic"));
    assert.equal((await store.addDataKey({ account: "clinic", key: buildKey(3) })).key, buildKey(3));
  });
}
