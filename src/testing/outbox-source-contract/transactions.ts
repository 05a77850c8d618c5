/** Transactions of the host: an event exists from its commit on. */

import assert from "node:assert/strict";
import { assertNothingDue, buildEvent, claimOne, type DeclareSourceTest } from "./fixture.js";

/** Needs `begin`, which starts a transaction. Without it the test checks nothing. */
export function testTransactions(it: DeclareSourceTest): void {
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
