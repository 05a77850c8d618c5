/** The contract of `OutboxSource`: tests that run in any test runner against any outbox source. */

import { testClaiming } from "./outbox-source-contract/claiming.js";
import type { DeclareSourceTest, OutboxSourceUnderTest } from "./outbox-source-contract/fixture.js";
import { testParking, testRemoving, testRetrying, testRowCounts } from "./outbox-source-contract/settling.js";
import { testTransactions } from "./outbox-source-contract/transactions.js";

export type { OutboxSourceUnderTest, OutboxTransaction } from "./outbox-source-contract/fixture.js";

/** The options of {@link outboxSourceContract}. */
export interface OutboxSourceContractOptions {
  /** The runner's function that declares a test: `test` of Vitest, `node:test` or Jest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  /** Creates an empty source. Called once in each test. */
  readonly create: () => OutboxSourceUnderTest | Promise<OutboxSourceUnderTest>;
}

const SUITES = [
  testClaiming,
  testRemoving,
  testRetrying,
  testParking,
  testRowCounts,
  testTransactions,
] as const;

/**
 * Declares the tests that every outbox source must pass. They check what its port, `OutboxSource`,
 * guarantees.
 *
 * @example
 * import { test } from "node:test";
 * import { memorySource } from "postbell/outbox";
 * import { manualClock, outboxSourceContract } from "postbell/testing";
 *
 * outboxSourceContract({
 *   test,
 *   create() {
 *     const clock = manualClock(0);
 *     const source = memorySource({ clock });
 *     return { source, add: (events) => source.add(events), wait: (ms) => clock.advance(ms) };
 *   },
 * });
 */
export function outboxSourceContract({ test, create }: OutboxSourceContractOptions): void {
  const it: DeclareSourceTest = (name, run) => {
    test(name, async () => {
      const underTest = await create();
      try {
        await run(underTest);
      } finally {
        await underTest.destroy?.();
      }
    });
  };
  for (const suite of SUITES) suite(it);
}
