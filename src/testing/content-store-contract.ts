/** The contract of `ContentStore`: tests that run in any test runner against any storage. */

import { closeStorages } from "./close-storages.js";
import { testChanges, testLoading } from "./content-store-contract/changes.js";
import { testCommits } from "./content-store-contract/commits.js";
import {
  type ContentStorageUnderTest,
  createContentScenario,
  type DeclareContentTest,
} from "./content-store-contract/fixture.js";
import { runContentModel } from "./content-store-contract/model.js";
import { testIds, testRecords } from "./content-store-contract/records.js";
import { testUniqueNames } from "./content-store-contract/unique-names.js";

export type { ContentStorageUnderTest } from "./content-store-contract/fixture.js";

const SUITES = [testRecords, testIds, testCommits, testUniqueNames, testChanges, testLoading] as const;

/** The options of {@link contentStoreContract}. */
export interface ContentStoreContractOptions {
  /** The runner's function that declares a test: `test` of Vitest, `node:test` or Jest. */
  test: (name: string, run: () => Promise<void>) => unknown;
  /** Creates a storage without content. Called once in each test. */
  create: () => ContentStorageUnderTest | Promise<ContentStorageUnderTest>;
  /** Seeds of the random runs, one test each. Default 1 to 5. */
  seeds?: number[] | undefined;
  /** Commands in each random run. Default 400. */
  steps?: number | undefined;
}

/**
 * Declares the tests that every content store must pass. They check what its port, `ContentStore`,
 * guarantees.
 *
 * The tests leave open what the port leaves open: a store may forget old changes and ask for a
 * reload, and may leave records that never had columns out of its changes. Each test closes its
 * storages, then calls `destroy`.
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
  const it: DeclareContentTest = (name, run, seed) => {
    test(name, async () => {
      const underTest = await create();
      try {
        await run(createContentScenario(underTest, seed));
      } finally {
        await closeStorages(underTest);
      }
    });
  };
  for (const suite of SUITES) suite(it);
  for (const seed of seeds) {
    it(
      `a random run of two processes agrees with a model of the store (seed ${seed})`,
      (scenario) => runContentModel(scenario, steps),
      seed,
    );
  }
}
