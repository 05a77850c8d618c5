/** The tests that every storage has to pass. They run in any test runner and know nothing of how a storage works. */

import { appending } from "./storage-contract/appending.js";
import { budgets } from "./storage-contract/budgets.js";
import { claiming } from "./storage-contract/claiming.js";
import { creation } from "./storage-contract/creation.js";
import { deliveries } from "./storage-contract/deliveries.js";
import { MODEL_RETENTION, runModel } from "./storage-contract/model.js";
import { hints, notices } from "./storage-contract/notices.js";
import { registrations } from "./storage-contract/registrations.js";
import { retention } from "./storage-contract/retention.js";
import {
  createScenario,
  type Scenario,
  type ScenarioOptions,
  type StorageUnderTest,
} from "./storage-contract/scenario.js";
import { settling } from "./storage-contract/settling.js";
import { turns } from "./storage-contract/turns.js";

export type { StorageUnderTest } from "./storage-contract/scenario.js";

const THEMES = [
  creation,
  registrations,
  appending,
  claiming,
  turns,
  settling,
  deliveries,
  retention,
  notices,
  budgets,
] as const;

/** What {@link storageContract} takes. */
export interface StorageContractOptions {
  /** The runner's function that declares a test: `test` of vitest, `node:test` or Jest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  /** Makes a storage with nothing in it. Called once in each test. */
  readonly create: () => StorageUnderTest | Promise<StorageUnderTest>;
  /** False for a storage whose `watch` never calls anybody. Default true. */
  readonly hints?: boolean | undefined;
  /** Seeds of the random runs, one test each. Default 1 to 5. */
  readonly seeds?: readonly number[] | undefined;
  /** Commands in each random run. Default 400. */
  readonly steps?: number | undefined;
}

/**
 * Declares the tests that hold a storage to the page of its port, `WebhookStore`.
 *
 * Time is a {@link manualClock} that the tests move, and `now` of each call is taken from it: a storage must not mix it with a clock of its own.
 * What the port leaves open is not tested: `nextAt` and hints may come early, and what has been kept long enough may be freed by later calls.
 * Every storage is closed after its test, then `destroy` is called.
 *
 * @example
 * import { test } from "node:test";
 * import { memoryStorage } from "postbell/memory";
 * import { storageContract } from "postbell/testing";
 *
 * storageContract({ test, create: () => ({ storage: memoryStorage() }) });
 */
export function storageContract({
  test,
  create,
  hints: hasHints = true,
  seeds = [1, 2, 3, 4, 5],
  steps = 400,
}: StorageContractOptions): void {
  const declare = (
    name: string,
    run: (scenario: Scenario) => Promise<void>,
    options?: ScenarioOptions,
  ): void => {
    test(name, async () => {
      const underTest = await create();
      try {
        await run(createScenario(underTest, options));
      } finally {
        await underTest.storage.close();
        await underTest.storage.close();
        await underTest.peer?.close();
        await underTest.destroy?.();
      }
    });
  };
  for (const theme of THEMES) theme(declare);
  if (hasHints) hints(declare);
  for (const seed of seeds) {
    declare(
      `two processes at random lose nothing, hold nothing twice and keep their books (seed ${seed})`,
      (scenario) => runModel(scenario, steps),
      { seed, retention: MODEL_RETENTION },
    );
  }
}
