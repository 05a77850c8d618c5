/** The tests that every content store has to pass. They run in any test runner and know nothing of how a storage works. */

import { changes } from "./content-store-contract/changes.js";
import { commits } from "./content-store-contract/commits.js";
import { runContentModel } from "./content-store-contract/model.js";
import {
  type ContentStorageUnderTest,
  createContentScenario,
  type DeclareContentTest,
} from "./content-store-contract/scenario.js";

export type { ContentStorageUnderTest } from "./content-store-contract/scenario.js";

/** What {@link contentStoreContract} takes. */
export interface ContentStoreContractOptions {
  /** The runner's function that declares a test: `test` of vitest, `node:test` or Jest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  /** Makes a storage with no content in it. Called once in each test. */
  readonly create: () => ContentStorageUnderTest | Promise<ContentStorageUnderTest>;
  /** Seeds of the random runs, one test each. Default 1 to 5. */
  readonly seeds?: readonly number[] | undefined;
  /** Commands in each random run. Default 400. */
  readonly steps?: number | undefined;
}

/**
 * Declares the tests that hold a storage to the page of its port, `ContentStore`.
 *
 * What the port leaves open is not tested: a store may forget old changes and ask for another load, and may leave records that never had columns
 * out of its changes. Every storage is closed after its test, then `destroy` is called.
 *
 * @example
 * import { test } from "node:test";
 * import { memoryStorage } from "postbell/memory";
 * import { contentStoreContract } from "postbell/testing";
 *
 * contentStoreContract({ test, create: () => ({ storage: memoryStorage() }) });
 */
export function contentStoreContract({
  test,
  create,
  seeds = [1, 2, 3, 4, 5],
  steps = 400,
}: ContentStoreContractOptions): void {
  const declare: DeclareContentTest = (name, run, seed) => {
    test(name, async () => {
      const underTest = await create();
      try {
        await run(createContentScenario(underTest, seed));
      } finally {
        await underTest.storage.close();
        await underTest.storage.close();
        await underTest.peer?.close();
        await underTest.destroy?.();
      }
    });
  };
  commits(declare);
  changes(declare);
  for (const seed of seeds) {
    declare(
      `two processes at random store all or nothing, and follow each other (seed ${seed})`,
      (scenario) => runContentModel(scenario, steps),
      seed,
    );
  }
}
