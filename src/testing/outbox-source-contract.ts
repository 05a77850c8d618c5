/** The contract of `OutboxSource`: tests that run in any test runner against any outbox source. */

import assert from "node:assert/strict";
import { testClaiming } from "./outbox-source-contract/claiming.js";
import {
  assertNothingDue,
  buildEvent,
  claimOne,
  type DeclareSourceTest,
  type OutboxSourceUnderTest,
} from "./outbox-source-contract/fixture.js";
import { testParking, testRemoving, testRetrying, testRowCounts } from "./outbox-source-contract/settling.js";

export type { OutboxSourceUnderTest, OutboxTransaction } from "./outbox-source-contract/fixture.js";

/** The options of {@link outboxSourceContract}. */
export interface OutboxSourceContractOptions {
  /** The runner's function that declares a test: `test` of Vitest, `node:test` or Jest. */
  test: (name: string, run: () => Promise<void>) => unknown;
  /** Creates an empty source. Called once in each test. */
  create: () => OutboxSourceUnderTest | Promise<OutboxSourceUnderTest>;
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

/** Needs `begin`, which starts a transaction. Without it the test checks nothing. */
function testTransactions(it: DeclareSourceTest): void {
  it("an event is due once its transaction commits, and delays no other event until then", async ({
    source,
    add,
    begin,
  }) => {
    if (!begin) return;
    const [early, undone] = [await begin(), await begin()];
    const earlyId = await early.add(buildEvent("early"));
    await undone.add(buildEvent("undone"));
    const [lateId] = await add([buildEvent("late")]);
    const late = await claimOne(source);
    assert.equal(late.id, lateId);
    await source.remove([late.key]);
    await undone.rollback();
    await assertNothingDue(source);
    await early.commit();
    assert.equal((await claimOne(source)).id, earlyId);
  });
}
