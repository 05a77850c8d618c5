/** Starts a storage for all tests of a suite. */

import { afterAll, beforeAll } from "vitest";
import type { StorageUnderTest } from "./storage-under-test.js";

/** Starts the storage before the tests, and stops it after them. Returns how to get at it. */
export function startForTests(start: () => Promise<StorageUnderTest>): () => StorageUnderTest {
  let started: StorageUnderTest | undefined;
  beforeAll(async () => {
    started = await start();
  });
  afterAll(() => started?.stop());
  return () => {
    if (!started) throw new Error("The storage is started before the tests.");
    return started;
  };
}
