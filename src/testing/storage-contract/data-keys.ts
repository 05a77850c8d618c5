/** Data keys: one for each account, whoever creates it, until it is erased. */

import assert from "node:assert/strict";
import { getKeyName } from "../../core/encryption.js";
import type { WebhookStore } from "../../webhooks/store.js";
import { repeat } from "./assertions.js";
import type { DeclareTest, Scenario } from "./fixture.js";
import { SIMILAR_NAMES } from "./similar-names.js";

/** Returns a key of 32 equal bytes, in base64. */
const buildKey = (byte: number): string => Buffer.alloc(32, byte).toString("base64");

/** Returns the methods of a store. A storage without them declares it. */
function findDataKeys(store: WebhookStore) {
  const addDataKey = store.addDataKey?.bind(store);
  const readDataKeys = store.readDataKeys?.bind(store);
  const eraseDataKey = store.eraseDataKey?.bind(store);
  const isDataKeyErased = store.isDataKeyErased?.bind(store);
  assert.ok(
    addDataKey && readDataKeys && eraseDataKey && isDataKeyErased,
    "the storage has no data keys: pass hasDataKeys: false if that is intended",
  );
  return { addDataKey, readDataKeys, eraseDataKey, isDataKeyErased };
}

type DataKeys = ReturnType<typeof findDataKeys>;

const DAY_MS = 86_400_000;

const nameKey = (byte: number): string => getKeyName(Buffer.alloc(32, byte));

/** Declares the tests of data keys. */
export function testDataKeys(it: DeclareTest): void {
  const test = (name: string, run: (store: DataKeys, peer: DataKeys, s: Scenario) => Promise<void>): void =>
    it(name, async (s) => {
      if (s.hasDataKeys) await run(findDataKeys(s.store), findDataKeys(s.peer), s);
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

  test("an erased data key is gone for every process, and the account may get another one", async (store, peer, s) => {
    const erase = (by: DataKeys, account: string) =>
      by.eraseDataKey({ account, now: s.now(), forgetAt: s.now() + DAY_MS });
    await store.addDataKey({ account: "clinic", key: buildKey(1) });
    await store.addDataKey({ account: "hospital", key: buildKey(2) });
    await erase(peer, "clinic");
    assert.deepEqual(await store.readDataKeys(["clinic", "hospital"]), [undefined, buildKey(2)]);
    await repeat(2, () => erase(store, "clinic"));
    assert.equal((await store.addDataKey({ account: "clinic", key: buildKey(3) })).key, buildKey(3));
  });

  test("the name of an erased data key is kept until forgetAt, those of present and lost keys are not", async (store, peer, s) => {
    const isErased = (byte: number) => peer.isDataKeyErased({ account: "clinic", name: nameKey(byte) });
    const erase = () => store.eraseDataKey({ account: "clinic", now: s.now(), forgetAt: s.now() + DAY_MS });
    await erase();
    await store.addDataKey({ account: "clinic", key: buildKey(1) });
    assert.equal(await isErased(1), false);
    await erase();
    await store.addDataKey({ account: "clinic", key: buildKey(2) });
    assert.deepEqual([await isErased(1), await isErased(2), await isErased(3)], [true, false, false]);
    await s.advance(DAY_MS);
    await erase();
    assert.deepEqual([await isErased(1), await isErased(2)], [false, true]);
  });
}
