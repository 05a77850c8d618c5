/** The contract of `FileStore`: tests that run in any test runner against any file store. */

import type { DeclareFilesTest, FilesUnderTest } from "./files-contract/fixture.js";
import { testNames } from "./files-contract/names.js";
import { testPublishing, testTakenNames } from "./files-contract/publishing.js";
import { testReading } from "./files-contract/reading.js";

export type { FilesUnderTest } from "./files-contract/fixture.js";

/** The options of {@link filesContract}. */
export interface FilesContractOptions {
  /** The runner's function that declares a test: `test` of Vitest, `node:test` or Jest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  /** Creates an empty store. Called once in each test. */
  readonly create: () => FilesUnderTest | Promise<FilesUnderTest>;
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
