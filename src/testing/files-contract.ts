/** The contract of `FileStore`: tests that run in any test runner against any file store. */

import assert from "node:assert/strict";
import {
  buildBytes,
  type DeclareFilesTest,
  type FilesUnderTest,
  NAME,
  readWhole,
  storeFile,
} from "./files-contract/fixture.js";
import { testNames } from "./files-contract/names.js";
import { testPublishing, testTakenNames } from "./files-contract/publishing.js";

export type { FilesUnderTest } from "./files-contract/fixture.js";

/** The options of {@link filesContract}. */
export interface FilesContractOptions {
  /** The runner's function that declares a test: `test` of Vitest, `node:test` or Jest. */
  test: (name: string, run: () => Promise<void>) => unknown;
  /** Creates an empty store. Called once in each test. */
  create: () => FilesUnderTest | Promise<FilesUnderTest>;
}

/**
 * Declares the tests that every file store must pass. They check what its port, `FileStore`,
 * guarantees.
 *
 * @example
 * import { test } from "node:test";
 * import { memoryFiles } from "postbell/files";
 * import { filesContract } from "postbell/testing";
 *
 * filesContract({ test, create: () => ({ files: memoryFiles() }) });
 */
export function filesContract({ test, create }: FilesContractOptions): void {
  const it: DeclareFilesTest = (name, run) => {
    test(name, async () => {
      const { files, destroy } = await create();
      try {
        await run(files);
      } finally {
        await destroy?.();
      }
    });
  };
  testPublishing(it);
  testTakenNames(it);
  testReading(it);
  testNames(it);
}

/** A reader gets the bytes that were stored. */
function testReading(it: DeclareFilesTest): void {
  it("any range of a file is returned as it was stored", async (files) => {
    const bytes = buildBytes(200_000);
    await storeFile(files, NAME, bytes);
    const ranges = [
      [0, 0],
      [0, 1],
      [199_999, 200_000],
      [200_000, 200_000],
      [65_535, 65_537],
      [1, 199_999],
      [0, 200_000],
      [70_000, 140_001],
    ] as const;
    for (const [start, end] of ranges) {
      assert.deepEqual(await readWhole(files.read(NAME, { start, end })), bytes.slice(start, end));
    }
  });

  it("a reader that stops or mutates its chunks does not affect the file", async (files) => {
    const bytes = buildBytes(600_000);
    await storeFile(files, NAME, bytes);
    for await (const chunk of files.read(NAME)) {
      chunk.fill(0);
      break;
    }
    assert.deepEqual(await readWhole(files.read(NAME)), bytes);
  });

  it("every file is listed once, with the same entry as stat returns", async (files) => {
    const expected = ["a.txt", "2026/11/a.png", "2026/11/a.png.txt", "2026/12/a.png", "a/b/c/d/e/f/g/h.png"];
    for (const [at, name] of expected.entries()) await storeFile(files, name, buildBytes(at));
    const listed = [];
    for await (const entry of files.list()) {
      assert.deepEqual(entry, await files.stat(entry.name));
      listed.push(entry.name);
    }
    assert.deepEqual(listed.sort(), expected.sort());
  });
}
